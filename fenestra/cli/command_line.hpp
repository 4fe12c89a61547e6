// How a command enters the tool: one function `add_<name>`, in the file of the command, that says
// its options and what it does. main.cpp calls them all and knows no command besides; help, shell
// completion and the manual page are made of what they say.
#pragma once

#include <fenestra/base/nearest.hpp>
#include <fenestra/cli/command.hpp>
#include <fenestra/cli/units.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::cli {

/// What the commands of one command line share.
struct CommandLine {
  bool json = false;  ///< --json was given
  std::string about;  ///< the operator that was named, for errors
  /// What each command does once the line is read. A command that is in a line wins over those that
  /// it is a part of.
  std::map<const CLI::App*, std::function<ExitCode()>> actions;
  /// What `--help` prints after a command and a word of this option, instead of the command's.
  struct Topic {
    const CLI::Option* option;
    std::function<std::string(const std::string& word, bool as_json)> help;
  };
  std::map<const CLI::App*, Topic> topics;
  /// The words that an option may have, for completion.
  std::map<const CLI::Option*, std::vector<std::string>> words;
};

/// train, eval, run, infer, summary and gradcheck.
void add_networks(CLI::App& app, CommandLine& line);
void add_infer(CLI::App& app, CommandLine& line);
void add_explain(CLI::App& app, CommandLine& line);
void add_explain_model(CLI::App& explain, CommandLine& line);

/// The command that explains what this names, a ready network or a file; nothing if it is neither.
std::string command_for_model(const std::string& name);
void add_check(CLI::App& app, CommandLine& line);
void add_launch(CLI::App& app, CommandLine& line);
void add_info(CLI::App& app, CommandLine& line);
void add_version(CLI::App& app, CommandLine& line);
void add_help(CLI::App& app, CommandLine& line);
void add_completion(CLI::App& app, CommandLine& line);
void add_man(CLI::App& app, CommandLine& line);

// What options have in common.

inline CLI::Option* add_json(CLI::App& command,
                             CommandLine& line,
                             const std::string& meaning = "print JSON") {
  return command.add_flag("--json", line.json, meaning);
}

/// CLI11 reads -1 as the largest unsigned number, and so every number that does not fit.
template <class Number>
CLI::Validator whole_number(Number least) {
  const auto complaint = [least](const std::string& text) {
    Number number = 0;
    const char* end = text.data() + text.size();
    const auto [next, failure] = std::from_chars(text.data(), end, number);
    return failure == std::errc() && next == end && number >= least
               ? std::string()
               : "\"" + text + "\" is not a whole number from " + std::to_string(least) + " to " +
                     std::to_string(std::numeric_limits<Number>::max());
  };
  return CLI::Validator(complaint, "");
}

/// A number of bytes with a unit, "10MB"; the option then holds it as a plain number.
inline CLI::Validator byte_count(std::size_t least) {
  const auto read = [least](std::string& text) -> std::string {
    try {
      const std::size_t bytes = parse_bytes(text);
      if (bytes < least) {
        return "\"" + text + "\" is less than " + std::to_string(least) + " bytes";
      }
      text = std::to_string(bytes);
      return "";
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  return CLI::Validator(read, "", "byte_count");
}

/// The option takes one of these words and no other.
inline CLI::Option* one_of(CommandLine& line,
                           CLI::Option* option,
                           const std::vector<std::string>& words) {
  line.words[option] = words;
  const auto complaint = [words](const std::string& text) {
    if (std::find(words.begin(), words.end(), text) != words.end()) {
      return std::string();
    }
    return "\"" + text + "\" is none of " + CLI::detail::join(words, ", ") +
           did_you_mean(text, words);
  };
  option->check(CLI::Validator(complaint, ""));
  return option->type_name(CLI::detail::join(words, "|"));
}

/// Options that were not given are nothing.
template <class Value>
std::optional<Value> given(const CLI::Option* option, const Value& value) {
  return option->count() > 0 ? std::optional<Value>(value) : std::nullopt;
}

}  // namespace fenestra::cli

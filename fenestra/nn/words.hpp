// "name key=value key=value": the text form of optimisers and schedules. Not installed.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/nearest.hpp>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra::nn::detail {

struct Words {
  std::string name;
  std::vector<std::pair<std::string, std::string>> options;
};

/// The shortest digits that give the number back.
inline std::string number_text(double value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return std::string(text, end);
}

[[noreturn]] inline void throw_words(std::string_view what,
                                     std::string_view text,
                                     const std::string& problem,
                                     const std::string& fix,
                                     ErrorCode code = ErrorCode::invalid_option) {
  throw Error(
      code, std::string(what) + ": \"" + std::string(text) + "\": " + problem + "\n  fix: " + fix);
}

/// For a name that is none of `names`.
template <class Names>
[[noreturn]] void throw_unknown(std::string_view what,
                                std::string_view text,
                                std::string_view name,
                                const Names& names) {
  std::string known;
  for (const std::string_view one : names) {
    known += (known.empty() ? "" : ", ") + std::string(one);
  }
  throw_words(
      what,
      text,
      "no " + std::string(what) + " \"" + std::string(name) + "\"" + did_you_mean(name, names),
      "one of " + known,
      ErrorCode::unknown_choice);
}

/// For an option that the thing called `name` does not have.
template <class Names>
[[noreturn]] void throw_unknown_option(std::string_view what,
                                       std::string_view text,
                                       const std::string& name,
                                       const std::string& key,
                                       const Names& options) {
  std::string known;
  for (const std::string_view one : options) {
    known += (known.empty() ? "one of " : ", ") + std::string(one);
  }
  throw_words(what,
              text,
              name + " has no option \"" + key + "\"" + did_you_mean(key, options),
              known.empty() ? "no options" : known,
              ErrorCode::unknown_choice);
}

/// `what` says in messages what the text is of.
inline Words parse_words(std::string_view what, std::string_view text) {
  Words words;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t begin = text.find_first_not_of(' ', at);
    if (begin == std::string_view::npos) {
      break;
    }
    at = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, at - begin);
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) {
      if (!words.name.empty() || !words.options.empty()) {
        throw_words(what,
                    text,
                    "\"" + std::string(word) + "\" is no key=value",
                    "a name, then key=value for every option, blanks between them");
      }
      words.name = word;
      continue;
    }
    std::string key(word.substr(0, equals));
    for (const auto& [known, value] : words.options) {
      if (known == key) {
        throw_words(what, text, key + " is said twice", "say it once");
      }
    }
    words.options.emplace_back(std::move(key), std::string(word.substr(equals + 1)));
  }
  if (words.name.empty()) {
    throw_words(what, text, "no name", "begin with the name of one");
  }
  return words;
}

inline double parse_number(std::string_view what,
                           std::string_view text,
                           const std::string& key,
                           std::string_view value) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) {
    throw_words(what,
                text,
                key + " = \"" + std::string(value) + "\" is no number",
                key + "=NUMBER, as in " + key + "=0.01");
  }
  return number;
}

}  // namespace fenestra::nn::detail

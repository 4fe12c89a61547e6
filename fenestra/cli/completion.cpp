// `fenestra completion`: scripts for shells, made of the commands and options that there are.
#include <fenestra/cli/command_line.hpp>

#include <iostream>

namespace fenestra::cli {

namespace {

/// What the word after an option, or the first word after a command, can be.
enum class Guess { none, words, file, folder };

/// "FILE|MODEL" does too, beside words.
bool names_file(const CLI::Option* option) { return option->get_type_name().starts_with("FILE"); }

Guess guess_of(const CommandLine& line, const CLI::Option* option) {
  const std::string type = option->get_type_name();
  return line.words.contains(option)                   ? Guess::words
         : names_file(option)                          ? Guess::file
         : type.starts_with("FOLDER") || type == "DIR" ? Guess::folder
                                                       : Guess::none;
}

std::vector<const CLI::App*> parts_of_command(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App*) { return true; });
}

/// "--json", "-h"
std::vector<std::string> spellings(const CLI::Option* option) {
  std::vector<std::string> names;
  for (const std::string& name : option->get_lnames()) {
    names.push_back("--" + name);
  }
  for (const std::string& name : option->get_snames()) {
    names.push_back("-" + name);
  }
  return names;
}

bool takes_value(const CLI::Option* option) { return option->get_items_expected_max() > 0; }

const CLI::Option* first_positional(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) {
      return option;
    }
  }
  return nullptr;
}

// Bash: the path of commands is found by walking over the words before the cursor, and then one
// table says what can follow an option, and another what can follow a command.

struct BashTables {
  std::string commands;   ///< path and word -> path
  std::string values;     ///< path and option -> what follows
  std::string skipped;    ///< path and option whose next word is a value
  std::string following;  ///< path -> words, and options
};

std::string bash_guess(const CommandLine& line, const CLI::Option* option) {
  switch (guess_of(line, option)) {
    case Guess::words:
      return "COMPREPLY=($(compgen -W '" + CLI::detail::join(line.words.at(option), " ") +
             "' -- \"$current\"))";
    case Guess::file:
      return "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$current\"))";
    case Guess::folder:
      return "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- \"$current\"))";
    case Guess::none: break;
  }
  return "";
}

void add_bash(const CommandLine& line,
              const CLI::App& command,
              const std::string& path,
              BashTables& tables) {
  std::vector<std::string> options;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : spellings(option)) {
      options.push_back(name);
      if (takes_value(option)) {
        tables.skipped += (tables.skipped.empty() ? "" : " | ") + ("'" + path + " " + name + "'");
        const std::string guess = bash_guess(line, option);
        tables.values += "    '" + path + " " + name + "') " + guess + (guess.empty() ? "" : "; ") +
                         "return ;;\n";
      }
    }
  }
  std::vector<std::string> words;
  for (const CLI::App* part : parts_of_command(command)) {
    words.push_back(part->get_name());
    const std::string next = path + " " + part->get_name();
    tables.commands += "      '" + next + "') path='" + next + "' ;;\n";
    add_bash(line, *part, next, tables);
  }
  std::string files;
  if (const CLI::Option* positional = first_positional(command)) {
    const Guess guess = guess_of(line, positional);
    if (guess == Guess::words) {
      const std::vector<std::string>& more = line.words.at(positional);
      words.insert(words.end(), more.begin(), more.end());
    }
    files = names_file(positional) ? "-f" : guess == Guess::folder ? "-d" : "";
  }
  tables.following += "    '" + path + "') words='" + CLI::detail::join(words, " ") +
                      "' options='" + CLI::detail::join(options, " ") + "' files='" + files +
                      "' ;;\n";
}

std::string bash_script(const CommandLine& line, const CLI::App& app) {
  BashTables tables;
  add_bash(line, app, app.get_name(), tables);
  return "# Completion of fenestra for bash; to use it:  source <(fenestra completion bash)\n"
         "_fenestra() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local path=fenestra index words= options= files=\n"
         "  for ((index = 1; index < COMP_CWORD; ++index)); do\n"
         "    case \"$path ${COMP_WORDS[index]}\" in\n"
         "      " +
         tables.skipped + ") ((++index)) ;;\n" + tables.commands +
         "    esac\n"
         "  done\n"
         "  COMPREPLY=()\n"
         "  case \"$path $previous\" in\n" +
         tables.values +
         "  esac\n"
         "  case \"$path\" in\n" +
         tables.following +
         "  esac\n"
         "  if [[ $current == -* ]]; then\n"
         "    words=$options\n"
         "  elif [[ $files ]]; then\n"
         "    compopt -o filenames 2>/dev/null\n"
         "    COMPREPLY=($(compgen $files -- \"$current\"))\n"
         "  fi\n"
         "  COMPREPLY+=($(compgen -W \"$words\" -- \"$current\"))\n"
         "}\n"
         "complete -F _fenestra fenestra\n";
}

// Zsh: a function for each command, which hands what follows a part to the function of the part.

/// For inside single quotes and inside the brackets and colons of a specification.
std::string zsh_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      result += std::string("\\") + c;
    } else {
      result += c;
    }
  }
  return result;
}

std::string zsh_guess(const CommandLine& line, const CLI::Option* option) {
  switch (guess_of(line, option)) {
    case Guess::words: return "(" + CLI::detail::join(line.words.at(option), " ") + ")";
    case Guess::file: return "_files";
    case Guess::folder: return "_files -/";
    case Guess::none: break;
  }
  return "";
}

void add_zsh(const CommandLine& line,
             const CLI::App& command,
             const std::string& function,
             std::string& text) {
  std::string specifications;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : spellings(option)) {
      specifications += "    '" + name + "[" + zsh_text(option->get_description()) + "]";
      if (takes_value(option)) {
        specifications += ":value:" + zsh_guess(line, option);
      }
      specifications += "' \\\n";
    }
  }
  std::string list;
  std::string calls;
  for (const CLI::App* part : parts_of_command(command)) {
    const std::string name = function + "_" + part->get_name();
    list += "        '" + part->get_name() + ":" + zsh_text(part->get_description()) + "'\n";
    calls += "        " + part->get_name() + ") " + name + " ;;\n";
    add_zsh(line, *part, name, text);
  }
  std::string first;
  if (!list.empty()) {
    first += "      local -a parts=(\n" + list + "      )\n      _describe command parts\n";
  }
  if (const CLI::Option* positional = first_positional(command)) {
    switch (guess_of(line, positional)) {
      case Guess::words:
        first += "      local -a names=(" + CLI::detail::join(line.words.at(positional), " ") +
                 ")\n      _describe " + positional->get_name(true) + " names\n" +
                 (names_file(positional) ? "      _files\n" : "");
        break;
      case Guess::file: first += "      _files\n"; break;
      case Guess::folder: first += "      _files -/\n"; break;
      case Guess::none: break;
    }
  }
  text += function +
          "() {\n"
          "  local curcontext=$curcontext state line\n"
          "  _arguments -C \\\n" +
          specifications +
          "    '1: :->first' \\\n"
          "    '*:: :->rest'\n"
          "  case $state in\n"
          "    first)\n" +
          (first.empty() ? "      :\n" : first) +
          "      ;;\n"
          "    rest)\n"
          "      case $line[1] in\n" +
          calls +
          "      esac\n"
          "      ;;\n"
          "  esac\n"
          "}\n\n";
}

std::string zsh_script(const CommandLine& line, const CLI::App& app) {
  std::string functions;
  add_zsh(line, app, "_fenestra", functions);
  return "#compdef fenestra\n"
         "# Completion of fenestra for zsh: save it as _fenestra in a folder of $fpath, or\n"
         "# source <(fenestra completion zsh)  after compinit.\n\n" +
         functions +
         "if [[ $funcstack[1] == _fenestra ]]; then\n"
         "  _fenestra \"$@\"\n"
         "else\n"
         "  compdef _fenestra fenestra\n"
         "fi\n";
}

}  // namespace

void add_completion(CLI::App& app, CommandLine& line) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("completion", "A script with which a shell completes our words");
  one_of(
      line, command->add_option("shell", *shell, "for which shell")->required(), {"bash", "zsh"});
  command->footer(
      "\nExamples:\n"
      "  fenestra completion bash\n"
      "  fenestra completion zsh\n"
      "\nIn ~/.bashrc:  source <(fenestra completion bash)");
  line.actions[command] = [&app, &line, shell] {
    std::cout << (*shell == "bash" ? bash_script(line, app) : zsh_script(line, app));
    return fine;
  };
}

}  // namespace fenestra::cli

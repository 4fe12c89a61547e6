// The command `fenestra`: reads the command line, calls a command, turns errors into text and exit
// codes. Results go to standard output, errors and progress to standard error. Exit codes: 0 fine,
// 1 a law is broken, 2 usage, 3 bad input, 4 other processes lost, 130 interrupted; a training that
// something starts again has kNotAgain more than 1 to 3.
#include <fenestra/base/error.hpp>
#include <fenestra/cli/command_line.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/wrap.hpp>
#include <fenestra/ranks/communicator.hpp>

#include <algorithm>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::cli {

namespace {

/// Every command, in the order in which help lists them.
void add_commands(CLI::App& app, CommandLine& line) {
  add_networks(app, line);
  add_launch(app, line);
  add_explain(app, line);
  add_check(app, line);
  add_info(app, line);
  add_version(app, line);
  add_help(app, line);
  add_completion(app, line);
  add_man(app, line);
}

Json error_json(std::string_view code, const std::string& message) {
  return {{"code", code},
          {"operator", nullptr},
          {"argument", nullptr},
          {"axis", nullptr},
          {"message", message}};
}

Json error_json(const Error& error, const std::string& op) {
  const auto or_null = [](std::string_view text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  const bool unknown = error.code() == ErrorCode::unknown_operator;
  Json json = error_json(code_name(error.code()), error.what());
  json["operator"] = or_null(!error.op().empty() || unknown ? error.op() : op);
  json["argument"] = or_null(error.argument());
  json["axis"] = error.axis() < 0 ? Json(nullptr) : Json(error.axis());
  return json;
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> parts_of(const CLI::App& app) {
  return names_of(app.get_subcommands([](const CLI::App*) { return true; }));
}

/// The commands that the line has named, from the tool itself on.
std::vector<const CLI::App*> named_commands(const CLI::App& app) {
  std::vector<const CLI::App*> commands{&app};
  while (!commands.back()->get_subcommands().empty()) {
    commands.push_back(commands.back()->get_subcommands().front());
  }
  return commands;
}

/// "explain model"
std::string path_of(const CLI::App& app) {
  const std::vector<std::string> names = names_of(named_commands(app));
  return CLI::detail::join(std::vector<std::string>(names.begin() + 1, names.end()), " ");
}

/// The first word that is no option; empty where there is none.
std::string command_word(const std::vector<std::string>& arguments) {
  const auto word = std::find_if(arguments.begin(), arguments.end(), [](const std::string& said) {
    return !said.starts_with("-");
  });
  return word == arguments.end() ? "" : *word;
}

/// The first word must be a command; says which one was probably meant.
void require_command(const std::string& word, const CLI::App& app) {
  const std::vector<std::string> commands = parts_of(app);
  if (!word.empty() && std::find(commands.begin(), commands.end(), word) == commands.end()) {
    throw UsageError("there is no command \"" + word + "\"" + did_you_mean(word, commands));
  }
}

bool says(const std::vector<std::string>& arguments, std::string_view option) {
  return std::find(arguments.begin(), arguments.end(), option) != arguments.end();
}

/// The code for whoever starts the training again, if something does.
int code_for_next_start(const std::vector<std::string>& arguments, int code) {
  const bool is_final = code == law_broken || code == bad_usage || code == bad_input;
  const bool has_next = command_word(arguments) == "train" && says(arguments, "--resume-or-start");
  return is_final && has_next ? kNotAgain + code : code;
}

/// What nobody asked for, and what was probably meant by it.
std::string unexpected_text(const CLI::App& app) {
  const std::vector<const CLI::App*> commands = named_commands(app);
  const std::vector<std::string> rest = app.remaining(true);
  const std::string word = rest.empty() ? "" : rest.front();
  if (!word.starts_with("-")) {
    return "\"" + word + "\" is one word too many" + did_you_mean(word, parts_of(*commands.back()));
  }
  std::vector<std::string> options;
  for (const CLI::App* command : commands) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        options.push_back("--" + name);
      }
    }
  }
  const std::string name = word.substr(0, word.find('='));
  return "there is no option " + name + did_you_mean(name, options);
}

int usage(const std::string& text, const std::string& command, bool as_json) {
  if (as_json) {
    print_json({{"error", error_json("usage", text)}});
  }
  std::cerr << wrapped("fenestra: " + text + "\n", terminal_of(Stream::err)) << "Try: fenestra "
            << command << (command.empty() ? "" : " ") << "--help\n";
  return bad_usage;
}

int refuse(const std::string& text) {
  std::cerr << wrapped("fenestra: " + text + "\n", terminal_of(Stream::err));
  return bad_input;
}

int refuse(const Error& error, const std::string& op, bool as_json) {
  if (as_json) {
    print_json({{"error", error_json(error, op)}});
  }
  return refuse(std::string("[") + std::string(code_name(error.code())) + "] " + error.what());
}

/// Help about a word of the line; there may be no such word.
int print_topic(const CommandLine::Topic& topic, bool as_json) {
  try {
    std::cout << topic.help(topic.option->results().front(), as_json);
    return fine;
  } catch (const Error& error) {
    return refuse(error, "", as_json);
  }
}

int run(int argc, char** argv, const std::vector<std::string>& arguments) {
  if (argc > 0) {
    // What was typed works again, in the commands that are suggested.
    program_name() = argv[0];
  }
  CLI::App app(
      "Networks of sliding windows: train and use them, see what their operators compute.");
  app.name("fenestra");
  app.get_formatter()->column_width(28);
  app.set_help_flag("-h,--help", "print this help");
  app.require_subcommand(0, 1);
  app.footer(
      "\nExamples:\n"
      "  fenestra train lenet --data digits\n"
      "  fenestra run runs/lenet-digits/model.safetensors picture.png\n"
      "  fenestra explain\n"
      "  fenestra explain conv \"x=8x3x32x32 w=16x3x3x3 stride=2 padding=1\"\n"
      "  fenestra explain model lenet --form step --batch 64\n"
      "  fenestra check max_pool \"x=1x2x9x9 kernel=3 stride=2 padding=1\"\n"
      "  fenestra check all --cases 100 --seed 1\n"
      "\nExit codes: 0 fine, 1 a law is broken, 2 usage, 3 bad input, 4 other processes lost, "
      "130 interrupted.");
  CommandLine line;
  bool show_version = false;
  app.add_flag("--version", show_version, "print version, compiler, scalars and operators");
  add_json(app, line);
  add_commands(app, line);

  // A line that cannot be read may still have said how to answer.
  const bool asks_for_json = says(arguments, "--json");
  try {
    require_command(command_word(arguments), app);
    app.parse(argc, argv);
    if (show_version) {
      return info(line.json);
    }
    const auto action = line.actions.find(named_commands(app).back());
    if (action != line.actions.end()) {
      return action->second();
    }
    throw UsageError("a command is missing: " + CLI::detail::join(parts_of(app), ", "));
  } catch (const CLI::ExtrasError&) {
    return usage(unexpected_text(app), path_of(app), asks_for_json);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      const auto topic = line.topics.find(named_commands(app).back());
      if (topic != line.topics.end() && topic->second.option->count() > 0) {
        return print_topic(topic->second, asks_for_json);
      }
      std::cout << wrapped(app.help(), terminal_of(Stream::out));
      return fine;
    }
    return usage(error.what(), path_of(app), asks_for_json);
  } catch (const UsageError& error) {
    return usage(error.what(), path_of(app), asks_for_json);
  } catch (const ranks::LostRank& error) {
    refuse(error, line.about, line.json);
    return lost_rank;
  } catch (const Error& error) {
    return refuse(error, line.about, line.json);
  } catch (const std::bad_alloc& error) {
    // The library says what for; the language's own exception has nothing but its name.
    const std::string_view what = error.what();
    return refuse("not enough memory for a problem of this size" +
                  (what.starts_with("std::") ? std::string() : ": " + std::string(what)));
  } catch (const std::length_error&) {
    return refuse("not enough memory for a problem of this size");
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
}

}  // namespace

}  // namespace fenestra::cli

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  int code = fenestra::cli::run(argc, argv, arguments);
  if (!std::cout.flush()) {
    std::cerr << "fenestra: standard output cannot be written\n";
    code = fenestra::cli::bad_input;
  }
  return fenestra::cli::code_for_next_start(arguments, code);
}

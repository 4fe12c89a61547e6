// The command `fenestra`: reads the command line, calls a command, turns errors into text and exit
// codes. Results go to standard output, errors and progress to standard error. Exit codes: 0 fine,
// 1 a law is broken, 2 usage, 3 bad input, 130 interrupted.
#include <fenestra/base/error.hpp>
#include <fenestra/base/version.hpp>
#include <fenestra/check/entry.hpp>
#include <fenestra/cli/command.hpp>
#include <fenestra/cli/network.hpp>
#include <fenestra/cli/network_commands.hpp>
#include <fenestra/cli/text.hpp>

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdint>
#include <iostream>
#include <limits>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra::cli {

namespace {

constexpr std::string_view kCompiler =
#if defined(__clang__)
    "clang++ " __clang_version__;
#elif defined(__GNUC__)
    "g++ " __VERSION__;
#else
    "unknown";
#endif

#ifdef FENESTRA_HAVE_GMP
constexpr bool kHaveGmp = true;
#else
constexpr bool kHaveGmp = false;
#endif

ExitCode info(bool as_json) {
  std::vector<std::string> scalars{
      "float", "double", "long double", "Dual", "Rational", "Interval"};
  if (kHaveGmp) {
    scalars.emplace_back("GmpRational");
  }
  std::vector<std::string_view> operators;
  for (const check::OperatorEntry& entry : check::registry()) {
    operators.push_back(entry.name);
  }
  if (as_json) {
    print_json({{"version", version},
                {"compiler", kCompiler},
                {"scalars", scalars},
                {"gmp", kHaveGmp},
                {"operators", operators}});
    return fine;
  }
  const auto joined = [](const auto& names) {
    std::string text;
    for (const auto& name : names) {
      text += (text.empty() ? "" : ", ") + std::string(name);
    }
    return text;
  };
  std::cout << "fenestra " << version << "\n"
            << columns({{"compiler", std::string(kCompiler)},
                        {"scalars", joined(scalars)},
                        {"gmp", kHaveGmp ? "yes" : "no"},
                        {"operators", joined(operators)}},
                       0);
  return fine;
}

void print_error_json(const Error& error, const std::string& op) {
  const auto or_null = [](std::string_view text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  const bool unknown = error.code() == ErrorCode::unknown_operator;
  print_json({{"error",
               {{"code", code_name(error.code())},
                {"operator", or_null(!error.op().empty() || unknown ? error.op() : op)},
                {"argument", or_null(error.argument())},
                {"axis", error.axis() < 0 ? Json(nullptr) : Json(error.axis())},
                {"message", error.what()}}}});
}

/// The first word that is no option must be a command; says which one was probably meant.
void require_command(const std::vector<std::string>& arguments,
                     const std::vector<std::string_view>& commands) {
  for (const std::string& word : arguments) {
    if (word.starts_with("-")) {
      continue;
    }
    for (const std::string_view command : commands) {
      if (word == command) {
        return;
      }
    }
    throw UsageError("there is no command \"" + word + "\"" + did_you_mean(word, commands));
  }
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

/// One of the words that stand for values; CLI11 has refused others.
template <class Value>
Value meaning(const std::string& word,
              std::initializer_list<std::pair<std::string_view, Value>> words) {
  for (const auto& [name, value] : words) {
    if (name == word) {
      return value;
    }
  }
  return words.begin()->second;
}

int usage(const std::string& text, const std::string& command) {
  std::cerr << "fenestra: " << text << "\n"
            << "Try: fenestra " << command << (command.empty() ? "" : " ") << "--help\n";
  return bad_usage;
}

int refuse(const std::string& text) {
  std::cerr << "fenestra: " << text << "\n";
  return bad_input;
}

int run(int argc, char** argv) {
  if (argc > 0) {
    // What was typed works again; a bare name was found on the path.
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
      "  fenestra explain model lenet5 --form step --batch 64\n"
      "  fenestra check max_pool \"x=1x2x9x9 kernel=3 stride=2 padding=1\"\n"
      "  fenestra check all --cases 100 --seed 1\n"
      "\nExit codes: 0 fine, 1 a law is broken, 2 usage, 3 bad input, 130 interrupted.");
  bool json = false;
  bool show_version = false;
  app.add_flag("--version", show_version, "print version, compiler, scalars and operators");
  app.add_flag("--json", json, "print JSON");

  const std::vector<RegisteredCommand> networks = add_network_commands(app, json);

  // A problem may come in one argument or in several: the quotes are easily forgotten.
  std::string op;
  std::vector<std::string> problem;
  std::string axis;
  CLI::App* explain_command =
      app.add_subcommand("explain", "Geometry, sizes, costs and a drawing of one problem");
  explain_command->add_option("operator", op, "its name; left out: list the operators");
  explain_command->add_option("problem", problem, "a problem string, e.g. \"x=1x3x8x8 kernel=2\"")
      ->type_name("TEXT");
  explain_command->add_option("--axis", axis, "spatial axis to draw: a number from 0, or a name")
      ->type_name("AXIS");
  bool with_kernels = false;
  explain_command->add_flag(
      "--kernels", with_kernels, "list the kernel candidates and why some do not apply");
  explain_command->add_flag("--json", json, "print JSON");
  explain_command->footer(
      "\nExamples:\n"
      "  fenestra explain conv \"x=8x3x32x32 w=16x3x3x3 stride=2 padding=1\"\n"
      "  fenestra explain conv_transpose \"x=1x8x7x7 w=8x4x4x4 stride=2 padding=1\" --axis height\n"
      "  fenestra explain max_pool \"x=1x64x112x112 kernel=3 stride=2 padding=1\" --json");

  ExplainModelOptions model;
  int model_threads = 0;
  std::string model_output;
  CLI::App* model_command = explain_command->add_subcommand(
      "model", "The plan of a whole network: steps, groups, kernels, memory, costs");
  std::string model_input;
  model_command
      ->add_option(
          "model", model.model, "lenet5, unet or resnet18; a model file; or a model of `train`")
      ->required();
  model_command
      ->add_option("--input", model_input, "what a model file takes, if it does not say: 1x28x28")
      ->type_name("SHAPE");
  model_command->add_option("--batch", model.batch, "samples at once, 8 by default")
      ->check(whole_number<std::int64_t>(1))
      ->type_name("N");
  std::string form = "run";
  model_command
      ->add_option("--form",
                   form,
                   "the forward pass, the default; a training step; or inference with constant "
                   "parameters")
      ->check(CLI::IsMember({"run", "step", "infer"}))
      ->type_name("");
  std::string type = "f32";
  model_command->add_option("--dtype", type, "of all numbers, f32 by default")
      ->check(CLI::IsMember({"f32", "f64"}))
      ->type_name("");
  model_command->add_option("--threads", model_threads, "threads to plan for and to run on")
      ->check(whole_number<int>(1))
      ->type_name("N");
  model_command
      ->add_option("--memory-limit",
                   model.memory_limit,
                   "bytes that a run may take: what waits too long is computed again")
      ->check(whole_number<std::size_t>(1))
      ->type_name("BYTES");
  model_command->add_flag("--profile", model.profile, "run it, and tell the time of each step");
  std::string format = "text";
  model_command->add_option("--format", format, "text by default; dot is for Graphviz, html a page")
      ->check(CLI::IsMember({"text", "dot", "html", "json"}))
      ->type_name("");
  model_command->add_option("--output", model_output, "a new file; left out: standard output")
      ->type_name("FILE");
  model_command->add_flag("--force", model.force, "replace the file if it exists");
  model_command->add_flag("--json", json, "the same as --format json");
  model_command->footer(
      "\nExamples:\n"
      "  fenestra explain model lenet5\n"
      "  fenestra explain model resnet18 --form infer --batch 1 --threads 1\n"
      "  fenestra explain model unet --form step --batch 2 --profile --format html\n"
      "  fenestra explain model unet --form step --batch 2 --memory-limit 16000000\n"
      "  fenestra explain model lenet5 --form step --format dot\n"
      "  fenestra explain model runs/lenet-digits/model.safetensors");

  std::int64_t cases = 0;
  std::uint64_t seed = 1;
  CLI::App* check_command =
      app.add_subcommand("check", "The laws on one problem, or on random ones");
  check_command->add_option("operator", op, "its name, or all, kernels, bits")->required();
  check_command->add_option("problem", problem, "a problem string; left out: random problems")
      ->type_name("TEXT");
  check_command->add_option("--cases", cases, "random problems per operator, 100 by default")
      ->check(whole_number<std::int64_t>(1))
      ->type_name("N");
  double minutes = 0;
  check_command->add_option("--minutes", minutes, "kernels and bits: how long, instead of --cases")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  bool hash = false;
  check_command->add_flag(
      "--hash", hash, "bits: print one number for the bits of all results, compare nothing");
  check_command->add_option("--seed", seed, "seed of problems and data, 1 by default")
      ->check(whole_number<std::uint64_t>(0))
      ->type_name("S");
  check_command->add_flag("--json", json, "print JSON");
  check_command->footer(
      "\nExamples:\n"
      "  fenestra check all --cases 100 --seed 1\n"
      "  fenestra check conv --cases 1000\n"
      "  fenestra check conv \"x=2x4x9x8 w=6x4x3x2 stride=2,1 padding=1:0,0:1 dilation=1,2\"\n"
      "  fenestra check kernels --minutes 10 --seed 7\n"
      "  fenestra check kernels \"conv x=1x1x8x8 w=1x1x5x5 stride=2 padding=2\"\n"
      "  fenestra check bits --cases 200\n"
      "\nkernels holds every kernel to the specification on small integers, by equality; bits\n"
      "compares the bits of results over threads and batches.\n"
      "\nLaws:\n" +
      law_list() + "\nExit code 1: a law is broken.");

  CLI::App* info_command =
      app.add_subcommand("info", "Version, compiler, scalars and operators of this build");
  info_command->add_flag("--json", json, "print JSON");
  info_command->footer("\nExamples:\n  fenestra info\n  fenestra info --json");

  for (CLI::App* known : {explain_command, model_command, check_command, info_command}) {
    known->set_help_flag("-h,--help", "print this help");
  }
  std::vector<std::string_view> names{"explain", "check", "info"};
  for (const RegisteredCommand& known : networks) {
    known.app->set_help_flag("-h,--help", "print this help");
    names.push_back(known.app->get_name());
  }

  std::string command;
  try {
    require_command({argv + 1, argv + argc}, names);
    app.parse(argc, argv);
    for (const CLI::App* parsed : app.get_subcommands()) {
      command = parsed->get_name();
    }
    if (show_version || command == "info") {
      return info(json);
    }
    for (const RegisteredCommand& known : networks) {
      if (known.app->parsed()) {
        return known.run();
      }
    }
    const auto given = [&](const char* option, const auto& value) {
      const bool is_given = app.get_subcommand(command)->count(option) > 0;
      return is_given ? std::optional(value) : std::nullopt;
    };
    if (model_command->parsed()) {
      command = "explain model";
      if (model_command->count("--threads") > 0) {
        model.threads = model_threads;
      }
      if (model_command->count("--output") > 0) {
        model.output = model_output;
      }
      if (model_command->count("--input") > 0) {
        model.input = model_input;
      }
      model.form = meaning<ModelForm>(
          form, {{"run", ModelForm::run}, {"step", ModelForm::step}, {"infer", ModelForm::infer}});
      model.type = meaning<graph::DataType>(
          type, {{"f32", graph::DataType::f32}, {"f64", graph::DataType::f64}});
      model.format = meaning<ModelFormat>(json ? "json" : format,
                                          {{"text", ModelFormat::text},
                                           {"dot", ModelFormat::dot},
                                           {"html", ModelFormat::html},
                                           {"json", ModelFormat::json}});
      return explain_model(model);
    }
    if (command == "explain") {
      return explain({.op = given("operator", op),
                      .problem = given("problem", CLI::detail::join(problem, " ")),
                      .axis = given("--axis", axis),
                      .kernels = with_kernels,
                      .json = json});
    }
    if (command == "check") {
      return check({.op = op,
                    .problem = given("problem", CLI::detail::join(problem, " ")),
                    .cases = given("--cases", cases),
                    .minutes = given("--minutes", minutes),
                    .hash = hash,
                    .seed = seed,
                    .json = json});
    }
    return usage("a command is missing: train, eval, run, summary, explain, check or info", "");
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      return app.exit(error, std::cout, std::cerr);
    }
    for (const CLI::App* parsed : app.get_subcommands()) {
      command = parsed->get_name();
    }
    return usage(error.what(), command);
  } catch (const UsageError& error) {
    return usage(error.what(), command);
  } catch (const Error& error) {
    if (json) {
      print_error_json(error, op);
    }
    return refuse(std::string("[") + std::string(code_name(error.code())) + "] " + error.what());
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
  const int code = fenestra::cli::run(argc, argv);
  if (!std::cout.flush()) {
    std::cerr << "fenestra: standard output cannot be written\n";
    return fenestra::cli::bad_input;
  }
  return code;
}

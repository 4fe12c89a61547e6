// `fenestra info` and `fenestra version`: what this build is.
#include <fenestra/base/version.hpp>
#include <fenestra/cli/command_line.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/wrap.hpp>
#include <fenestra/ops/entry.hpp>

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

}  // namespace

ExitCode info(bool as_json) {
  std::vector<std::string> scalars{
      "float", "double", "long double", "Dual", "Rational", "Interval"};
  if (kHaveGmp) {
    scalars.emplace_back("GmpRational");
  }
  std::vector<std::string_view> operators;
  for (const OperatorEntry& entry : fenestra::operators()) {
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
            << wrapped(columns({{"compiler", std::string(kCompiler)},
                                {"scalars", joined(scalars)},
                                {"gmp", kHaveGmp ? "yes" : "no"},
                                {"operators", joined(operators)}},
                               0),
                       terminal_of(Stream::out));
  return fine;
}

void add_info(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      app.add_subcommand("info", "Version, compiler, scalars and operators of this build");
  add_json(*command, line);
  command->footer("\nExamples:\n  fenestra info\n  fenestra info --json");
  line.actions[command] = [&line] { return info(line.json); };
}

void add_version(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand("version", "The version alone");
  add_json(*command, line);
  command->footer("\nExamples:\n  fenestra version\n  fenestra version --json");
  line.actions[command] = [&line] {
    if (line.json) {
      print_json({{"version", version}});
    } else {
      std::cout << "fenestra " << version << "\n";
    }
    return fine;
  };
}

}  // namespace fenestra::cli

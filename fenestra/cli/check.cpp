// `fenestra check`: the laws on one problem, or on random ones. The laws themselves are
// check/laws.hpp's; this file draws problems, counts, and says what to type to see a failure again.
#include <fenestra/base/parallel.hpp>
#include <fenestra/check/entry.hpp>
#include <fenestra/cli/check_onnx.hpp>
#include <fenestra/cli/command_line.hpp>
#include <fenestra/cli/table.hpp>
#include <fenestra/cli/terminal.hpp>
#include <fenestra/cli/text.hpp>
#include <fenestra/cli/wrap.hpp>
#include <fenestra/kernels/candidate.hpp>

#include <array>
#include <optional>
#include <utility>

namespace fenestra::cli {

namespace {

using check::kLaws;
using check::Law;
using check::law_name;
using check::LawEntry;
using check::LawOutcome;
using check::Verdict;

constexpr std::int64_t kDefaultCases = 100;
/// Multiply-adds from which the exact laws take seconds rather than moments.
constexpr Index kSlow = 2'000'000;

/// By name, so that the harness may gain a law without this file; a test asks for the meaning of
/// every one.
constexpr std::pair<std::string_view, std::string_view> kMeanings[] = {
    {"answers", "every answer that the operator states comes out"},
    {"string", "the geometry prints, parses back, compares and hashes equal"},
    {"adjoint", "<y_bar, jvp(x_dot)> = <vjp(y_bar), x_dot>"},
    {"duals", "the jvp is the tangent of the forward pass in dual numbers"},
    {"nested", "the derivative of the jvp is that of duals of duals"},
    {"differences", "the jvp is the central difference"},
    {"intervals", "the interval result encloses the exact one"},
    {"layouts", "channels first = channels last"},
    {"batch", "a sample alone = the sample in its batch"},
    {"groups", "groups = one operator per group, concatenated"},
    {"sizes", "the inverse operator leads back to the sizes"},
    {"engine", "tape and jets = the specification"},
    {"graph", "a compiled graph = tape and jets, to the bit"},
    {"rounding", "f32 and f64 stay within the a-priori rounding bound"},
    {"kernels", "every kernel that accepts stays within it, on every instruction set"},
};

std::string_view law_meaning(Law law) {
  for (const auto& [name, meaning] : kMeanings) {
    if (name == law_name(law)) {
      return meaning;
    }
  }
  return "";
}

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds: return "holds";
    case Verdict::broken: return "broken";
    case Verdict::not_applicable: return "not applicable";
  }
  return "";
}

const LawOutcome* first_broken(const std::vector<LawOutcome>& outcomes) {
  for (const LawOutcome& outcome : outcomes) {
    if (outcome.verdict == Verdict::broken) {
      return &outcome;
    }
  }
  return nullptr;
}

// One problem.

Json outcome_json(const LawOutcome& outcome) {
  const bool is_applicable = outcome.verdict != Verdict::not_applicable;
  Json json = {{"law", law_name(outcome.law)},
               {"meaning", law_meaning(outcome.law)},
               {"verdict", is_applicable ? verdict_name(outcome.verdict) : "not_applicable"},
               {"detail", nullptr}};
  if (outcome.verdict == Verdict::broken) {
    json["detail"] = outcome.detail;
  }
  return json;
}

void print_text(const LawEntry& entry,
                const std::string& problem,
                std::uint64_t seed,
                const std::vector<LawOutcome>& outcomes) {
  std::vector<std::vector<std::string>> rows;
  int counts[3] = {};  // by verdict
  for (const LawOutcome& outcome : outcomes) {
    ++counts[static_cast<int>(outcome.verdict)];
    rows.push_back({std::string(law_name(outcome.law)),
                    std::string(verdict_name(outcome.verdict)),
                    outcome.verdict == Verdict::broken ? outcome.detail
                                                       : std::string(law_meaning(outcome.law))});
  }
  std::cout << entry.name << "\n  " << problem << "\n  seed " << seed << "\n\n"
            << wrapped(columns(rows, 2), terminal_of(Stream::out)) << "\n"
            << "laws: " << counts[static_cast<int>(Verdict::holds)] << " hold, "
            << counts[static_cast<int>(Verdict::broken)] << " broken, "
            << counts[static_cast<int>(Verdict::not_applicable)] << " not applicable\n";
}

ExitCode check_problem(const LawEntry& entry, const CheckOptions& options) {
  const Description description = entry.describe(*options.problem);
  if (description.costs && description.costs->multiply_adds > kSlow) {
    std::cerr << "fenestra: this is exact arithmetic on "
              << grouped(description.costs->multiply_adds)
              << " multiply-adds; it may take a while\n";
  }
  const std::vector<LawOutcome> outcomes = entry.check(*options.problem, options.seed);
  const bool passed = first_broken(outcomes) == nullptr;
  if (options.json) {
    Json laws = Json::array();
    for (const LawOutcome& outcome : outcomes) {
      laws.push_back(outcome_json(outcome));
    }
    print_json({{"operator", entry.name},
                {"problem", description.problem},
                {"seed", options.seed},
                {"passed", passed},
                {"laws", std::move(laws)}});
  } else {
    print_text(entry, description.problem, options.seed, outcomes);
  }
  return passed ? fine : law_broken;
}

// Random problems.

struct Count {
  std::int64_t held = 0;
  bool applied = false;  ///< at least once
};

/// How often each law held on the random problems of one operator.
struct Tally {
  std::string_view op;
  std::array<Count, kLaws.size()> counts;

  void add(const std::vector<LawOutcome>& outcomes) {
    for (const LawOutcome& outcome : outcomes) {
      Count& count = counts[static_cast<std::size_t>(outcome.law)];
      count.held += outcome.verdict == Verdict::holds ? 1 : 0;
      count.applied = count.applied || outcome.verdict != Verdict::not_applicable;
    }
  }
};

struct Failure {
  std::string_view op;
  LawOutcome outcome;
  std::string problem;
  std::uint64_t seed = 0;
  std::int64_t number = 0;  ///< of the case, from 1

  std::string command() const {
    return "fenestra check " + std::string(op) + " \"" + problem + "\" --seed " +
           std::to_string(seed);
  }
};

/// The problems of an operator depend on the seed alone, not on which operators are checked with
/// it.
std::optional<Failure> check_operator(const LawEntry& entry,
                                      std::int64_t cases,
                                      std::uint64_t seed,
                                      ProgressLine& progress,
                                      Tally& tally) {
  Random random(seed);
  for (std::int64_t number = 1; number <= cases; ++number) {
    progress.show([&] {
      return ProgressState{.label = "checking " + std::string(entry.name) + " " +
                                    std::to_string(number) + "/" + std::to_string(cases),
                           .part = static_cast<double>(number - 1) / static_cast<double>(cases),
                           .details = ""};
    });
    const std::string problem = entry.random_problem(random);
    const std::uint64_t case_seed = random.bits() >> 32;  // short enough to type
    const std::vector<LawOutcome> outcomes = entry.check(problem, case_seed);
    tally.add(outcomes);
    if (const LawOutcome* broken = first_broken(outcomes)) {
      return Failure{entry.name, *broken, problem, case_seed, number};
    }
  }
  return {};
}

void print_tallies(const std::vector<Tally>& tallies) {
  std::vector<std::vector<std::string>> rows{{"operator"}};
  for (const Law law : kLaws) {
    rows.front().emplace_back(law_name(law));
  }
  for (const Tally& tally : tallies) {
    rows.push_back({std::string(tally.op)});
    for (const Count& count : tally.counts) {
      rows.back().push_back(count.applied ? std::to_string(count.held) : "-");
    }
  }
  std::vector<Align> align(rows.front().size(), Align::right);
  align.front() = Align::left;
  std::cout << table_text(rows, {.align = align}, terminal_of(Stream::out));
}

void print_failure(const Failure& failure, std::int64_t cases) {
  const Law law = failure.outcome.law;
  std::cout << "\n"
            << failure.op << " breaks the law \"" << law_name(law) << "\": " << law_meaning(law)
            << "\n"
            << columns({{"case", std::to_string(failure.number) + " of " + std::to_string(cases)},
                        {"problem", failure.problem},
                        {"detail", failure.outcome.detail},
                        {"again", failure.command()}},
                       2);
}

Json tallies_json(const std::vector<Tally>& tallies) {
  Json operators = Json::object();
  for (const Tally& tally : tallies) {
    Json counts = Json::object();
    for (const Law law : kLaws) {
      const Count& count = tally.counts[static_cast<std::size_t>(law)];
      counts[std::string(law_name(law))] = count.applied ? Json(count.held) : Json(nullptr);
    }
    operators[std::string(tally.op)] = std::move(counts);
  }
  return operators;
}

Json failure_json(const Failure& failure) {
  return {{"operator", failure.op},
          {"law", law_name(failure.outcome.law)},
          {"meaning", law_meaning(failure.outcome.law)},
          {"detail", failure.outcome.detail},
          {"problem", failure.problem},
          {"seed", failure.seed},
          {"case", failure.number},
          {"command", failure.command()}};
}

ExitCode check_random(std::span<const LawEntry> entries, const CheckOptions& options) {
  const std::int64_t cases = options.cases.value_or(kDefaultCases);
  std::vector<Tally> tallies;
  std::optional<Failure> failure;
  {
    ProgressLine progress;
    for (const LawEntry& entry : entries) {
      tallies.push_back({entry.name, {}});
      failure = check_operator(entry, cases, options.seed, progress, tallies.back());
      if (failure) {
        break;
      }
    }
  }
  if (options.json) {
    print_json({{"cases", cases},
                {"seed", options.seed},
                {"passed", !failure},
                {"operators", tallies_json(tallies)},
                {"broken", failure ? failure_json(*failure) : Json(nullptr)}});
  } else {
    print_tallies(tallies);
    if (failure) {
      print_failure(*failure, cases);
    } else {
      std::cout << "\n"
                << wrapped("every law holds wherever it applies; " + std::to_string(cases) +
                               (cases == 1 ? " problem" : " problems") + " per operator, seed " +
                               std::to_string(options.seed) + "\n",
                           terminal_of(Stream::out));
    }
  }
  return failure ? law_broken : fine;
}

/// What each law says, a line each.
std::string law_list() {
  std::vector<std::vector<std::string>> rows;
  for (const Law law : kLaws) {
    rows.push_back({std::string(law_name(law)), std::string(law_meaning(law))});
  }
  return columns(rows, 2);
}

}  // namespace

ExitCode check(const CheckOptions& options) {
  if (options.problem && (options.cases || options.minutes)) {
    throw UsageError("check takes a problem or --cases or --minutes, not both");
  }
  // A mistake in the environment is the caller's, and breaks no law.
  kernels::apply_isa_limit();
  threads();
  if (options.op == "kernels" || options.op == "bits") {
    return options.op == "kernels" ? check_kernels(options) : check_bits(options);
  }
  if (options.minutes || options.hash) {
    throw UsageError(options.minutes ? "--minutes is for check kernels and check bits"
                                     : "--hash is for check bits");
  }
  if (options.op == "all") {
    if (options.problem) {
      throw UsageError("check all draws its own problems; name the operator of this one");
    }
    return check_random(check::registry(), options);
  }
  if (is_onnx(options.op)) {
    return check_onnx(options);
  }
  const LawEntry& entry = check::find_laws(options.op);
  return options.problem ? check_problem(entry, options) : check_random({&entry, 1}, options);
}

void add_check(CLI::App& app, CommandLine& line) {
  const auto options = std::make_shared<CheckOptions>();
  // A problem may come in one argument or in several: the quotes are easily forgotten.
  const auto problem = std::make_shared<std::vector<std::string>>();
  const auto cases = std::make_shared<std::int64_t>(0);
  const auto minutes = std::make_shared<double>(0);
  CLI::App* command = app.add_subcommand("check", "The laws on one problem, or on random ones");
  CLI::Option* op = command->add_option(
      "operator", options->op, "its name, or all, kernels, bits, or an ONNX file");
  op->required();
  line.words[op] = {"all", "kernels", "bits"};
  for (const LawEntry& entry : check::registry()) {
    line.words[op].emplace_back(entry.name);
  }
  CLI::Option* problem_option =
      command->add_option("problem", *problem, "a problem string; left out: random problems");
  problem_option->type_name("TEXT");
  CLI::Option* cases_option =
      command->add_option("--cases", *cases, "random problems per operator, 100 by default");
  cases_option->check(whole_number<std::int64_t>(1))->type_name("N");
  CLI::Option* minutes_option =
      command->add_option("--minutes", *minutes, "kernels and bits: how long, instead of --cases");
  minutes_option->check(CLI::PositiveNumber)->type_name("N");
  command->add_flag("--hash",
                    options->hash,
                    "bits: print one number for the bits of all results, compare nothing");
  command->add_option("--seed", options->seed, "seed of problems and data, 1 by default")
      ->check(whole_number<std::uint64_t>(0))
      ->type_name("S");
  add_json(*command, line);
  command->footer(
      "\nExamples:\n"
      "  fenestra check all --cases 100 --seed 1\n"
      "  fenestra check conv --cases 1000\n"
      "  fenestra check conv \"x=2x4x9x8 w=6x4x3x2 stride=2,1 padding=1:0,0:1 dilation=1,2\"\n"
      "  fenestra check kernels --minutes 10 --seed 7\n"
      "  fenestra check kernels \"conv x=1x1x8x8 w=1x1x5x5 stride=2 padding=2\"\n"
      "  fenestra check bits --cases 200\n"
      "  fenestra check model.onnx \"x=1x3x224x224\"\n"
      "\nkernels holds every kernel to the specification on small integers, by equality; bits\n"
      "compares the bits of results over threads and batches. Of an ONNX file, all that keeps it\n"
      "from running or from being trained is listed.\n"
      "\nLaws:\n" +
      law_list() + "\nExit code 1: a law is broken.");
  line.actions[command] = [=, &line] {
    line.about = options->op;
    options->problem = given(problem_option, CLI::detail::join(*problem, " "));
    options->cases = given(cases_option, *cases);
    options->minutes = given(minutes_option, *minutes);
    options->json = line.json;
    return check(*options);
  };
}

}  // namespace fenestra::cli

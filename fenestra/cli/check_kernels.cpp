// `fenestra check kernels` and `fenestra check bits`: the laws on kernels on one problem, or on
// problem after problem. The laws and the problems are check/soak.hpp's; this file reports.
#include <fenestra/check/soak.hpp>
#include <fenestra/cli/command.hpp>
#include <fenestra/cli/interrupt.hpp>
#include <fenestra/cli/terminal.hpp>
#include <fenestra/cli/text.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace fenestra::cli {

namespace {

using check::SoakFailure;
using check::SoakLimits;
using check::SoakProblem;
using check::SoakReport;

constexpr std::int64_t kDefaultProblems = 1000;

std::string_view meaning_of(std::string_view law) {
  return law == "bits" ? "bits depend neither on the number of threads nor on the batch"
                       : "every kernel computes what the specification computes";
}

/// Says which problem ran when a kernel ended the process: what a soak must not swallow. The text
/// is ready before each problem, since a handler may only write.
class LastWords {
 public:
  explicit LastWords(std::string_view law) : law_(law) {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      previous_[i] = std::signal(kSignals[i], &LastWords::tell);
    }
  }
  ~LastWords() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      std::signal(kSignals[i], previous_[i]);
    }
    text_[0] = '\0';
  }
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

  void about(const SoakProblem& problem) const {
    const SoakFailure failure{std::string(law_), problem, 0, {}};
    std::snprintf(text_,
                  sizeof text_,
                  "fenestra: a kernel ended the process\n  again  %s\n",
                  failure.command().c_str());
  }

 private:
  static constexpr std::array kSignals = {SIGSEGV, SIGFPE, SIGILL, SIGBUS, SIGABRT};

  static void tell(int signal) {
    const auto written = write(STDERR_FILENO, text_, std::strlen(text_));
    static_cast<void>(written);
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }

  static inline char text_[2048] = "";
  std::string_view law_;
  std::array<void (*)(int), kSignals.size()> previous_{};
};

double per_second(const SoakReport& report) {
  return static_cast<double>(report.problems) / std::max(report.seconds, 1e-9);
}

std::string with_digits(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

void print_candidates(const SoakReport& report) {
  std::vector<std::vector<std::string>> rows{{"candidate", "problems"}};
  for (const auto& [name, count] : report.taken) {
    rows.push_back({name, std::to_string(count)});
  }
  if (rows.size() > 1) {
    std::cout << columns(rows, 0, Align::right) << "\n";
  }
}

void print_failure(const SoakFailure& failure) {
  std::cout << failure.problem.entry->name << " breaks the law \"" << failure.law
            << "\": " << meaning_of(failure.law) << "\n"
            << columns({{"problem", failure.problem.text()},
                        {"candidate", failure.failure.candidate},
                        {"isa", failure.failure.isa},
                        {"threads", std::to_string(failure.failure.threads)},
                        {"direction", failure.failure.quantity},
                        {"detail", failure.failure.detail},
                        {"again", failure.command()}},
                       2)
            << "\n";
}

Json failure_json(const SoakFailure& failure) {
  return {{"law", failure.law},
          {"operator", failure.problem.entry->name},
          {"problem", failure.problem.problem},
          {"seed", failure.problem.seed},
          {"number", failure.number},
          {"candidate", failure.failure.candidate},
          {"isa", failure.failure.isa},
          {"threads", failure.failure.threads},
          {"direction", failure.failure.quantity},
          {"detail", failure.failure.detail},
          {"command", failure.command()}};
}

ExitCode report_soak(const SoakReport& report, const CheckOptions& options) {
  if (options.json) {
    Json taken = Json::object();
    for (const auto& [name, count] : report.taken) {
      taken[name] = count;
    }
    Json json = {{"law", options.op == "bits" ? "bits" : "integers"},
                 {"seed", options.seed},
                 {"problems", report.problems},
                 {"seconds", report.seconds},
                 {"problems_per_second", per_second(report)},
                 {"passed", !report.failure},
                 {"candidates", std::move(taken)},
                 {"broken", report.failure ? failure_json(*report.failure) : Json(nullptr)}};
    if (options.hash) {
      json["hash"] = report.hash;
    }
    print_json(json);
    return report.failure ? law_broken : fine;
  }
  print_candidates(report);
  if (report.failure) {
    print_failure(*report.failure);
  }
  if (options.hash) {
    std::cout << "hash " << report.hash << "\n";
  }
  std::cout << grouped(report.problems) << (report.problems == 1 ? " problem" : " problems")
            << " in " << with_digits(report.seconds, 1) << " s, "
            << with_digits(per_second(report), 1) << " problems per second, seed " << options.seed
            << "\n";
  return report.failure ? law_broken : fine;
}

using Soak = SoakReport (*)(std::uint64_t, const SoakLimits&, const check::SoakProgress&);
using OneProblem = SoakReport (*)(const SoakProblem&);

ExitCode run_soak(const CheckOptions& options, Soak soak, OneProblem one) {
  const LastWords words(options.op == "bits" ? "bits" : "integers");
  if (options.problem) {
    const SoakProblem problem = check::parse_soak_problem(*options.problem, options.seed);
    words.about(problem);
    return report_soak(one(problem), options);
  }
  SoakLimits limits;
  if (options.minutes) {
    limits.seconds = 60 * *options.minutes;
  }
  if (options.cases || !options.minutes) {
    limits.problems = options.cases.value_or(kDefaultProblems);
  }
  SoakReport report;
  const InterruptWatch listens;
  {
    ProgressLine progress;
    report = soak(options.seed, limits, [&](const SoakProblem& problem, const SoakReport& so_far) {
      words.about(problem);
      progress.show([&] {
        return ProgressState{.label = "checking " + options.op + " " + grouped(so_far.problems) +
                                      ", " + with_digits(per_second(so_far), 0) + " per second, " +
                                      std::string(problem.entry->name),
                             .part = -1,
                             .details = ""};
      });
      return !interrupted();
    });
  }
  // What held so far is said all the same: it may have taken hours.
  const ExitCode code = report_soak(report, options);
  return code == fine && interrupted() ? was_interrupted : code;
}

}  // namespace

ExitCode check_kernels(const CheckOptions& options) {
  if (options.hash) {
    throw UsageError("--hash is for check bits");
  }
  return run_soak(options, &check::soak_integers, &check::check_integers);
}

ExitCode check_bits(const CheckOptions& options) {
  if (options.hash && options.problem) {
    throw UsageError("--hash draws its own problems");
  }
  return run_soak(
      options, options.hash ? &check::hash_bits : &check::soak_bits, &check::check_bits);
}

}  // namespace fenestra::cli

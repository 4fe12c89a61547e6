// Timing all candidates of a problem in turns, by the clock of `explain --time`.
#include <fenestra/base/parallel.hpp>
#include <fenestra/bench/choice.hpp>
#include <fenestra/check/kernel_entry.hpp>
#include <fenestra/check/soak.hpp>
#include <fenestra/kernels/isa.hpp>
#include <fenestra/ops/entry.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <utility>

namespace fenestra::bench {

namespace {

/// The least and the most of multiply-adds or elements of a random problem, as powers of two: less
/// is the time of a call and not of a kernel, more does not fit into the time.
constexpr int kLeastDigits = 12;
constexpr int kMostDigits = 23;

struct ChoiceProblem {
  const check::KernelEntry* entry = nullptr;
  std::string problem;
  std::string source;
};

/// By turns a layer of a network, in an order of its own, so that a short run sees all kinds of
/// them, and a random problem; random ones alone when there are no layers any more.
class ChoiceProblems {
 public:
  explicit ChoiceProblems(std::uint64_t seed) : random_(seed) {
    for (const check::NetworkLayer& layer : check::network_layers()) {
      const check::KernelEntry& entry = check::find_kernels(layer.op);
      layers_.push_back({&entry, layer.problem, layer.source});
      if (std::string other = entry.other_layout(layer.problem); !other.empty()) {
        layers_.push_back({&entry, std::move(other), layer.source + ", other layout"});
      }
    }
    for (std::size_t i = layers_.size(); i > 1; --i) {
      const auto other = static_cast<std::size_t>(random_.between(0, static_cast<Index>(i) - 1));
      std::swap(layers_[i - 1], layers_[other]);
    }
  }

  ChoiceProblem next() {
    is_layer_ = !is_layer_;
    if (!is_layer_ || layers_.empty()) {
      return drawn();
    }
    ChoiceProblem layer = std::move(layers_.back());
    layers_.pop_back();
    return layer;
  }

 private:
  ChoiceProblem drawn() {
    for (;;) {
      const check::KernelEntry& entry = check::draw_kernels(random_);
      const Index most = Index{1} << random_.between(kLeastDigits + 2, kMostDigits);
      std::string problem = entry.random_problem(random_, most);
      if (entry.work(problem) >= Index{1} << kLeastDigits) {
        return {&entry, std::move(problem), ""};
      }
    }
  }

  Random random_;
  std::vector<ChoiceProblem> layers_;
  bool is_layer_ = false;
};

struct Contestant {
  KernelChoice choice;
  double seconds = std::numeric_limits<double>::infinity();
};

bool is_specification(const KernelChoice& choice) { return choice.name.ends_with("_spec"); }

/// Those that accept, by direction and type, in the order in which they are asked.
std::vector<std::vector<Contestant>> contests(const ChoiceProblem& problem) {
  std::map<std::pair<std::string, std::string>, std::vector<Contestant>> found;
  for (const KernelChoice& choice :
       find_operator(problem.entry->name).describe(problem.problem).kernels) {
    if (choice.refusal.empty() && !is_specification(choice)) {
      found[{choice.direction, std::string(kernel_type(choice))}].push_back({choice});
    }
  }
  std::vector<std::vector<Contestant>> result;
  for (auto& [key, contestants] : found) {
    if (contestants.size() > 1) {
      result.push_back(std::move(contestants));
    }
  }
  return result;
}

/// One turn for each; false where the direction cannot be timed by itself.
bool take_turns(const ChoiceProblem& problem, double budget, std::vector<Contestant>& contestants) {
  for (Contestant& one : contestants) {
    const auto seconds =
        find_operator(problem.entry->name).time(problem.problem, one.choice, budget);
    if (!seconds) {
      return false;
    }
    one.seconds = std::min(one.seconds, *seconds);
  }
  return true;
}

const Contestant& best_of(const std::vector<Contestant>& contestants) {
  return *std::min_element(contestants.begin(), contestants.end(), [](auto& a, auto& b) {
    return a.seconds < b.seconds;
  });
}

void add(const ChoiceProblem& problem, double budget, std::vector<Choice>& choices) {
  // What looks wrong is timed again: a disturbance of one turn is no mistake of the choice.
  constexpr int kTurns = 2;
  constexpr int kMoreTurns = 6;
  for (std::vector<Contestant>& contestants : contests(problem)) {
    bool is_timed = true;
    for (int turn = 0; turn < kMoreTurns && is_timed; ++turn) {
      if (turn >= kTurns && contestants[0].seconds <= 1.05 * best_of(contestants).seconds) {
        break;
      }
      is_timed = take_turns(problem, budget, contestants);
    }
    if (is_timed) {
      const Contestant& chosen = contestants[0];
      const Contestant& best = best_of(contestants);
      choices.push_back({std::string(kernels::isa_name()),
                         std::string(problem.entry->name) + " " + problem.problem,
                         problem.source,
                         chosen.choice.direction,
                         chosen.choice.name,
                         best.choice.name,
                         chosen.seconds,
                         best.seconds});
    }
  }
}

}  // namespace

std::vector<Choice> measure_choices(const ChoiceEffort& effort) {
  using Clock = std::chrono::steady_clock;
  const int before = threads();
  set_threads(1);
  std::vector<Choice> choices;
  for (const std::string_view isa : kernels::supported_isas()) {
    if (isa == "baseline") {
      continue;
    }
    const kernels::ScopedIsa scope(isa);
    ChoiceProblems problems(effort.seed);
    const auto begin = Clock::now();
    while (std::chrono::duration<double>(Clock::now() - begin).count() < effort.seconds) {
      add(problems.next(), effort.budget, choices);
    }
  }
  set_threads(before);
  return choices;
}

BitsLaw check_bits(double seconds, std::uint64_t seed) {
  const check::SoakReport report = check::soak_bits(seed, {.problems = {}, .seconds = seconds}, {});
  return {static_cast<std::uint64_t>(report.problems),
          report.failure ? report.failure->command() : ""};
}

}  // namespace fenestra::bench

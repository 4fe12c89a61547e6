// Drawing problems, running a law on each, counting.
#include <fenestra/check/soak.hpp>

#include <fenestra/check/networks.hpp>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <sstream>
#include <utility>

namespace fenestra::check {

namespace {

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  const std::size_t last = text.find_last_not_of(" \t");
  return first == std::string_view::npos ? "" : std::string(text.substr(first, last - first + 1));
}

std::vector<NetworkLayer> read_layers() {
  std::vector<NetworkLayer> layers;
  std::istringstream lines{std::string(kNetworks)};
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find('#'));
    const std::size_t first = line.find('|');
    const std::size_t second = line.find('|', first + 1);
    if (second == std::string::npos) {
      if (!trimmed(line).empty()) {
        throw Error(ErrorCode::bad_file,
                    "networks.txt: \"" + line + "\" is not a layer" +
                        "\n  fix: operator | problem | network and layer");
      }
      continue;
    }
    layers.push_back({trimmed(line.substr(0, first)),
                      trimmed(line.substr(first + 1, second - first - 1)),
                      trimmed(line.substr(second + 1))});
  }
  return layers;
}

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Adds what a law says of one problem; false where it is broken.
bool add(SoakReport& report,
         std::string_view law,
         const SoakProblem& problem,
         KernelReport&& said) {
  ++report.problems;
  for (const std::string& candidate : said.taken) {
    ++report.taken[candidate];
  }
  if (!said.failure) {
    return true;
  }
  report.failure =
      SoakFailure{std::string(law), problem, report.problems, std::move(*said.failure)};
  return false;
}

/// Calls visit(problem) for problem after problem until a limit, or until it or `progress` says no.
template <class Next, class Visit>
SoakReport run(const SoakLimits& limits, const SoakProgress& progress, Next&& next, Visit&& visit) {
  SoakReport report;
  const Stopwatch watch;
  while ((!limits.problems || report.problems < *limits.problems) &&
         (!limits.seconds || watch.seconds() < *limits.seconds)) {
    const SoakProblem problem = next();
    report.seconds = watch.seconds();
    if ((progress && !progress(problem, report)) || !visit(problem, report)) {
      break;
    }
  }
  report.seconds = watch.seconds();
  return report;
}

/// Those of operators that are registered: a test brings a registry of its own.
const std::vector<NetworkLayer>& known_layers() {
  static const std::vector<NetworkLayer> layers = [] {
    std::vector<NetworkLayer> known;
    for (const NetworkLayer& layer : network_layers()) {
      for (const KernelEntry& entry : kernel_registry()) {
        if (entry.name == layer.op) {
          known.push_back(layer);
        }
      }
    }
    return known;
  }();
  return layers;
}

/// Every layer of the networks in its own layout, then random problems.
class BitsProblems {
 public:
  explicit BitsProblems(std::uint64_t seed) : random_(seed), problems_(seed) {}
  SoakProblem next() {
    const std::vector<NetworkLayer>& layers = known_layers();
    if (layer_ < layers.size()) {
      const NetworkLayer& layer = layers[layer_++];
      return {&find_kernels(layer.op), layer.problem, random_.bits() >> 32};
    }
    return problems_.next();
  }

 private:
  Random random_;
  SoakProblems problems_;
  std::size_t layer_ = 0;
};

}  // namespace

const std::vector<NetworkLayer>& network_layers() {
  static const std::vector<NetworkLayer> layers = read_layers();
  return layers;
}

const KernelEntry& draw_kernels(Random& random) {
  const std::span<const KernelEntry> entries = kernel_registry();
  const int shares =
      std::accumulate(entries.begin(), entries.end(), 0, [](int sum, const KernelEntry& e) {
        return sum + e.share;
      });
  Index drawn = random.between(0, shares - 1);
  const KernelEntry* entry = entries.data();
  while (drawn >= entry->share) {
    drawn -= entry->share;
    ++entry;
  }
  return *entry;
}

SoakProblem parse_soak_problem(std::string_view text, std::uint64_t seed) {
  const std::string whole = trimmed(text);
  const std::size_t space = std::min(whole.find(' '), whole.size());
  return {&find_kernels(whole.substr(0, space)), trimmed(whole.substr(space)), seed};
}

SoakProblem SoakProblems::next_layer() {
  const std::vector<NetworkLayer>& layers = known_layers();
  const auto last = static_cast<Index>(layers.size()) - 1;
  const NetworkLayer& layer = layers[static_cast<std::size_t>(random_.between(0, last))];
  const KernelEntry& entry = find_kernels(layer.op);
  std::string problem = random_.chance(2) ? entry.other_layout(layer.problem) : layer.problem;
  return {&entry, problem.empty() ? layer.problem : std::move(problem), random_.bits() >> 32};
}

SoakProblem SoakProblems::next() {
  constexpr int kLayersOneIn = 32;
  // Most problems are small: what is wrong is wrong there too, and many fit into a second.
  constexpr int kLeastDigits = 8;
  constexpr int kMostDigits = 20;
  if (random_.chance(kLayersOneIn) && !known_layers().empty()) {
    return next_layer();
  }
  const KernelEntry& entry = draw_kernels(random_);
  const Index work = Index{1} << random_.between(kLeastDigits, kMostDigits);
  std::string problem = entry.random_problem(random_, work);
  return {&entry, std::move(problem), random_.bits() >> 32};  // a seed short enough to type
}

std::string SoakFailure::command() const {
  return "fenestra check " + std::string(law == "bits" ? "bits" : "kernels") + " \"" +
         problem.text() + "\" --seed " + std::to_string(problem.seed);
}

SoakReport soak_integers(std::uint64_t seed,
                         const SoakLimits& limits,
                         const SoakProgress& progress) {
  SoakProblems problems(seed);
  return run(
      limits,
      progress,
      [&] { return problems.next(); },
      [](const SoakProblem& p, SoakReport& report) {
        return add(report, "integers", p, p.entry->integers(p.problem, p.seed, Coverage::sampled));
      });
}

SoakReport check_integers(const SoakProblem& problem) {
  return run(
      {.problems = 1, .seconds = {}},
      {},
      [&] { return problem; },
      [](const SoakProblem& p, SoakReport& report) {
        return add(report, "integers", p, p.entry->integers(p.problem, p.seed, Coverage::full));
      });
}

SoakReport soak_bits(std::uint64_t seed, const SoakLimits& limits, const SoakProgress& progress) {
  BitsProblems problems(seed);
  return run(
      limits,
      progress,
      [&] { return problems.next(); },
      [](const SoakProblem& p, SoakReport& report) {
        return add(report, "bits", p, p.entry->bits(p.problem, p.seed));
      });
}

SoakReport check_bits(const SoakProblem& problem) {
  return run(
      {.problems = 1, .seconds = {}},
      {},
      [&] { return problem; },
      [](const SoakProblem& p, SoakReport& report) {
        return add(report, "bits", p, p.entry->bits(p.problem, p.seed));
      });
}

SoakReport hash_bits(std::uint64_t seed, const SoakLimits& limits, const SoakProgress& progress) {
  BitsProblems problems(seed);
  return run(
      limits,
      progress,
      [&] { return problems.next(); },
      [](const SoakProblem& p, SoakReport& report) {
        ++report.problems;
        report.hash = report.hash * 0x100000001b3ULL ^ p.entry->hash(p.problem, p.seed);
        return true;
      });
}

}  // namespace fenestra::check

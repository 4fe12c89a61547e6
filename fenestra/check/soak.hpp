// The soak: the laws on kernels on problem after problem, drawn from a seed or read from the layers
// of known networks (networks.txt), until a number of problems or a time is reached.
#pragma once

#include <fenestra/check/kernel_entry.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::check {

/// One line of networks.txt.
struct NetworkLayer {
  std::string op;
  std::string problem;
  std::string source;  ///< network and layer
};

/// The layers of networks.txt, as it was when this was built.
const std::vector<NetworkLayer>& network_layers();

/// One of the operators with kernels, each as often as its share says.
const KernelEntry& draw_kernels(Random& random);

/// A problem and the operator it belongs to, as one text: `conv x=1x3x8x8 w=4x3x3x3`.
struct SoakProblem {
  const KernelEntry* entry = nullptr;
  std::string problem;
  std::uint64_t seed = 0;

  std::string text() const { return std::string(entry->name) + " " + problem; }
};

/// Reads what `text` writes.
SoakProblem parse_soak_problem(std::string_view text, std::uint64_t seed);

/// Problem after problem; equal seeds draw equal ones. Every 32nd or so is a layer of a network in
/// one of its layouts.
class SoakProblems {
 public:
  explicit SoakProblems(std::uint64_t seed) : random_(seed) {}
  SoakProblem next();

 private:
  SoakProblem next_layer();
  Random random_;
};

struct SoakFailure {
  std::string law;  ///< "integers" or "bits"
  SoakProblem problem;
  std::int64_t number = 0;  ///< of the problem, from 1
  KernelFailure failure;

  /// What to type to see it again.
  std::string command() const;
};

struct SoakReport {
  std::int64_t problems = 0;
  double seconds = 0;
  std::map<std::string, std::int64_t> taken;  ///< how often each candidate ran
  std::optional<SoakFailure> failure;
  std::uint64_t hash = 0;  ///< of `hash_bits`
};

struct SoakLimits {
  std::optional<std::int64_t> problems;
  std::optional<double> seconds;
};

/// Called before each problem; says whether to go on.
using SoakProgress = std::function<bool(const SoakProblem&, const SoakReport&)>;

/// The law on integers, until a limit is reached, nobody wants to go on, or the law is broken.
SoakReport soak_integers(std::uint64_t seed,
                         const SoakLimits& limits,
                         const SoakProgress& progress);

/// The law on integers on one problem, on everything there is.
SoakReport check_integers(const SoakProblem& problem);

/// The law on bits, on every layer of the networks and on random problems; likewise.
SoakReport soak_bits(std::uint64_t seed, const SoakLimits& limits, const SoakProgress& progress);
SoakReport check_bits(const SoakProblem& problem);

/// The same problems as `soak_bits`: one number for the bits of all their results, on the threads
/// and the instruction set that are in use.
SoakReport hash_bits(std::uint64_t seed, const SoakLimits& limits, const SoakProgress& progress);

}  // namespace fenestra::check

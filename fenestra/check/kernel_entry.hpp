// The laws on kernels without the type of an operator: what the soak, the command line and the
// tests ask of one by name.
//
// - integers: every candidate that can do a problem computes what the specification computes, on
//   small integers, where all sums are exact, so the comparison is ==. Values, tangents and
//   cotangents, every instruction set of the machine, 1 to 16 threads. Where a result leaves the
//   integers (smooth maxima, Lp norms, transformed data) it stays within its rounding bound.
// - bits: on arbitrary data the bits depend neither on the number of threads nor on the batch that
//   a sample sits in.
#pragma once

#include <fenestra/ops/entry.hpp>
#include <fenestra/ops/operator.hpp>
#include <fenestra/spec/random.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra::check {

/// The numbers of threads that both laws try.
inline constexpr int kThreadCounts[] = {1, 2, 3, 7, 16};

enum class Coverage {
  sampled,  ///< every candidate once, on an instruction set and on threads drawn from the seed
  full,     ///< every candidate on every instruction set with every number of threads
};

/// Where a law on kernels is broken.
struct KernelFailure {
  std::string candidate;  ///< "default" where none was forced
  std::string isa;
  int threads = 0;
  std::string quantity;  ///< "value", "jvp" or "vjp of x"
  std::string detail;
};

struct KernelReport {
  std::optional<KernelFailure> failure;
  std::vector<std::string> taken;  ///< the candidates that ran, each once
};

struct KernelEntry {
  std::string_view name;  ///< of the operator
  int share = 1;          ///< how many problems it gets for each one of an operator with share 1
  /// A problem as large as those of networks, whose oracle takes the time of at most `work`
  /// multiply-adds.
  std::string (*random_problem)(Random& random, Index work);
  /// Multiply-adds and elements of a problem.
  Index (*work)(std::string_view problem);
  KernelReport (*integers)(std::string_view problem, std::uint64_t seed, Coverage coverage);
  KernelReport (*bits)(std::string_view problem, std::uint64_t seed);
  /// Of all results of the default candidates on real data, on the threads that are set.
  std::uint64_t (*hash)(std::string_view problem, std::uint64_t seed);
  /// Every candidate there is, whatever it accepts.
  std::vector<std::string> (*candidates)();
  /// The problem in the other layout; empty where there is none.
  std::string (*other_layout)(std::string_view problem);
};

/// Every operator that draws problems for these laws, in the order of the list.
std::span<const KernelEntry> kernel_registry();

inline const KernelEntry& find_kernels(std::string_view name) {
  return find_entry(kernel_registry(), name, "operator with kernels");
}

/// Whether an operator draws problems for the laws on kernels.
template <class Op>
concept HasKernelLaws = requires(Random& random) { Op::random(random, Reach::networks); };

/// Compiled once per operator, in a translation unit of its own; nothing where it has no such laws.
template <class Op>
std::optional<KernelEntry> make_kernel_entry();

}  // namespace fenestra::check

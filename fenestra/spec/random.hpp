// Random numbers and random windows for the laws: small, seeded, the same on every machine.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/spec/window.hpp>
#include <fenestra/tensor/shape.hpp>

#include <cstdint>

namespace fenestra {

/// SplitMix64. Not std:: because the standard fixes engines but not distributions, and a seed must
/// reproduce a case everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// Uniform on [low, high], both included.
  Index between(Index low, Index high) {
    return low + static_cast<Index>(bits() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int one_in) { return between(1, one_in) == 1; }
  /// Uniform on [-1, 1).
  double real() {
    return static_cast<double>(static_cast<std::int64_t>(bits() >> 11)) * 0x1p-52 - 1.0;
  }

 private:
  std::uint64_t state_;
};

/// A request that resolves, for windows of `rank` axes; extents shrink with the rank so that exact
/// laws stay fast.
inline AxisRequest random_axis(Random& random, int rank, bool dilated = true) {
  static constexpr Index kLargest[] = {0, 9, 7, 5, 4, 3, 3, 2, 2};
  AxisRequest r;
  r.in = random.between(1, kLargest[rank]);
  r.kernel = random.between(1, rank <= 3 ? 3 : 2);
  r.stride = random.between(1, 3);
  r.dilation = dilated && random.chance(3) ? random.between(1, 3) : 1;
  r.same = random.chance(8);
  if (!r.same && random.chance(2)) {
    r.pad_low = random.between(0, 2);
    r.pad_high = random.between(0, 2);
  }
  const Index lacking = r.dilation * (r.kernel - 1) + 1 - (r.in + r.pad_low + r.pad_high);
  if (!r.same && lacking > 0) {
    r.in += lacking;
  }
  return r;
}

/// Rank 1 to 5, low ones more often.
inline int random_rank(Random& random) {
  static constexpr int kRanks[] = {1, 1, 2, 2, 2, 2, 3, 3, 4, 5};
  return kRanks[random.between(0, 9)];
}

}  // namespace fenestra

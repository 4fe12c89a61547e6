// Random numbers and random windows for the laws: small, seeded, the same on every machine.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/spec/options.hpp>
#include <fenestra/spec/window.hpp>
#include <fenestra/tensor/shape.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>

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

/// Options whose flags and words are drawn, each value equally often. The layout belongs to x, and
/// numbers must fit shapes and each other: operators draw those.
template <class O>
O random_choices(Random& random) {
  O options{};
  O::fields([&]<class V>(std::string_view, V O::*member, const FieldInfo&) {
    if constexpr (std::is_same_v<V, bool>) {
      options.*member = random.chance(2);
    } else if constexpr (std::is_enum_v<V> && !std::is_same_v<V, Layout>) {
      const auto last = static_cast<Index>(enum_names<V>.size()) - 1;
      options.*member = static_cast<V>(random.between(0, last));
    }
  });
  return options;
}

/// How far random problems go.
enum class Reach {
  exact,     ///< small, so that laws in exact arithmetic stay fast
  networks,  ///< as large as what networks use, for laws on kernels
};

/// Every number of binary digits equally often, from 1 to `largest`.
inline Index random_magnitude(Random& random, Index largest) {
  int digits = 0;
  while ((Index{2} << digits) <= largest) {
    ++digits;
  }
  const Index from = Index{1} << random.between(0, digits);
  return random.between(from, 2 * from - 1 < largest ? 2 * from - 1 : largest);
}

/// Half of them one of the counts around vectors, blocks and tiles, where kernels change their way.
inline Index random_count(Random& random, Index largest) {
  static constexpr Index kNear[] = {1,  2,  3,  4,  7,  8,  9,   15,  16,  17,
                                    31, 32, 33, 63, 64, 65, 127, 128, 129, 130};
  const Index near = kNear[random.between(0, 19)];
  return random.chance(2) && near <= largest ? near : random_magnitude(random, largest);
}

namespace detail {

inline AxisRequest near_axis(Random& random, int rank) {
  static constexpr Index kLargest[] = {0, 9, 7, 5, 4, 3, 3, 2, 2};
  static constexpr Index kLargestKernel[] = {0, 9, 7, 4, 3, 2, 2, 2, 2};
  AxisRequest r;
  const bool is_large = random.chance(4);
  r.in = random.between(1, kLargest[rank]);
  r.kernel = random.between(1, is_large ? kLargestKernel[rank] : rank <= 3 ? 3 : 2);
  r.stride = random.between(1, is_large ? 5 : 3);
  r.dilation = random.chance(3) ? random.between(1, 3) : 1;
  r.same = random.chance(8);
  if (!r.same && random.chance(2)) {
    r.pad_low = random.between(0, is_large ? r.kernel : 2);
    r.pad_high = random.between(0, is_large ? r.kernel : 2);
  }
  return r;
}

inline AxisRequest far_axis(Random& random, int rank) {
  static constexpr Index kLargest[] = {0, 300, 120, 40, 12, 8, 4, 3, 3};
  static constexpr Index kLargestKernel[] = {0, 15, 15, 7, 4, 3, 2, 2, 2};
  AxisRequest r;
  r.in = random_count(random, rank == 2 && random.chance(4) ? 300 : kLargest[rank]);
  const Index kernel = random.chance(2) ? 3 : random.chance(2) ? 7 : 15;
  r.kernel = random.between(1, kernel < kLargestKernel[rank] ? kernel : kLargestKernel[rank]);
  r.stride = random.chance(2) ? 1 : random.between(1, 5);
  r.dilation = random.chance(3) ? random.between(1, 4) : 1;
  r.same = random.chance(8);
  const Index reach = r.dilation * (r.kernel - 1);
  if (!r.same && random.chance(2)) {  // as networks pad
    r.pad_low = r.pad_high = reach / 2;
  } else if (!r.same && random.chance(2)) {
    r.pad_low = random.between(0, reach + 2);
    r.pad_high = random.between(0, reach + 2);
  }
  return r;
}

}  // namespace detail

/// A request that resolves, for windows of `rank` axes; extents shrink with the rank.
inline AxisRequest random_axis(Random& random, int rank, Reach reach = Reach::exact) {
  AxisRequest r =
      reach == Reach::exact ? detail::near_axis(random, rank) : detail::far_axis(random, rank);
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

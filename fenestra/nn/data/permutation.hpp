// An order of 0 .. n - 1 by position: element i is computed from key and i alone, so an epoch's
// order needs no memory and goes on anywhere.
//
// A Feistel network permutes the numbers of as many bits as n - 1 has; those that are not below n
// are permuted again until they are, which visits every number below n exactly once.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/key.hpp>

#include <bit>
#include <cstdint>

namespace fenestra::nn {

class Permutation {
 public:
  /// Of `count` numbers; at least one.
  constexpr Permutation(const Key& key, Index count)
      : key_(key), count_(static_cast<std::uint64_t>(count)) {
    const auto bits = static_cast<int>(std::bit_width(count_ - 1));
    low_bits_ = bits - bits / 2;
    low_ = (std::uint64_t{1} << low_bits_) - 1;
    high_ = (std::uint64_t{1} << (bits / 2)) - 1;
  }

  /// 0 <= i < count.
  constexpr Index operator()(Index i) const {
    auto at = static_cast<std::uint64_t>(i);
    do {
      at = permuted(at);
    } while (at >= count_);
    return static_cast<Index>(at);
  }

 private:
  // Four are provably enough for many bits; few bits need more to come near to all orders.
  static constexpr std::uint64_t kRounds = 10;

  constexpr std::uint64_t permuted(std::uint64_t number) const {
    std::uint64_t low = number & low_;
    std::uint64_t high = number >> low_bits_;
    for (std::uint64_t round = 0; round < kRounds; round += 2) {
      low ^= key_.bits((high << 4) | round) & low_;
      high ^= key_.bits((low << 4) | (round + 1)) & high_;
    }
    return (high << low_bits_) | low;
  }

  Key key_;
  std::uint64_t count_;
  int low_bits_ = 0;
  std::uint64_t low_ = 0;   ///< mask of the lower half
  std::uint64_t high_ = 0;  ///< mask of the upper half, before it is shifted up
};

}  // namespace fenestra::nn

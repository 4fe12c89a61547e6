// Random numbers by position: Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", 2011), a function of key and counter that keeps no state. The same key and position
// give the same number on every machine, in any order and on any number of threads, so weights,
// masks, shuffles and augmentation can be drawn where and when they are needed, and drawn again.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace fenestra {

class Key {
 public:
  constexpr explicit Key(std::uint64_t seed) : seed_(seed) {}

  /// A key of its own for one use: an epoch, a sample, a layer. Different parts give unrelated
  /// numbers.
  constexpr Key fold(std::uint64_t part) const {
    const auto block = philox(part, kFold);
    return Key(join(block[0], block[1]));
  }
  constexpr Key fold(std::string_view name) const {
    std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
    for (const char c : name) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    }
    return fold(hash);
  }

  constexpr std::uint64_t seed() const { return seed_; }

  // Draws by position.

  constexpr std::uint64_t bits(std::uint64_t position) const {
    const auto block = philox(position >> 1, kDraw);
    return position % 2 == 0 ? join(block[0], block[1]) : join(block[2], block[3]);
  }
  /// Uniform on [0, 1), a multiple of 2^-53.
  constexpr double uniform(std::uint64_t position) const {
    return static_cast<double>(bits(position) >> 11) * 0x1p-53;
  }
  /// Uniform on 0 .. count - 1; count > 0. By multiplication: 2^-64 from uniform at most.
  constexpr std::uint64_t below(std::uint64_t position, std::uint64_t count) const {
    return static_cast<std::uint64_t>((static_cast<Wide>(bits(position)) * count) >> 64);
  }
  /// Standard normal, by Box and Muller.
  double normal(std::uint64_t position) const {
    const auto block = philox(position, kNormal);
    const double radius = 1.0 - static_cast<double>(join(block[0], block[1]) >> 11) * 0x1p-53;
    const double angle = static_cast<double>(join(block[2], block[3]) >> 11) * 0x1p-53;
    return std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * std::numbers::pi * angle);
  }

  friend constexpr bool operator==(const Key&, const Key&) = default;

  using Block = std::array<std::uint32_t, 4>;
  /// The generator itself.
  static constexpr Block philox(Block counter, std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
      counter = {high(b) ^ counter[1] ^ key[0], low(b), high(a) ^ counter[3] ^ key[1], low(a)};
      key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
    }
    return counter;
  }

 private:
  __extension__ using Wide = unsigned __int128;

  // What a block is for is part of its counter, so that uses never share one.
  static constexpr std::uint32_t kDraw = 0;
  static constexpr std::uint32_t kFold = 1;
  static constexpr std::uint32_t kNormal = 2;

  static constexpr std::uint32_t low(std::uint64_t v) { return static_cast<std::uint32_t>(v); }
  static constexpr std::uint32_t high(std::uint64_t v) {
    return static_cast<std::uint32_t>(v >> 32);
  }
  static constexpr std::uint64_t join(std::uint32_t a, std::uint32_t b) {
    return (static_cast<std::uint64_t>(b) << 32) | a;
  }
  constexpr Block philox(std::uint64_t position, std::uint32_t use) const {
    return philox({low(position), high(position), use, 0}, {low(seed_), high(seed_)});
  }

  std::uint64_t seed_;
};

}  // namespace fenestra

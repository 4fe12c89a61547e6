// Normal noise on many values, by position. Not installed.
#pragma once

#include <fenestra/base/key.hpp>

#include <cmath>
#include <cstdint>
#include <span>

namespace fenestra::nn {

/// Adds to every value a draw with mean 0 and this standard deviation. A draw is the sum of eight
/// uniform numbers of 16 bits, one block of the generator: as good as normal here (tails end at 4.9
/// deviations), exact in whole numbers and so the same on every machine, and an order of magnitude
/// quicker than logarithm and cosine.
inline void add_noise(std::span<float> values, double deviation, const Key& key) {
  const double levels = 65536;
  const double unit = deviation / std::sqrt(8 * (levels * levels - 1) / 12);
  const auto low = static_cast<std::uint32_t>(key.seed());
  const auto high = static_cast<std::uint32_t>(key.seed() >> 32);
  std::uint64_t position = 0;
  for (float& value : values) {
    // The third word keeps these blocks apart from those of the key's own draws.
    const Key::Block block = Key::philox({static_cast<std::uint32_t>(position),
                                          static_cast<std::uint32_t>(position >> 32),
                                          0x6e6f6973,
                                          0},
                                         {low, high});
    std::int32_t sum = -4 * 65535;
    for (const std::uint32_t word : block) {
      sum += static_cast<std::int32_t>(word & 0xFFFF) + static_cast<std::int32_t>(word >> 16);
    }
    value += static_cast<float>(unit * sum);
    ++position;
  }
}

}  // namespace fenestra::nn

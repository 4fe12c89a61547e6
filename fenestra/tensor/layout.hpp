// Where the channel axis stands, and the offsets that follow from it.
//
// Every operator addresses its tensors as (sample, channel, flat spatial cell) through these maps,
// so no operator has code of its own for a layout.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/tensor/shape.hpp>

#include <string_view>

namespace fenestra {

enum class Layout {
  channels_first,  ///< N, C, spatial...
  channels_last,   ///< N, spatial..., C
};

constexpr std::string_view layout_name(Layout layout) {
  return layout == Layout::channels_first ? "channels_first" : "channels_last";
}

/// Offsets into an activation of `batch` samples, `channels` channels and `cells` spatial cells.
struct ActivationMap {
  Index batch = 0;
  Index channels = 0;
  Index cells = 0;
  Layout layout = Layout::channels_first;

  constexpr Index at(Index n, Index c, Index cell) const {
    return layout == Layout::channels_first ? (n * channels + c) * cells + cell
                                            : (n * cells + cell) * channels + c;
  }
  friend constexpr bool operator==(const ActivationMap&, const ActivationMap&) = default;
};

/// Offsets into a convolution weight: (out, in, taps...) channels first, (taps..., in, out)
/// channels last. `in` is the number of channels of one group.
struct WeightMap {
  Index out = 0;
  Index in = 0;
  Index taps = 0;
  Layout layout = Layout::channels_first;

  constexpr Index at(Index co, Index ci, Index tap) const {
    return layout == Layout::channels_first ? (co * in + ci) * taps + tap
                                            : (tap * in + ci) * out + co;
  }
  friend constexpr bool operator==(const WeightMap&, const WeightMap&) = default;
};

}  // namespace fenestra

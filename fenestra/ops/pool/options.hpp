// Options of the pools. They repeat the window fields instead of inheriting them, so that
// designated initialisers work.
#pragma once

#include <fenestra/spec/options.hpp>
#include <fenestra/tensor/layout.hpp>

namespace fenestra {

struct MaxPoolOptions {
  PerAxis kernel;
  PerAxis stride = {};  ///< default: the kernel
  Padding padding = 0;
  PerAxis dilation = 1;
  bool ceil_mode = false;
  PadCells pad_cells = PadCells::ignore;
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const MaxPoolOptions&, const MaxPoolOptions&) = default;
};

struct AvgPoolOptions {
  PerAxis kernel;
  PerAxis stride = {};  ///< default: the kernel
  Padding padding = 0;
  PerAxis dilation = 1;
  bool ceil_mode = false;
  bool count_include_pad = true;
  OptionalIndex divisor_override = {};  ///< not zero; wins over `count_include_pad`
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const AvgPoolOptions&, const AvgPoolOptions&) = default;
};

struct LpPoolOptions {
  PerAxis kernel;
  PerAxis stride = {};  ///< default: the kernel
  Padding padding = 0;
  PerAxis dilation = 1;
  bool ceil_mode = false;
  double p = 2.0;  ///< finite, above 0
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const LpPoolOptions&, const LpPoolOptions&) = default;
};

struct SmoothMaxPoolOptions {
  PerAxis kernel;
  PerAxis stride = {};  ///< default: the kernel
  Padding padding = 0;
  PerAxis dilation = 1;
  bool ceil_mode = false;
  double beta = 1.0;        ///< finite, not zero; negative gives a smooth minimum
  bool normalised = false;  ///< subtract log(n)/beta, n the cells counted: a smooth mean of maxima
  PadCells pad_cells = PadCells::ignore;
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const SmoothMaxPoolOptions&,
                                   const SmoothMaxPoolOptions&) = default;
};

/// Options of the adaptive pools: bins that divide the input.
struct AdaptivePoolOptions {
  PerAxis output_size;
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const AdaptivePoolOptions&,
                                   const AdaptivePoolOptions&) = default;
};

/// One bin per axis: the options of a global pool.
constexpr AdaptivePoolOptions global_pool(Layout layout = Layout::channels_first) {
  return {.output_size = 1, .layout = layout};
}

}  // namespace fenestra

// Options of max unpooling.
#pragma once

#include <fenestra/spec/options.hpp>
#include <fenestra/tensor/layout.hpp>

namespace fenestra {

/// The output extents come from `output_size`, or from the pool that is undone: (i - 1)s - pl - pr
/// + k.
struct MaxUnpoolOptions {
  PerAxis kernel = {};
  PerAxis stride = {};  ///< default: the kernel
  Padding padding = 0;
  PerAxis output_size = {};
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const MaxUnpoolOptions&, const MaxUnpoolOptions&) = default;

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    using O = MaxUnpoolOptions;
    field("kernel",
          &O::kernel,
          {.help = "cells of a window of the pool: 2 for all axes, or 2,3",
           .otherwise = "what output_size says",
           .argument = "kernel_size"});
    field("stride", &O::stride, {.help = help::kStride, .otherwise = "the kernel"});
    field("padding", &O::padding, {.help = help::kPadding});
    field("output_size",
          &O::output_size,
          {.help = help::kOutputSize, .otherwise = "what the windows cover"});
    layout_field<O>(field);
  }
};

}  // namespace fenestra

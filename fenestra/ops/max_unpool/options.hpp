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
};

}  // namespace fenestra

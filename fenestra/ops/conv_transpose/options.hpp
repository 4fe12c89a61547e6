// Options of the transposed convolution.
#pragma once

#include <fenestra/spec/options.hpp>
#include <fenestra/tensor/layout.hpp>

namespace fenestra {

struct ConvTransposeOptions {
  PerAxis stride = 1;
  Padding padding = 0;  ///< crops the result
  PerAxis dilation = 1;
  PerAxis output_padding = 0;
  PerAxis output_size = {};  ///< given instead of `output_padding`
  Index groups = 1;
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const ConvTransposeOptions&,
                                   const ConvTransposeOptions&) = default;
};

}  // namespace fenestra

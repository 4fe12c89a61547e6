// Options of the convolution.
#pragma once

#include <fenestra/spec/options.hpp>
#include <fenestra/tensor/layout.hpp>

namespace fenestra {

struct ConvOptions {
  PerAxis stride = 1;
  Padding padding = 0;
  PerAxis dilation = 1;
  Index groups = 1;
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const ConvOptions&, const ConvOptions&) = default;
};

}  // namespace fenestra

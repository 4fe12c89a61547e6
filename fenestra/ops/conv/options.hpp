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

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    using O = ConvOptions;
    field("stride", &O::stride, {.help = help::kStride});
    field("padding", &O::padding, {.help = help::kPadding});
    field("dilation", &O::dilation, {.help = help::kDilation});
    field("groups", &O::groups, {.help = help::kGroups});
    layout_field<O>(field);
  }
};

}  // namespace fenestra

// Options of the convolution.
#pragma once

#include <fenestra/spec/options.hpp>
#include <fenestra/tensor/layout.hpp>

namespace fenestra {

/// The fields that the options of a convolution and the settings of its layer have in common.
template <class O, class Visit>
constexpr void conv_fields(Visit&& field) {
  field("stride", &O::stride, {.help = help::kStride});
  field("padding", &O::padding, {.help = help::kPadding});
  field("dilation", &O::dilation, {.help = help::kDilation});
  field("groups", &O::groups, {.help = help::kGroups, .always_printed = true});
}

struct ConvOptions {
  PerAxis stride = 1;
  Padding padding = 0;
  PerAxis dilation = 1;
  Index groups = 1;
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const ConvOptions&, const ConvOptions&) = default;

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    conv_fields<ConvOptions>(field);
    layout_field<ConvOptions>(field);
  }
};

}  // namespace fenestra

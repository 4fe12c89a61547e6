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

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    using O = ConvTransposeOptions;
    field("stride", &O::stride, {.help = help::kStride});
    field("padding", &O::padding, {.help = help::kPadding});
    field("dilation", &O::dilation, {.help = help::kDilation, .place = Place::last});
    field("output_padding",
          &O::output_padding,
          {.help = "cells that the output gets at its high edge"});
    field("output_size",
          &O::output_size,
          {.help = help::kOutputSize,
           .otherwise = "what the windows cover",
           .place = Place::by_keyword});
    field("groups", &O::groups, {.help = help::kGroups});
    layout_field<O>(field);
  }
};

}  // namespace fenestra

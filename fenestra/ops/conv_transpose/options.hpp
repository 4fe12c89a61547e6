// Options of the transposed convolution.
#pragma once

#include <fenestra/spec/options.hpp>
#include <fenestra/tensor/layout.hpp>

namespace fenestra {

/// The fields that the options of a transposed convolution and the settings of its layer have in
/// common; a layer serves inputs of any size and has no output size.
template <class O, class Visit>
constexpr void conv_transpose_fields(Visit&& field) {
  field("stride", &O::stride, {.help = help::kStride});
  field("padding", &O::padding, {.help = help::kPadding});
  field("dilation", &O::dilation, {.help = help::kDilation, .place = Place::last});
  field("output_padding",
        &O::output_padding,
        {.help = "cells that the output gets at its high edge"});
  if constexpr (requires { &O::output_size; }) {
    field("output_size",
          &O::output_size,
          {.help = help::kOutputSize,
           .otherwise = "what the windows cover",
           .place = Place::by_keyword});
  }
  field("groups", &O::groups, {.help = help::kGroups, .always_printed = true});
}

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
    conv_transpose_fields<ConvTransposeOptions>(field);
    layout_field<ConvTransposeOptions>(field);
  }
};

}  // namespace fenestra

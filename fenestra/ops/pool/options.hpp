// Options of the pools. They repeat the window fields instead of inheriting them, so that
// designated initialisers work.
#pragma once

#include <fenestra/spec/options.hpp>
#include <fenestra/tensor/layout.hpp>

namespace fenestra {

/// Which of the window fields are no arguments by position.
struct ByKeyword {
  bool padding = false;
  bool dilation = false;
};

/// The fields that every pool with fixed windows has.
template <class O, class Visit>
constexpr void window_fields(Visit&& field, ByKeyword by_keyword = {}) {
  const auto place = [](bool keyword) { return keyword ? Place::by_keyword : Place::in_order; };
  field("kernel",
        &O::kernel,
        {.help = "cells of a window: 3 for all axes, or 3,2",
         .required = true,
         .argument = "kernel_size"});
  field("stride", &O::stride, {.help = help::kStride, .otherwise = "the kernel"});
  field("padding", &O::padding, {.help = help::kPadding, .place = place(by_keyword.padding)});
  field("dilation", &O::dilation, {.help = help::kDilation, .place = place(by_keyword.dilation)});
  field("ceil_mode", &O::ceil_mode, {.help = "whether a last window may reach over the edge"});
}
/// That of pools which find a maximum.
template <class O, class Visit>
constexpr void pad_cells_field(Visit&& field) {
  field("pad_cells",
        &O::pad_cells,
        {.help = "what padding is to a maximum: nothing, or zeros", .place = Place::by_keyword});
}

struct MaxPoolOptions {
  PerAxis kernel;
  PerAxis stride = {};  ///< default: the kernel
  Padding padding = 0;
  PerAxis dilation = 1;
  bool ceil_mode = false;
  PadCells pad_cells = PadCells::ignore;
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const MaxPoolOptions&, const MaxPoolOptions&) = default;

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    window_fields<MaxPoolOptions>(field);
    pad_cells_field<MaxPoolOptions>(field);
    layout_field<MaxPoolOptions>(field);
  }
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

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    using O = AvgPoolOptions;
    window_fields<O>(field, {.dilation = true});
    field("count_include_pad", &O::count_include_pad, {.help = "whether padding counts in a mean"});
    field("divisor_override",
          &O::divisor_override,
          {.help = "what sums are divided by", .otherwise = "the cells that count"});
    layout_field<O>(field);
  }
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

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    using O = LpPoolOptions;
    window_fields<O>(field, {.padding = true, .dilation = true});
    field("p",
          &O::p,
          {.help = "exponent",
           .always_printed = true,
           .argument = "norm_type",
           .place = Place::first});
    layout_field<O>(field);
  }
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

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    using O = SmoothMaxPoolOptions;
    window_fields<O>(field);
    field("beta",
          &O::beta,
          {.help = "sharpness: the larger, the closer to the maximum",
           .always_printed = true,
           .place = Place::nowhere});
    field("normalised",
          &O::normalised,
          {.help = "whether equal cells give their own value", .place = Place::by_keyword});
    pad_cells_field<O>(field);
    layout_field<O>(field);
  }
};

/// Options of the adaptive pools: bins that divide the input.
struct AdaptivePoolOptions {
  PerAxis output_size;
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const AdaptivePoolOptions&,
                                   const AdaptivePoolOptions&) = default;

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    field("output_size",
          &AdaptivePoolOptions::output_size,
          {.help = help::kOutputSize, .required = true});
    layout_field<AdaptivePoolOptions>(field);
  }
};

/// One bin per axis: the options of a global pool.
constexpr AdaptivePoolOptions global_pool(Layout layout = Layout::channels_first) {
  return {.output_size = 1, .layout = layout};
}

}  // namespace fenestra

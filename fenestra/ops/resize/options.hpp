// Options of resizing.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/spec/options.hpp>
#include <fenestra/tensor/layout.hpp>

#include <array>
#include <concepts>
#include <initializer_list>
#include <string_view>

namespace fenestra {

enum class ResizeMode {
  nearest,   ///< the cell floor(o * in/out)
  bilinear,  ///< linear interpolation along every spatial axis: linear, bilinear, trilinear, ...
};

template <>
inline constexpr std::array<std::string_view, 2> enum_names<ResizeMode> = {"nearest", "bilinear"};

/// One factor for all spatial axes, or one per axis: `.scale = 2`, `.scale = {2, 1.5}`.
struct ResizeScale {
  double values[kMaxSpatialRank] = {};
  int count = -1;  ///< 0: `values[0]` holds for every axis; -1: not given

  constexpr ResizeScale() = default;
  template <class Number>
    requires std::integral<Number> || std::floating_point<Number>
  constexpr ResizeScale(Number factor) : values{static_cast<double>(factor)}, count(0) {}
  constexpr ResizeScale(std::initializer_list<double> list) {
    for (const double factor : list) {
      push_back(factor);
    }
  }
  constexpr void push_back(double factor) {
    if (count == kMaxSpatialRank) {
      throw Error(ErrorCode::rank_mismatch, "a per-axis option has at most 8 values");
    }
    count = count < 0 ? 1 : count + 1;
    values[count - 1] = factor;
  }

  constexpr bool is_given() const { return count >= 0; }
  /// Values that were listed; 0 where one holds for every axis.
  constexpr int listed() const { return count > 0 ? count : 0; }
  constexpr double operator[](int axis) const { return count > 0 ? values[axis] : values[0]; }
  friend constexpr bool operator==(const ResizeScale&, const ResizeScale&) = default;
};

/// The output's spatial extents, or the factors they come from; exactly one of the two.
struct ResizeOptions {
  PerAxis size = {};
  ResizeScale scale = {};
  ResizeMode mode = ResizeMode::nearest;
  bool align_corners = false;  ///< bilinear only: first and last cells of x and y coincide
  Layout layout = Layout::channels_first;

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    using O = ResizeOptions;
    field("size",
          &O::size,
          {.help = "extents of the output: 16, or 16,8", .otherwise = "what the scale gives"});
    field("scale",
          &O::scale,
          {.help = "factor on the extents: 2, or 2,1.5",
           .otherwise = "what the size gives",
           .argument = "scale_factor"});
    field("mode", &O::mode, {.help = help::kMode, .always_printed = true});
    field("align_corners",
          &O::align_corners,
          {.help = "whether the corner cells stay where they are"});
    layout_field<O>(field);
  }
};

}  // namespace fenestra

// What the geometries of all operators share: how a resolution is returned, and how options fit a
// rank.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/spec/message.hpp>
#include <fenestra/spec/options.hpp>
#include <fenestra/spec/problem.hpp>
#include <fenestra/spec/window.hpp>
#include <fenestra/tensor/box.hpp>
#include <fenestra/tensor/layout.hpp>
#include <fenestra/tensor/shape.hpp>

#include <optional>
#include <string>

namespace fenestra {

/// A validated geometry, or the fault that prevents it. With a fault, `geometry` holds what was
/// resolved so far.
template <class Geometry>
struct Resolved {
  Geometry geometry;
  Fault fault;
};

/// The batch, channel and spatial extents of an activation shape, by layout.
struct ActivationShape {
  bool batched = true;
  Index batch = 1;
  Index channels = 0;
  Shape spatial;

  friend constexpr bool operator==(const ActivationShape&, const ActivationShape&) = default;
};

/// Takes an activation apart; `spatial_rank` decides whether it is a batch or a single sample.
constexpr Resolved<ActivationShape> split_activation(const Shape& x,
                                                     int spatial_rank,
                                                     Layout layout) {
  Resolved<ActivationShape> result;
  ActivationShape& a = result.geometry;
  const int extra = x.rank() - spatial_rank;
  if (extra != 1 && extra != 2) {
    result.fault = {ErrorCode::rank_mismatch, Argument::x, -1, x.rank(), spatial_rank + 2};
    return result;
  }
  a.batched = extra == 2;
  const int first = a.batched ? 1 : 0;
  if (a.batched) {
    a.batch = x[0];
  }
  a.channels = layout == Layout::channels_first ? x[first] : x[x.rank() - 1];
  const int spatial = layout == Layout::channels_first ? first + 1 : first;
  for (int axis = 0; axis < spatial_rank; ++axis) {
    a.spatial.push_back(x[spatial + axis]);
  }
  if (a.batch < 0 || a.channels < 0) {
    result.fault = {
        ErrorCode::invalid_extent, Argument::x, -1, a.batch < 0 ? a.batch : a.channels, 0};
  }
  return result;
}

/// Puts an activation shape together again.
constexpr Shape join_activation(const ActivationShape& a, Layout layout) {
  Shape shape;
  if (a.batched) {
    shape.push_back(a.batch);
  }
  if (layout == Layout::channels_first) {
    shape.push_back(a.channels);
  }
  for (const Index extent : a.spatial) {
    shape.push_back(extent);
  }
  if (layout == Layout::channels_last) {
    shape.push_back(a.channels);
  }
  return shape;
}

/// The parts of activations that belong to a part of an operator with windows.
struct WindowsTile {
  Windows windows;
  Box outputs;
  Box inputs;
};

/// What `box`, a part of an activation of shape `to`, needs of the one of shape `from` that it is
/// computed of: cells that the windows look at, or with `transposed` windows over cells. None where
/// the box leaves out samples or channels, and of bins.
constexpr std::optional<WindowsTile> tile_windows(const Windows& windows,
                                                  bool transposed,
                                                  const Shape& from,
                                                  const Shape& to,
                                                  const Box& box,
                                                  Layout layout) {
  WindowsTile tile{{}, box, Box(from)};
  const int first = box.rank() - windows.rank() - (layout == Layout::channels_last ? 1 : 0);
  for (int axis = 0; axis < box.rank(); ++axis) {
    if (axis < first || axis >= first + windows.rank()) {
      if (box[axis] != IndexRange{0, to[axis]}) {
        return std::nullopt;
      }
      continue;
    }
    const WindowAxis& a = windows[axis - first];
    if (a.rule == ExtentRule::adaptive) {
      return std::nullopt;
    }
    const AxisTile part = transposed ? a.needed_transposed(box[axis]) : a.needed(box[axis]);
    tile.windows.push_back(part.axis);
    tile.outputs.set(axis, part.outputs);
    tile.inputs.set(axis, part.inputs);
  }
  return tile;
}

/// The fault of an option that has neither one value nor one per axis.
constexpr Fault check_fits(const PerAxis& option, int rank, Argument argument) {
  return option.fits(rank) ? Fault{}
                           : Fault{ErrorCode::rank_mismatch, argument, -1, option.count, rank};
}

constexpr Fault check_fits(const Padding& padding, int rank) {
  return padding.fits(rank)
             ? Fault{}
             : Fault{ErrorCode::rank_mismatch, Argument::padding, -1, padding.low.count, rank};
}

/// The request for one axis from per-axis options whose ranks fit.
constexpr AxisRequest axis_request(Index in,
                                   Index kernel,
                                   const PerAxis& stride,
                                   const Padding& padding,
                                   const PerAxis& dilation,
                                   int axis) {
  return {.in = in,
          .kernel = kernel,
          .stride = stride[axis],
          .dilation = dilation[axis],
          .pad_low = padding.low[axis],
          .pad_high = padding.high[axis],
          .same = padding.is_same};
}

/// The axis a message should quote: the one at fault as far as it was resolved.
constexpr WindowAxis faulty_axis(const Windows& windows, const Fault& fault) {
  return fault.axis >= 0 && fault.axis < windows.rank() ? windows[fault.axis] : WindowAxis{};
}

/// The fault of sizes whose product no 64-bit count can hold.
inline constexpr Fault kTooLarge{.code = ErrorCode::overflow, .argument = Argument::x};

/// "2,1" or "2", for messages.
inline std::string options_text(const PerAxis& option) {
  std::string text;
  for (int i = 0; i < (option.count > 0 ? option.count : 1); ++i) {
    text += (i > 0 ? "," : "") + std::to_string(option.values[i]);
  }
  return text;
}

inline std::string options_text(const Padding& padding) {
  if (padding.is_same) {
    return "same";
  }
  if (padding.low == padding.high) {
    return options_text(padding.low);
  }
  std::string text;
  for (int axis = 0; axis < padding.low.count; ++axis) {
    text += (axis > 0 ? "," : "") + std::to_string(padding.low[axis]) + ":" +
            std::to_string(padding.high[axis]);
  }
  return text;
}

}  // namespace fenestra

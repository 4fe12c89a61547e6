// Options and geometry of the convolution, its input gradient and its weight gradient: three
// contractions of one trilinear form, so one geometry, that of the forward convolution, serves all
// three. All of it is constexpr.
#pragma once

#include <fenestra/ops/conv/options.hpp>
#include <fenestra/ops/geometry.hpp>

#include <bit>
#include <cstdint>
#include <optional>
#include <string>

namespace fenestra {

/// Validated sizes of one convolution. Built by `resolve_conv` or `conv_geometry` only.
struct ConvGeometry {
  Windows windows;
  bool batched = true;
  bool has_bias = false;
  Index batch = 0;
  Index in_channels = 0;
  Index out_channels = 0;
  Index groups = 1;
  Layout layout = Layout::channels_first;

  constexpr int rank() const { return windows.rank(); }
  constexpr Index group_in() const { return in_channels / groups; }
  constexpr Index group_out() const { return out_channels / groups; }

  constexpr ActivationMap x_map() const { return {batch, in_channels, windows.in_cells(), layout}; }
  constexpr ActivationMap y_map() const {
    return {batch, out_channels, windows.out_cells(), layout};
  }
  constexpr WeightMap w_map() const { return {out_channels, group_in(), windows.taps(), layout}; }

  constexpr Shape x_shape() const {
    return join_activation({batched, batch, in_channels, windows.in_shape()}, layout);
  }
  constexpr Shape y_shape() const {
    return join_activation({batched, batch, out_channels, windows.out_shape()}, layout);
  }
  /// (out, in/groups, k...) channels first, (k..., in/groups, out) channels last.
  constexpr Shape w_shape() const {
    Shape shape;
    if (layout == Layout::channels_first) {
      shape.push_back(out_channels);
      shape.push_back(group_in());
    }
    for (int axis = 0; axis < rank(); ++axis) {
      shape.push_back(windows[axis].kernel);
    }
    if (layout == Layout::channels_last) {
      shape.push_back(group_in());
      shape.push_back(out_channels);
    }
    return shape;
  }
  constexpr Index parameters() const {
    return out_channels * group_in() * windows.taps() + (has_bias ? out_channels : 0);
  }
  /// Multiply-adds with padded taps counted, the figure peers quote.
  constexpr Index multiply_adds() const {
    return batch * out_channels * windows.out_cells() * group_in() * windows.taps();
  }

  friend constexpr bool operator==(const ConvGeometry&, const ConvGeometry&) = default;
};

/// The contractions of the trilinear form: x, w -> y; y_bar, w -> x_bar (the transposed
/// convolution); x, y_bar -> w_bar.
enum class ConvDirection { forward, input_grad, weight_grad };

/// The two channel counts and the kernel extents of a weight shape, by layout.
struct WeightShape {
  Index out = 0;
  Index in = 0;
  Shape kernel;
};

constexpr Resolved<WeightShape> split_weight(const Shape& w, Layout layout) {
  Resolved<WeightShape> result;
  const int rank = w.rank() - 2;
  if (rank < 1 || rank > kMaxSpatialRank) {
    result.fault = {ErrorCode::rank_mismatch, Argument::w, -1, w.rank(), 3};
    return result;
  }
  const bool first = layout == Layout::channels_first;
  result.geometry.out = w[first ? 0 : rank + 1];
  result.geometry.in = w[first ? 1 : rank];
  for (int axis = 0; axis < rank; ++axis) {
    result.geometry.kernel.push_back(w[(first ? 2 : 0) + axis]);
  }
  const Index least =
      result.geometry.out < result.geometry.in ? result.geometry.out : result.geometry.in;
  if (least < 0) {
    result.fault = {ErrorCode::invalid_extent, Argument::w, -1, least, 0};
  }
  return result;
}

/// Checks every count a convolution of these sizes will form; the geometry's own products are safe
/// after it.
constexpr Fault check_conv_counts(const ConvGeometry& g) {
  // By lengths in bits, which is quicker than multiplying: each count is a product of some of
  // these.
  const auto length = [](Index n) { return 64 - std::countl_zero(static_cast<std::uint64_t>(n)); };
  int sum = length(g.batch) + length(g.in_channels) + length(g.out_channels);
  for (int axis = 0; axis < g.rank(); ++axis) {
    const WindowAxis& a = g.windows[axis];
    sum += length(a.in) + length(a.out) + length(a.kernel);
  }
  if (sum < length(kMaxElements)) {
    return {};
  }
  if (!g.x_shape().elements() || !g.y_shape().elements() || !g.w_shape().elements()) {
    return kTooLarge;
  }
  const Shape work{g.batch, g.out_channels, g.windows.out_cells(), g.group_in(), g.windows.taps()};
  return work.elements() ? Fault{} : kTooLarge;
}

/// Geometry of y = conv(x, w[, b]): o = floor((i + pl + pr - K)/s) + 1 on every axis.
constexpr Resolved<ConvGeometry> resolve_conv(const Shape& x,
                                              const Shape& w,
                                              const std::optional<Shape>& b,
                                              const ConvOptions& options) {
  Resolved<ConvGeometry> result;
  ConvGeometry& g = result.geometry;
  Fault& fault = result.fault;
  g.layout = options.layout;
  g.has_bias = b.has_value();
  g.groups = 1;

  const auto weight = split_weight(w, options.layout);
  if ((fault = weight.fault)) {
    return result;
  }
  const int rank = weight.geometry.kernel.rank();
  const auto input = split_activation(x, rank, options.layout);
  if ((fault = input.fault)) {
    return result;
  }
  if ((fault = check_fits(options.stride, rank, Argument::stride))) {
    return result;
  }
  if ((fault = check_fits(options.padding, rank))) {
    return result;
  }
  if ((fault = check_fits(options.dilation, rank, Argument::dilation))) {
    return result;
  }

  g.batched = input.geometry.batched;
  g.batch = input.geometry.batch;
  g.in_channels = input.geometry.channels;
  g.out_channels = weight.geometry.out;
  if (options.groups < 1) {
    fault = {ErrorCode::invalid_groups, Argument::groups, -1, options.groups, 1};
    return result;
  }
  g.groups = options.groups;
  if (g.in_channels % g.groups != 0) {
    fault = {ErrorCode::channels_not_divisible, Argument::x, -1, g.in_channels, g.groups};
    return result;
  }
  if (g.out_channels % g.groups != 0) {
    fault = {ErrorCode::channels_not_divisible, Argument::w, -1, g.out_channels, g.groups};
    return result;
  }
  if (g.group_in() != weight.geometry.in) {
    const Checked needed = Checked(weight.geometry.in) * g.groups;
    fault = {ErrorCode::channel_mismatch, Argument::w, -1, g.in_channels, needed.value()};
    return result;
  }
  if (b && *b != Shape{g.out_channels}) {
    fault = {ErrorCode::bias_mismatch, Argument::b, -1, b->elements().value_or(-1), g.out_channels};
    return result;
  }
  for (int axis = 0; axis < rank; ++axis) {
    const auto resolved = resolve_sliding(axis_request(input.geometry.spatial[axis],
                                                       weight.geometry.kernel[axis],
                                                       options.stride,
                                                       options.padding,
                                                       options.dilation,
                                                       axis),
                                          axis,
                                          ExtentRule::floor);
    g.windows.push_back(resolved.axis);
    if ((fault = resolved.fault)) {
      return result;
    }
  }
  fault = check_conv_counts(g);
  return result;
}

namespace detail {

inline std::string conv_options_text(const PerAxis& stride,
                                     const Padding& padding,
                                     const PerAxis& dilation,
                                     Index groups) {
  return "stride " + options_text(stride) + ", padding " + options_text(padding) + ", dilation " +
         options_text(dilation) + ", groups " + std::to_string(groups);
}

/// The context of a refused convolution of either direction.
inline FaultContext conv_context(std::string_view op,
                                 const Shape& x,
                                 const Shape& w,
                                 const std::optional<Shape>& b,
                                 Layout layout,
                                 const std::string& options,
                                 const Windows& windows,
                                 const Fault& fault) {
  const int rank = w.rank() - 2;
  const bool known = rank >= 1 && (x.rank() == rank + 1 || x.rank() == rank + 2);
  FaultContext context;
  context.op = op;
  context.shapes.push_back(
      {known ? "x " + activation_label(rank, x.rank() == rank + 2, layout) : "x", x});
  context.shapes.push_back({"w", w});
  if (b) {
    context.shapes.push_back({"b", *b});
  }
  context.options = options;
  context.rank = rank;
  context.axis = faulty_axis(windows, fault);
  return context;
}

}  // namespace detail

/// As `resolve_conv`, but a fault is thrown as an `Error`.
constexpr ConvGeometry conv_geometry(const Shape& x,
                                     const Shape& w,
                                     const std::optional<Shape>& b,
                                     const ConvOptions& options) {
  const auto [geometry, fault] = resolve_conv(x, w, b, options);
  if (fault) {
    const std::string text = detail::conv_options_text(
        options.stride, options.padding, options.dilation, options.groups);
    throw make_error(
        fault,
        detail::conv_context("conv", x, w, b, options.layout, text, geometry.windows, fault));
  }
  return geometry;
}

/// The options that lead to the geometry.
constexpr ConvOptions conv_options(const ConvGeometry& g) {
  return {.stride = per_axis_of(g.windows, &WindowAxis::stride),
          .padding = padding_of(g.windows),
          .dilation = per_axis_of(g.windows, &WindowAxis::dilation),
          .groups = g.groups,
          .layout = g.layout};
}

namespace detail {

/// The problem string of a convolution of either direction.
template <class O>
std::string conv_text(const Shape& x, const Shape& w, bool has_bias, const O& options) {
  return "x=" + problem_text(x) + " w=" + problem_text(w) + fields_text(options, "layout") +
         (has_bias ? " bias=true" : "") + fields_text(options, {}, "layout");
}

}  // namespace detail

/// The geometry's problem string; `parse_conv` reads it back.
inline std::string to_string(const ConvGeometry& g) {
  return detail::conv_text(g.x_shape(), g.w_shape(), g.has_bias, conv_options(g));
}

inline ConvGeometry parse_conv(Problem problem) {
  const Shape x = problem.shape("x");
  const Shape w = problem.shape("w");
  const auto options = problem.options<ConvOptions>();
  std::optional<Shape> b;
  if (problem.flag("bias", false)) {
    const auto weight = split_weight(w, options.layout);
    b = Shape{weight.geometry.out};
  }
  problem.finish("conv");
  return conv_geometry(x, w, b, options);
}

constexpr std::size_t hash_value(const ConvGeometry& g) {
  std::size_t seed = hash_value(g.windows);
  for (const Index value : {static_cast<Index>(g.batched),
                            static_cast<Index>(g.has_bias),
                            g.batch,
                            g.in_channels,
                            g.out_channels,
                            g.groups,
                            static_cast<Index>(g.layout)}) {
    seed = detail::hash_combine(seed, value);
  }
  return seed;
}

}  // namespace fenestra

// Options and geometry of the transposed convolution: the geometry of the convolution whose input
// gradient it is.
#pragma once

#include <fenestra/ops/conv/geometry.hpp>
#include <fenestra/ops/conv_transpose/options.hpp>

#include <optional>
#include <string>

namespace fenestra {

/// `conv` is the forward convolution: its output is this operator's input, its input this
/// operator's output.
struct ConvTransposeGeometry {
  ConvGeometry conv;

  constexpr int rank() const { return conv.rank(); }
  constexpr Shape x_shape() const { return conv.y_shape(); }
  constexpr Shape y_shape() const { return conv.x_shape(); }
  constexpr Shape w_shape() const { return conv.w_shape(); }
  constexpr Index in_channels() const { return conv.out_channels; }
  constexpr Index out_channels() const { return conv.in_channels; }
  constexpr Index parameters() const {
    return conv.w_shape().elements().value_or(0) + (conv.has_bias ? out_channels() : 0);
  }

  /// What the output has beyond (i - 1)s - pl - pr + K.
  constexpr Index output_padding(int axis) const {
    return conv.windows[axis].in - conv.windows[axis].base_extent();
  }

  friend constexpr bool operator==(const ConvTransposeGeometry&,
                                   const ConvTransposeGeometry&) = default;
};

/// Geometry of y = conv_transpose(x, w[, b]): o = (i - 1)s - pl - pr + K + op. With `same` padding
/// the total cropped is max(K - s, 0), so that o = i*s wherever K >= s.
constexpr Resolved<ConvTransposeGeometry> resolve_conv_transpose(
    const Shape& x,
    const Shape& w,
    const std::optional<Shape>& b,
    const ConvTransposeOptions& options) {
  Resolved<ConvTransposeGeometry> result;
  ConvGeometry& g = result.geometry.conv;
  Fault& fault = result.fault;
  g.layout = options.layout;
  g.has_bias = b.has_value();

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
  if ((fault = check_fits(options.output_padding, rank, Argument::output_padding))) {
    return result;
  }
  if ((fault = check_fits(options.output_size, rank, Argument::output_size))) {
    return result;
  }

  g.batched = input.geometry.batched;
  g.batch = input.geometry.batch;
  g.out_channels = input.geometry.channels;
  if (options.groups < 1) {
    fault = {ErrorCode::invalid_groups, Argument::groups, -1, options.groups, 1};
    return result;
  }
  g.groups = options.groups;
  if (g.out_channels != weight.geometry.out) {
    fault = {ErrorCode::channel_mismatch, Argument::w, -1, g.out_channels, weight.geometry.out};
    return result;
  }
  if (g.out_channels % g.groups != 0) {
    fault = {ErrorCode::channels_not_divisible, Argument::x, -1, g.out_channels, g.groups};
    return result;
  }
  const Checked channels = Checked(weight.geometry.in) * g.groups;
  if (!channels.ok()) {
    fault = kTooLarge;
    return result;
  }
  g.in_channels = channels.value();
  if (b && *b != Shape{g.in_channels}) {
    fault = {ErrorCode::bias_mismatch, Argument::b, -1, b->elements().value_or(-1), g.in_channels};
    return result;
  }
  for (int axis = 0; axis < rank; ++axis) {
    const OptionalIndex size =
        options.output_size.is_given() ? OptionalIndex(options.output_size[axis]) : OptionalIndex();
    const auto resolved = resolve_transposed(axis_request(input.geometry.spatial[axis],
                                                          weight.geometry.kernel[axis],
                                                          options.stride,
                                                          options.padding,
                                                          options.dilation,
                                                          axis),
                                             axis,
                                             options.output_padding[axis],
                                             size);
    g.windows.push_back(resolved.axis);
    if ((fault = resolved.fault)) {
      return result;
    }
  }
  fault = check_conv_counts(g);
  return result;
}

/// As `resolve_conv_transpose`, but a fault is thrown as an `Error`.
constexpr ConvTransposeGeometry conv_transpose_geometry(const Shape& x,
                                                        const Shape& w,
                                                        const std::optional<Shape>& b,
                                                        const ConvTransposeOptions& options) {
  const auto [geometry, fault] = resolve_conv_transpose(x, w, b, options);
  if (fault) {
    std::string text = detail::conv_options_text(
        options.stride, options.padding, options.dilation, options.groups);
    text += options.output_size.is_given()
                ? ", output_size " + options_text(options.output_size)
                : ", output_padding " + options_text(options.output_padding);
    throw make_error(
        fault,
        detail::conv_context(
            "conv_transpose", x, w, b, options.layout, text, geometry.conv.windows, fault));
  }
  return geometry;
}

/// The options of the convolution, transposed; what decides about the output's extents is left out.
constexpr ConvTransposeOptions transposed_options(const ConvGeometry& g) {
  const ConvOptions options = conv_options(g);
  return {.stride = options.stride,
          .padding = options.padding,
          .dilation = options.dilation,
          .groups = options.groups,
          .layout = options.layout};
}

/// The geometry's problem string; `parse_conv_transpose` reads it back.
inline std::string to_string(const ConvTransposeGeometry& g) {
  ConvTransposeOptions options = transposed_options(g.conv);
  for (int axis = 0; axis < g.rank(); ++axis) {
    options.output_padding.push_back(g.output_padding(axis));
  }
  return detail::conv_text(g.x_shape(), g.w_shape(), g.conv.has_bias, options);
}

inline ConvTransposeGeometry parse_conv_transpose(Problem problem) {
  const Shape x = problem.shape("x");
  const Shape w = problem.shape("w");
  const auto options = problem.options<ConvTransposeOptions>();
  std::optional<Shape> b;
  if (problem.flag("bias", false)) {
    const auto weight = split_weight(w, options.layout);
    b = Shape{(Checked(weight.geometry.in) * options.groups).value()};
  }
  problem.finish("conv_transpose");
  return conv_transpose_geometry(x, w, b, options);
}

}  // namespace fenestra

// The transposed convolution's descriptor: see ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/conv/op.hpp>
#include <fenestra/ops/conv_transpose/conv_transpose.hpp>
#include <fenestra/ops/conv_transpose/spec.hpp>
#include <fenestra/ops/operator.hpp>
#include <fenestra/ops/random_options.hpp>
#include <fenestra/spec/describe.hpp>

#include <algorithm>
#include <limits>

namespace fenestra {

struct ConvTranspose {
  using Geometry = ConvTransposeGeometry;
  using Options = ConvTransposeOptions;
  static constexpr std::string_view name = "conv_transpose";
  static constexpr std::string_view summary =
      "transposed convolution: the input gradient of a convolution";
  static constexpr std::string_view example = "x=1x8x7x7 w=8x4x4x4 stride=2 padding=1";

  static Geometry parse(std::string_view text) { return parse_conv_transpose(Problem(text)); }
  static std::vector<KnownAnswer> answers() {
    const std::vector<std::vector<double>> inputs = {{1, 2, 3}, {1, 10, 100}};
    return {{.problem = "x=1x1x3 w=1x1x3 stride=2",
             .inputs = inputs,
             .y = {1, 10, 102, 20, 203, 30, 300}},
            {.problem = "x=1x1x3 w=1x1x3 stride=2 padding=1",
             .inputs = inputs,
             .y = {10, 102, 20, 203, 30},
             .y_bar = {1, 1, 1, 1, 1},
             .bars = {{110, 111, 11}, {5, 6, 3}}},
            {.problem = "x=1x1x3 w=1x1x3 stride=2 padding=1 output_padding=1",
             .inputs = inputs,
             .y = {10, 102, 20, 203, 30, 300}},
            {.problem = "x=1x1x1 w=1x1x3 padding=1", .inputs = {{7}, {1, 10, 100}}, .y = {70}}};
  }

  /// A random convolution read backwards, with an output padding where its stride or dilation
  /// leaves room for one.
  static Geometry random(Random& random, Reach reach = Reach::exact) {
    for (;;) {
      const ConvGeometry conv = Conv::random(random, reach);
      ConvTransposeOptions options = transposed_options(conv);
      for (int axis = 0; axis < conv.rank(); ++axis) {
        const Index limit = conv.windows[axis].output_padding_limit();
        options.output_padding.push_back(random.between(0, limit - 1));
      }
      const auto b = conv.has_bias ? std::optional(Shape{conv.in_channels}) : std::nullopt;
      const auto resolved = resolve_conv_transpose(conv.y_shape(), conv.w_shape(), b, options);
      if (!resolved.fault) {
        return resolved.geometry;  // heavy padding can crop everything away: draw again
      }
    }
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) {
    std::vector<TensorInfo> list{{"x", g.x_shape(), Role::activation},
                                 {"w", g.w_shape(), Role::weight}};
    if (g.conv.has_bias) {
      list.push_back({"b", Shape{g.out_channels()}, Role::channels});
    }
    return list;
  }
  static TensorInfo output(const Geometry& g) { return {"y", g.y_shape(), Role::activation}; }
  static Layout layout(const Geometry& g) { return g.conv.layout; }
  static bool batched(const Geometry& g) { return g.conv.batched; }
  static Geometry with_layout(const Geometry& g, Layout layout) {
    return {Conv::with_layout(g.conv, layout)};
  }
  static Geometry single_sample(const Geometry& g) { return {Conv::single_sample(g.conv)}; }
  static Geometry with_batch(const Geometry& g, Index batch) {
    return {Conv::with_batch(g.conv, batch)};
  }
  static Index groups(const Geometry& g) { return g.conv.groups; }
  static Geometry one_group(const Geometry& g) { return {Conv::one_group(g.conv)}; }
  static Windows windows(const Geometry& g) { return g.conv.windows; }
  /// Its value is the convolution's input gradient, and the other way round.
  static std::vector<KernelChoice> kernels(const Geometry& g) {
    std::vector<KernelChoice> choices = conv_kernels(detail::without_bias(g.conv));
    for (KernelChoice& choice : choices) {
      choice.direction = choice.direction == "forward"      ? "input_grad"
                         : choice.direction == "input_grad" ? "forward"
                                                            : choice.direction;
    }
    std::stable_partition(choices.begin(), choices.end(), [](const KernelChoice& choice) {
      return choice.direction == "forward";
    });
    return choices;
  }
  template <Field T>
  static std::optional<std::vector<Tensor<T>>> transformed(std::string_view kernel,
                                                           const Geometry& g,
                                                           const Inputs<T>& in,
                                                           const std::vector<Tensor<T>>& dots,
                                                           const Tensor<T>& y_bar) {
    return detail::TransformedConv<T>(kernel, g.conv)
        .all(ConvDirection::input_grad, in.values, dots, y_bar);
  }
  template <Scalar T>
  static std::vector<Tensor<T>> listed(const Geometry& g,
                                       const Inputs<T>& in,
                                       const std::vector<Tensor<T>>& dots,
                                       const Tensor<T>& y_bar,
                                       bool with_tangent) {
    return spec::ListedConv<T>(g.conv).all(
        ConvDirection::input_grad, in.values, dots, y_bar, with_tangent);
  }
  static Algebra algebra(const Geometry&) { return Algebra::multilinear; }
  static Costs costs(const Geometry& g) { return {g.parameters(), g.conv.multiply_adds()}; }
  /// The output sizes that lead back to this input size; one of them is chosen by the output
  /// padding.
  static std::vector<AxisNote> notes(const Geometry& g) {
    AxisNote sizes{
        .key = "output_sizes", .text = "output sizes reachable by output padding", .axes = {}};
    for (int axis = 0; axis < g.rank(); ++axis) {
      const WindowAxis& a = g.conv.windows[axis];
      const Index base = a.base_extent();
      const Checked high = Checked(base) + a.output_padding_limit() - 1;
      sizes.axes.push_back({.low = base > 1 ? base : 1,
                            .high = high.ok() ? high.value() : std::numeric_limits<Index>::max()});
    }
    return {sizes};
  }
  /// Products summed into one output at the most: every tap of every channel of the group, and the
  /// bias.
  static Index terms(const Geometry& g) { return g.conv.group_out() * g.conv.windows.taps() + 1; }

  /// The forward convolution leads from this operator's output sizes to at least its input sizes
  /// (to exactly them while the output padding hides no whole window), and transposing that with y
  /// as the output size leads back to y.
  static std::string size_complaint(const Geometry& g) {
    bool whole = true;
    for (int axis = 0; axis < g.rank(); ++axis) {
      const WindowAxis& a = g.conv.windows[axis];
      const Index extra = g.output_padding(axis);
      if (extra < 0 || extra >= a.output_padding_limit()) {
        return "no output padding leads to extent " + std::to_string(a.in) + " of axis " +
               std::to_string(axis);
      }
      whole = whole && extra < a.stride;
    }
    const ConvGeometry forward =
        conv_geometry(g.y_shape(), g.w_shape(), std::nullopt, conv_options(g.conv));
    if (whole && forward.y_shape() != g.x_shape()) {
      return "conv of y gives " + to_string(forward.y_shape()) + ", needed " +
             to_string(g.x_shape());
    }
    ConvTransposeOptions options = transposed_options(g.conv);
    options.output_size = per_axis_of(g.conv.windows, &WindowAxis::in);
    const Geometry back =
        conv_transpose_geometry(forward.y_shape(), g.w_shape(), std::nullopt, options);
    return back.y_shape() == g.y_shape() ? "" : "transposed back to " + to_string(back.y_shape());
  }

  /// The operator on any value type, as people call it.
  template <class V>
  static V call(const Geometry& g, const std::vector<V>& in, const std::vector<Tensor<Index>>&) {
    const bool biased = g.conv.has_bias;
    const ConvPrimitive primitive{
        {}, ConvDirection::input_grad, detail::without_bias(g.conv), biased};
    return biased ? apply(primitive, {in[0], in[1], in[2]}) : apply(primitive, {in[0], in[1]});
  }

  template <class T>
  static const Tensor<T>* bias(const Geometry& g, const std::vector<Tensor<T>>& values) {
    return g.conv.has_bias ? &values[2] : nullptr;
  }
  template <class T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    return spec::conv_transpose(in.values[0], in.values[1], bias(g, in.values), g);
  }
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    auto grads = spec::conv_transpose_vjp(in.values[0], in.values[1], y_bar, g);
    std::vector<Tensor<T>> list{grads.x_bar, grads.w_bar};
    if (g.conv.has_bias) {
      list.push_back(grads.b_bar);
    }
    return list;
  }
  template <class T>
  static Tensor<T> jvp(const Geometry& g, const Inputs<T>& in, const std::vector<Tensor<T>>& dots) {
    return spec::conv_transpose_jvp(in.values[0], in.values[1], dots[0], dots[1], bias(g, dots), g);
  }
};

static_assert(Operator<ConvTranspose>);

}  // namespace fenestra

// The convolution's descriptor: see ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/conv/listed.hpp>
#include <fenestra/ops/conv/spec.hpp>
#include <fenestra/ops/conv/transformed.hpp>
#include <fenestra/ops/operator.hpp>
#include <fenestra/ops/random_options.hpp>

namespace fenestra {

/// Groups and channels of one group in a random problem.
struct RandomGroups {
  Index groups = 1;
  Index in = 1;
  Index out = 1;

  RandomGroups(Random& random, int rank, Reach reach) {
    if (reach == Reach::exact) {
      groups = random.chance(3) ? random.between(2, 3) : 1;
      in = random_channels(random, rank <= 2 ? 3 : 2);
      out = random_channels(random, rank <= 2 ? 3 : 2);
    } else if (random.chance(4)) {  // depthwise, with a multiplier at times
      groups = random_count(random, 130);
      out = random.chance(4) ? random.between(1, 4) : 1;
    } else {
      groups = random.chance(4) ? random.between(2, 8) : 1;
      in = groups == 1 ? random_channels(random, 130, reach) : random_count(random, 33);
      out = groups == 1 ? random_channels(random, 130, reach) : random_count(random, 33);
    }
  }
};

struct Conv {
  using Geometry = ConvGeometry;
  using Options = ConvOptions;
  static constexpr std::string_view name = "conv";
  static constexpr std::string_view summary =
      "convolution (cross-correlation): y = b + sum of x * w over each window";
  static constexpr std::string_view example = "x=8x3x32x32 w=16x3x3x3 stride=2 padding=1";

  static Geometry parse(std::string_view text) { return parse_conv(Problem(text)); }
  static std::vector<KnownAnswer> answers() {
    return {{.problem = "x=1x1x4 w=1x1x2",
             .inputs = {{1, 2, 3, 4}, {1, 10}},
             .y = {21, 32, 43},
             .y_bar = {1, 10, 100},
             .bars = {{1, 20, 200, 1000}, {321, 432}}},
            {.problem = "x=1x4x1 w=2x2x1 groups=2 bias=true",
             .inputs = {{1, 2, 3, 4}, {1, 10, 1, 10}, {100, 200}},
             .y = {121, 243}},
            {.problem = "x=1x1x5 w=1x1x2 stride=2 padding=1 dilation=2",
             .inputs = {{1, 2, 3, 4, 5}, {1, 10}},
             .y = {20, 42, 4}}};
  }

  static Geometry random(Random& random, Reach reach = Reach::exact) {
    const int rank = random_rank(random);
    const RandomWindows windows(random, rank, reach);
    const RandomGroups channels(random, rank, reach);
    const Index groups = channels.groups;
    const Index group_in = channels.in;
    const Index group_out = channels.out;
    const RandomActivation x(random, windows.in, groups * group_in, reach);
    ConvGeometry weight;
    weight.layout = x.layout;
    weight.groups = groups;
    weight.in_channels = groups * group_in;
    weight.out_channels = groups * group_out;
    for (int axis = 0; axis < rank; ++axis) {
      weight.windows.push_back({.kernel = windows.kernel[axis]});
    }
    const bool bias = random.chance(2);
    return conv_geometry(x.joined(),
                         weight.w_shape(),
                         bias ? std::optional(Shape{groups * group_out}) : std::nullopt,
                         {.stride = windows.stride,
                          .padding = windows.padding,
                          .dilation = windows.dilation,
                          .groups = groups,
                          .layout = x.layout});
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) {
    std::vector<TensorInfo> list{{"x", g.x_shape(), Role::activation},
                                 {"w", g.w_shape(), Role::weight}};
    if (g.has_bias) {
      list.push_back({"b", Shape{g.out_channels}, Role::channels});
    }
    return list;
  }
  static TensorInfo output(const Geometry& g) { return {"y", g.y_shape(), Role::activation}; }
  static Layout layout(const Geometry& g) { return g.layout; }
  static bool batched(const Geometry& g) { return g.batched; }
  static Geometry with_layout(Geometry g, Layout layout) {
    g.layout = layout;
    return g;
  }
  static Geometry single_sample(Geometry g) {
    g.batched = false;
    g.batch = 1;
    return g;
  }
  static Geometry with_batch(Geometry g, Index batch) {
    g.batch = batch;
    return g;
  }
  static Index groups(const Geometry& g) { return g.groups; }
  static Geometry one_group(Geometry g) {
    g.in_channels = g.group_in();
    g.out_channels = g.group_out();
    g.groups = 1;
    return g;
  }
  static Windows windows(const Geometry& g) { return g.windows; }
  static std::vector<KernelChoice> kernels(const Geometry& g) {
    return conv_kernels(detail::without_bias(g));
  }
  template <Field T>
  static std::optional<std::vector<Tensor<T>>> transformed(std::string_view kernel,
                                                           const Geometry& g,
                                                           const Inputs<T>& in,
                                                           const std::vector<Tensor<T>>& dots,
                                                           const Tensor<T>& y_bar) {
    return detail::TransformedConv<T>(kernel, g).all(
        ConvDirection::forward, in.values, dots, y_bar);
  }
  template <Scalar T>
  static std::vector<Tensor<T>> listed(const Geometry& g,
                                       const Inputs<T>& in,
                                       const std::vector<Tensor<T>>& dots,
                                       const Tensor<T>& y_bar,
                                       bool with_tangent) {
    return spec::ListedConv<T>(g).all(ConvDirection::forward, in.values, dots, y_bar, with_tangent);
  }
  static Algebra algebra(const Geometry&) { return Algebra::multilinear; }
  static Costs costs(const Geometry& g) { return {g.parameters(), g.multiply_adds()}; }
  /// Products summed into one output, the bias counted as one more addition.
  static Index terms(const Geometry& g) { return g.group_in() * g.windows.taps() + 1; }

  /// The operator on any value type, as people call it.
  template <class V>
  static V call(const Geometry& g, const std::vector<V>& in, const std::vector<Tensor<Index>>&) {
    const bool biased = g.has_bias;
    const ConvPrimitive primitive{{}, ConvDirection::forward, detail::without_bias(g), biased};
    return biased ? apply(primitive, {in[0], in[1], in[2]}) : apply(primitive, {in[0], in[1]});
  }

  template <class T>
  static const Tensor<T>* bias(const Geometry& g, const std::vector<Tensor<T>>& values) {
    return g.has_bias ? &values[2] : nullptr;
  }
  template <class T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    return spec::conv(in.values[0], in.values[1], bias(g, in.values), g);
  }
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    auto grads = spec::conv_vjp(in.values[0], in.values[1], y_bar, g);
    std::vector<Tensor<T>> list{grads.x_bar, grads.w_bar};
    if (g.has_bias) {
      list.push_back(grads.b_bar);
    }
    return list;
  }
  template <class T>
  static Tensor<T> jvp(const Geometry& g, const Inputs<T>& in, const std::vector<Tensor<T>>& dots) {
    return spec::conv_jvp(in.values[0], in.values[1], dots[0], dots[1], bias(g, dots), g);
  }
};

static_assert(Operator<Conv>);

}  // namespace fenestra

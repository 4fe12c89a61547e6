// Derivatives of callables at typed graph variables: their types for every operator, and their
// values, which are those of eager calls. The types of the operators are in typed_test.cpp.
#include <fenestra/engine/compile.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/engine/typed_transforms.hpp>
#include <fenestra/ops/typed_all.hpp>

#include <gtest/gtest.h>

#include <tuple>
#include <type_traits>

namespace fenestra {
namespace {

template <Shape S>
using V = graph::Var<double, S>;
template <Shape S>
using D = graph::DataVar<S>;

template <class... Ts>
void expect_gradients(const std::tuple<Ts...>&, const Ts&...) {}
template <class T>
void expect_gradients(const T&, const T&) {}

/// Result and tangent have the type of f(in...), gradients those of the arguments.
template <class F, class... In>
void expect_typed_derivatives(const F& f, const In&... in) {
  using Y = decltype(f(in...));
  static_assert(graph::Typed<Y>);
  auto [y, pullback] = vjp(f, in...);
  static_assert(std::is_same_v<decltype(y), Y>);
  expect_gradients(pullback(y), in...);
  const auto moved = jvp(f, primals(in...), tangents(in...));
  static_assert(std::is_same_v<decltype(moved), const std::pair<Y, Y>>);
}

template <Shape... Ss>
std::tuple<V<Ss>...> inputs() {
  graph::Builder<double> builder;
  return std::tuple<V<Ss>...>{V<Ss>(builder.input(Ss, "x"))...};
}

constexpr ConvOptions kGrouped{.stride = {2, 1}, .padding = 1, .groups = 2};
constexpr ConvTransposeOptions kUpwards{.stride = 2, .groups = 2};
constexpr AdaptivePoolOptions kTwoByTwo{.output_size = {2, 2}};

TEST(TypedTransforms, ConvolutionsHaveTypedDerivatives) {
  const auto [x, w, v, b] =
      inputs<Shape{4, 6, 6}, Shape{6, 2, 3, 3}, Shape{4, 3, 2, 2}, Shape{6}>();
  expect_typed_derivatives([](const auto&... in) { return conv<kGrouped>(in...); }, x, w, b);
  expect_typed_derivatives([](const auto&... in) { return conv2d<kGrouped>(in...); }, x, w);
  expect_typed_derivatives([](const auto&... in) { return conv_transpose<kUpwards>(in...); }, x, v);
  expect_typed_derivatives(
      [](const auto&... in) { return conv_transpose2d<kUpwards>(in...); }, x, v, b);
}

TEST(TypedTransforms, PoolsHaveTypedDerivatives) {
  const auto [x, sharpness, batch] = inputs<Shape{4, 6, 6}, Shape{}, Shape{2, 4, 6, 6}>();
  expect_typed_derivatives(
      [](const auto& in) {
        return max_pool<MaxPoolOptions{.kernel = {2, 2}}>(in);
      },
      x);
  expect_typed_derivatives(
      [](const auto& in) { return max_pool2d<MaxPoolOptions{.kernel = 2}>(in); }, x);
  expect_typed_derivatives(
      [](const auto& in) { return avg_pool2d<AvgPoolOptions{.kernel = 2}>(in); }, x);
  expect_typed_derivatives([](const auto& in) { return lp_pool2d<LpPoolOptions{.kernel = 2}>(in); },
                           x);
  expect_typed_derivatives(
      [](const auto&... in) {
        return smooth_max_pool<SmoothMaxPoolOptions{.kernel = {2, 2}}>(in...);
      },
      x,
      sharpness);
  expect_typed_derivatives([](const auto& in) { return adaptive_max_pool2d<kTwoByTwo>(in); }, x);
  expect_typed_derivatives([](const auto& in) { return adaptive_avg_pool2d<kTwoByTwo>(in); }, x);
  expect_typed_derivatives([](const auto& in) { return global_max_pool(in); }, batch);
  expect_typed_derivatives([](const auto& in) { return global_avg_pool(in); }, batch);
  const auto indices = max_pool_with_indices<MaxPoolOptions{.kernel = {2, 2}}>(x).indices;
  expect_typed_derivatives(
      [&](const auto& in) {
        return max_unpool<MaxUnpoolOptions{.kernel = {2, 2}}>(
            max_pool2d<MaxPoolOptions{.kernel = 2}>(in), indices);
      },
      x);
}

TEST(TypedTransforms, GlueHasTypedDerivatives) {
  const auto [x, y, w, c, m] =
      inputs<Shape{2, 6, 4}, Shape{6, 1}, Shape{5, 4}, Shape{6}, Shape{4, 3}>();
  expect_typed_derivatives([](const auto& a, const auto& b) { return gelu(a) * b - a; }, x, y);
  expect_typed_derivatives([](const auto& a) { return mean<ReduceOptions{.axes = {1}}>(a); }, x);
  expect_typed_derivatives([](const auto& a) { return max_over(a); }, x);
  expect_typed_derivatives([](const auto& a) { return var_over<VarOptions{.axes = {1}}>(a); }, x);
  expect_typed_derivatives([](const auto& a) { return cumsum<1>(flatten<1>(sin(a))); }, x);
  expect_typed_derivatives(
      [](const auto& a, const auto& b) { return where(less(a, b), a, b); }, x, y);
  expect_typed_derivatives([](const auto& a) { return sum_to<Shape{6, 1}>(a); }, x);
  expect_typed_derivatives([](const auto& a) { return broadcast_to<Shape{2, 6, 3}>(a); }, y);
  expect_typed_derivatives(
      [](const auto& a) {
        return reshape<Shape{-1, 2}>(transpose<AxisList{2, 0, 1}>(a));
      },
      x);
  expect_typed_derivatives(
      [](const auto& a) { return slice<AxisRange{.axis = 1, .begin = 1, .count = 2}>(a); }, x);
  expect_typed_derivatives([](const auto&... in) { return concat<1>(in...); }, y, y);
  expect_typed_derivatives(
      [](const auto& a) {
        return pad<PadOptions{.axes = {2}}, LowHigh{1, 2}>(a);
      },
      x);
  expect_typed_derivatives([](const auto& a) { return resize<ResizeOptions{.scale = 2}>(a); }, x);
  expect_typed_derivatives([](const auto&... in) { return matmul(in...); }, x, m);
  expect_typed_derivatives([](const auto&... in) { return linear(in...); }, x, w);
  expect_typed_derivatives([](const auto& a) { return log_softmax(softmax<1>(a)); }, x);
  expect_typed_derivatives([](const auto& a) { return logsumexp<0>(a); }, x);
  expect_typed_derivatives([](const auto&... in) { return batch_norm(in...).y; }, x, c, c);
  expect_typed_derivatives([](const auto&... in) { return group_norm<3>(in...); }, x, c, c);
  expect_typed_derivatives([](const auto& a) { return layer_norm<2>(a); }, x);
  expect_typed_derivatives([](const auto&... in) { return mse_loss(in...); }, x, x);
  expect_typed_derivatives([](const auto&... in) { return bce_with_logits(in...); }, x, x);
}

constexpr auto block = [](const auto& x, const auto& w, const auto& b) {
  return relu(conv<ConvOptions{.stride = {2, 1}, .padding = 1}>(x, w, b));
};

TEST(TypedTransforms, DerivativesHaveTheBitsOfEagerOnes) {
  const auto pulled = [](const auto&... in) {
    auto [y, pullback] = vjp(block, in...);
    return std::tuple_cat(std::tuple(y), pullback(y));
  };
  const auto pushed = [](const auto&... in) {
    const auto [y, y_dot] = jvp(block, primals(in...), tangents(in...));
    return std::tuple(y, y_dot);
  };
  Tensor<double> x(Shape{3, 4, 4}), w(Shape{2, 3, 3, 3}), b(Shape{2}, {0.5, -0.25});
  for (Index i = 0; i < x.size(); ++i) {
    x.mutable_values()[static_cast<std::size_t>(i)] = static_cast<double>(i % 7) / 8 - 0.375;
  }
  for (Index i = 0; i < w.size(); ++i) {
    w.mutable_values()[static_cast<std::size_t>(i)] = static_cast<double>(i % 5) / 4 - 0.5;
  }
  const auto expect_equal = [&](const auto& f) {
    const auto program = compile<double>(f,
                                         typed_input<Shape{3, 4, 4}>,
                                         typed_parameter<Shape{2, 3, 3, 3}>,
                                         typed_parameter<Shape{2}>);
    Context context(program);
    EXPECT_EQ(program.run(context, x, w, b), tree_flatten(f(x, w, b)));
  };
  expect_equal(pulled);
  expect_equal(pushed);
}

TEST(TypedTransforms, GradientsOfALossWithTypedLabelsAreTyped) {
  graph::Builder<double> builder;
  const V<Shape{4, 3}> x(builder.input(Shape{4, 3}, "x"));
  const V<Shape{5, 3}> w(builder.parameter(Shape{5, 3}, "w"));
  const D<Shape{4}> labels(builder.data(Shape{4}, "labels"));
  const auto loss = [&](const auto&... in) { return cross_entropy(linear(in...), labels); };
  const auto [value, bars] = value_and_grad(loss, x, w);
  static_assert(std::is_same_v<decltype(value), const V<Shape{}>>);
  expect_gradients(bars, x, w);
  const auto of_w = [&](const auto& weight) { return loss(x, weight); };
  expect_gradients(grad(of_w, w), w);
}

TEST(TypedTransforms, ACallableWithARunTimeShapeHasTypedGradientsOnly) {
  graph::Builder<double> builder;
  const V<Shape{4, 3}> x(builder.input(Shape{4, 3}, "x"));
  const graph::Value<double> w = builder.parameter(Shape{5, 3}, "w");
  const auto model = [&](const auto& v) { return linear(v, w); };
  auto [y, pullback] = vjp(model, x);
  static_assert(std::is_same_v<decltype(y), graph::Value<double>>);
  EXPECT_EQ(y.shape(), (Shape{4, 5}));
  expect_gradients(pullback(y), x);
}

}  // namespace
}  // namespace fenestra

// Typed graph variables: the types that operators return, mixing with run-time shapes, programs.
// Derivatives are in typed_transforms_test.cpp, what must not compile in tests/compile_fail.
#include <fenestra/engine/compile.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/ops/typed_all.hpp>

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <type_traits>

namespace fenestra {
namespace {

template <Shape S>
using V = graph::Var<float, S>;
template <Shape S>
using D = graph::DataVar<S>;

template <Shape S>
V<S> given() {
  graph::Builder<float> builder;
  return V<S>(builder.input(S, "x"));
}

/// Some typed variables of one graph, of distinct types.
template <Shape... Ss>
std::tuple<V<Ss>...> inputs() {
  graph::Builder<float> builder;
  return std::tuple<V<Ss>...>{V<Ss>(builder.input(Ss, "x"))...};
}

/// The node has the shape that the type says; a typed handle cannot be made otherwise.
template <Shape expected, class T, Shape S>
void expect_type(const graph::Var<T, S>& y) {
  static_assert(S == expected);
  EXPECT_EQ(static_cast<const graph::Value<T>&>(y).shape(), expected);
}

TEST(Typed, WindowsHaveTheShapesOfTheGeometry) {
  const auto [x, w, b] = inputs<Shape{3, 32, 32}, Shape{16, 3, 3, 3}, Shape{16}>();
  expect_type<Shape{16, 16, 32}>(conv<ConvOptions{.stride = {2, 1}, .padding = 1}>(x, w, b));
  expect_type<Shape{16, 30, 30}>(conv(x, w));
  expect_type<Shape{16, 32, 32}>(conv2d<ConvOptions{.padding = same}>(x, w, b));
  const auto [u, v] = inputs<Shape{2, 3, 5}, Shape{3, 4, 2}>();
  expect_type<Shape{2, 4, 10}>(conv_transpose<ConvTransposeOptions{.stride = 2}>(u, v));
  expect_type<Shape{2, 4, 10}>(conv_transpose1d<ConvTransposeOptions{.stride = 2}>(u, v));
  expect_type<Shape{3, 16, 16}>(max_pool<MaxPoolOptions{.kernel = {2, 2}}>(x));
  expect_type<Shape{3, 16, 16}>(max_pool2d<MaxPoolOptions{.kernel = 2}>(x));
  expect_type<Shape{3, 16, 16}>(avg_pool2d<AvgPoolOptions{.kernel = 2}>(x));
  expect_type<Shape{3, 16, 16}>(lp_pool2d<LpPoolOptions{.kernel = 2}>(x));
  expect_type<Shape{3, 16, 16}>(smooth_max_pool2d<SmoothMaxPoolOptions{.kernel = 2}>(x));
  expect_type<Shape{3, 4, 5}>(adaptive_avg_pool2d<AdaptivePoolOptions{.output_size = {4, 5}}>(x));
  expect_type<Shape{3, 4, 5}>(adaptive_max_pool2d<AdaptivePoolOptions{.output_size = {4, 5}}>(x));
  const V<Shape{2, 3, 5, 4}> batch = given<Shape{2, 3, 5, 4}>();
  expect_type<Shape{2, 3, 1, 1}>(global_avg_pool(batch));
  expect_type<Shape{2, 3, 1, 1}>(global_max_pool(batch));
  const auto pooled = max_pool_with_indices<MaxPoolOptions{.kernel = {2, 2}}>(x);
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(pooled.indices)>, D<Shape{3, 16, 16}>>);
  expect_type<Shape{3, 32, 32}>(
      max_unpool<MaxUnpoolOptions{.kernel = {2, 2}}>(pooled.y, pooled.indices));
}

TEST(Typed, WindowsHaveAnyRankWithOrWithoutABatch) {
  const auto [x, w, v] = inputs<Shape{2, 2, 4, 5, 6}, Shape{3, 2, 1, 2, 3}, Shape{2, 3, 2, 2, 2}>();
  expect_type<Shape{2, 3, 4, 4, 4}>(conv(x, w));
  expect_type<Shape{2, 3, 4, 4, 4}>(conv3d(x, w));
  expect_type<Shape{2, 3, 5, 6, 7}>(conv_transpose3d(x, v));
  expect_type<Shape{2, 2, 2, 2, 3}>(max_pool3d<MaxPoolOptions{.kernel = 2}>(x));
  expect_type<Shape{2, 2, 2, 2, 3}>(avg_pool3d<AvgPoolOptions{.kernel = 2}>(x));
  expect_type<Shape{2, 2, 2, 2, 3}>(lp_pool3d<LpPoolOptions{.kernel = 2}>(x));
  expect_type<Shape{2, 2, 2, 2, 3}>(smooth_max_pool3d<SmoothMaxPoolOptions{.kernel = 2}>(x));
  expect_type<Shape{2, 2, 2, 1, 3}>(
      adaptive_max_pool3d<AdaptivePoolOptions{.output_size = {2, 1, 3}}>(x));
  expect_type<Shape{2, 2, 2, 1, 3}>(
      adaptive_avg_pool3d<AdaptivePoolOptions{.output_size = {2, 1, 3}}>(x));
  const auto [a, k, t] = inputs<Shape{2, 6}, Shape{4, 2, 3}, Shape{2, 4, 3}>();
  expect_type<Shape{4, 4}>(conv1d(a, k));
  expect_type<Shape{4, 8}>(conv_transpose1d(a, t));
  expect_type<Shape{2, 3}>(max_pool1d<MaxPoolOptions{.kernel = 2}>(a));
  expect_type<Shape{2, 3}>(avg_pool1d<AvgPoolOptions{.kernel = 2}>(a));
  expect_type<Shape{2, 3}>(lp_pool1d<LpPoolOptions{.kernel = 2}>(a));
  expect_type<Shape{2, 3}>(smooth_max_pool1d<SmoothMaxPoolOptions{.kernel = 2}>(a));
  expect_type<Shape{2, 4}>(adaptive_max_pool1d<AdaptivePoolOptions{.output_size = 4}>(a));
  expect_type<Shape{2, 4}>(adaptive_avg_pool1d<AdaptivePoolOptions{.output_size = 4}>(a));
  const auto [deep, tap] = inputs<Shape{1, 3, 3, 3, 3}, Shape{2, 1, 2, 2, 2, 2}>();
  expect_type<Shape{2, 2, 2, 2, 2}>(conv(deep, tap));  // a sample with four spatial axes
  const auto [last, taps, sharpness] = inputs<Shape{2, 5, 4}, Shape{3, 2, 6}, Shape{}>();
  constexpr ConvOptions kGrouped{.groups = 2, .layout = Layout::channels_last};
  expect_type<Shape{2, 3, 6}>(conv<kGrouped>(last, taps));
  const V<Shape{2, 5, 3, 4}> images = given<Shape{2, 5, 3, 4}>();
  expect_type<Shape{2, 1, 1, 4}>(global_avg_pool<Layout::channels_last>(images));
  expect_type<Shape{2, 5, 2}>(
      smooth_max_pool<SmoothMaxPoolOptions{.kernel = {2}}>(last, sharpness));
}

TEST(Typed, IndicesOfPoolsAreTypedData) {
  const V<Shape{2, 6}> x = given<Shape{2, 6}>();
  const auto pooled = adaptive_max_pool_with_indices<AdaptivePoolOptions{.output_size = {3}}>(x);
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(pooled.indices)>, D<Shape{2, 3}>>);
  expect_type<Shape{2, 6}>(max_unpool1d<MaxUnpoolOptions{.kernel = 2}>(pooled.y, pooled.indices));
}

TEST(Typed, ElementwiseOperatorsBroadcastTypes) {
  const auto [x, row, column] = inputs<Shape{4, 3}, Shape{3}, Shape{4, 1}>();
  expect_type<Shape{4, 3}>(relu(x));
  expect_type<Shape{4, 3}>(-gelu(x));
  expect_type<Shape{4, 3}>(leaky_relu(x, 0.1));
  expect_type<Shape{4, 3}>(clip(scale(power(x, 2), 3), 0, 6));
  expect_type<Shape{4, 3}>(x + row);
  expect_type<Shape{4, 3}>(column * row);
  expect_type<Shape{4, 3}>(maximum(column, x) / row - x);
  expect_type<Shape{4, 3}>(minimum(pow(x, row), column));
  expect_type<Shape{4, 3}>(exp(log(sqrt(abs(sign(x))))));
  expect_type<Shape{4, 3}>(sin(cos(erf(floor(ceil(round(elu(stop_gradient(x)))))))));
  expect_type<Shape{4, 3}>(column % row + floor_divide(x, row));
  expect_type<Shape{4, 3}>(where(less(column, row), x, row));
  expect_type<Shape{4, 3}>(not_equal(greater(x, row), less_equal(column, row)));
  expect_type<Shape{4, 3}>(sigmoid(tanh(normal_cdf(silu(hard_sigmoid(softplus(x)))))));
}

TEST(Typed, GlueHasTheShapesOfItsRules) {
  const auto [x, y, m] = inputs<Shape{2, 6, 4}, Shape{2, 5, 4}, Shape{4, 7}>();
  expect_type<Shape{}>(sum(x));
  expect_type<Shape{2, 4}>(mean<ReduceOptions{.axes = {1}}>(x));
  expect_type<Shape{2, 1, 4}>(max_over<ReduceOptions{.axes = {-2}, .keep = true}>(x));
  expect_type<Shape{6}>(min_over<ReduceOptions{.axes = {0, 2}}>(x));
  expect_type<Shape{2, 1, 4}>(sum_to<Shape{2, 1, 4}>(x));
  expect_type<Shape{3, 2, 6, 4}>(broadcast_to<Shape{3, 2, 6, 4}>(x));
  expect_type<Shape{8, 6}>(reshape<Shape{8, -1}>(x));
  expect_type<Shape{2, 24}>(flatten<1>(x));
  expect_type<Shape{48}>(flatten(x));
  expect_type<Shape{2, 1, 6, 4}>(unsqueeze<1>(x));
  expect_type<Shape{2, 4}>(squeeze(max_over<ReduceOptions{.axes = {1}, .keep = true}>(x)));
  expect_type<Shape{2, 4}>(std_over<VarOptions{.axes = {1}, .correction = 1}>(x));
  expect_type<Shape{2, 6, 4}>(cumsum<-1>(x));
  expect_type<Shape{4, 2, 6}>(transpose<AxisList{2, 0, 1}>(x));
  expect_type<Shape{2, 4, 6}>(transpose(x));
  expect_type<Shape{2, 2, 4}>(slice<AxisRange{.axis = 1, .begin = 1, .count = 2, .step = 3}>(x));
  expect_type<Shape{2, 11, 4}>(concat<1>(x, y));
  expect_type<Shape{2, 8, 4}>(pad<LowHigh{0, 0}, LowHigh{1, 1}, LowHigh{0, 0}>(x));
  expect_type<Shape{2, 6, 7}>(
      pad<PadOptions{.axes = {2}, .mode = PadMode::reflect}, LowHigh{1, 2}>(x));
  expect_type<Shape{2, 6, 8}>(resize<ResizeOptions{.scale = 2}>(x));
  expect_type<Shape{2, 6, 5}>(resize<ResizeOptions{.size = 5, .mode = ResizeMode::bilinear}>(x));
  expect_type<Shape{2, 6, 7}>(matmul(x, m));
  expect_type<Shape{2, 6, 5}>(matmul<MatMulOptions{.transpose_b = true}>(x, y));
  expect_type<Shape{2, 6, 4}>(softmax<1>(x));
  expect_type<Shape{2, 6, 4}>(log_softmax(x));
  expect_type<Shape{2, 6}>(logsumexp(x));
  expect_type<Shape{2, 1, 4}>(logsumexp<1, true>(x));
}

TEST(Typed, LinearNormsAndLossesHaveTheShapesOfTheirRules) {
  const auto [x, w, b, c] = inputs<Shape{2, 6, 4}, Shape{5, 4}, Shape{5}, Shape{6}>();
  expect_type<Shape{2, 6, 5}>(linear(x, w, b));
  expect_type<Shape{2, 6, 5}>(linear(x, w));
  const auto normalised = batch_norm(x, c, c);
  expect_type<Shape{2, 6, 4}>(normalised.y);
  expect_type<Shape{6}>(normalised.mean);
  expect_type<Shape{6}>(normalised.var);
  expect_type<Shape{2, 6, 4}>(batch_norm_inference<NormOptions{.eps = 1e-3}>(x, c, c));
  expect_type<Shape{2, 6, 4}>(group_norm<3>(x, c, c));
  expect_type<Shape{2, 6, 4}>(layer_norm<2>(x));
  const auto [r] = inputs<Shape{4}>();
  expect_type<Shape{3, 4}>(layer_norm(given<Shape{3, 4}>()));
  expect_type<Shape{4}>(layer_norm(r));
  expect_type<Shape{}>(mse_loss(x, x));
  expect_type<Shape{2, 6, 4}>(bce_with_logits<LossOptions{.reduction = Reduction::none}>(x, x));
  graph::Builder<float> builder;
  const V<Shape{8, 10}> logits(builder.input(Shape{8, 10}, "x"));
  const D<Shape{8}> labels(builder.data(Shape{8}, "labels"));
  expect_type<Shape{}>(cross_entropy(logits, labels));
  expect_type<Shape{8}>(cross_entropy<LossOptions{.reduction = Reduction::none}>(logits, labels));
}

constexpr auto block = [](const auto& x, const auto& w, const auto& b) {
  return relu(conv<ConvOptions{.stride = {2, 1}, .padding = 1}>(x, w, b));
};

TEST(Typed, OneCallableServesTensorsTapesAndGraphs) {
  const Tensor<float> x(Shape{3, 8, 8}, 0.5F), w(Shape{4, 3, 3, 3}, 0.25F), b(Shape{4}, 1.0F);
  const Tensor<float> y = block(x, w, b);
  EXPECT_EQ(y, relu(conv(x, w, b, {.stride = {2, 1}, .padding = 1})));
  Tape<float> tape;
  const auto variable = tape.parameter(w);
  EXPECT_EQ(block(x, variable, b).tensor(), y);
  const auto program = compile<float>(block,
                                      typed_input<Shape{3, 8, 8}>,
                                      typed_parameter<Shape{4, 3, 3, 3}>,
                                      typed_parameter<Shape{4}>);
  Context context(program);
  EXPECT_EQ(program.run(context, x, w, b)[0], y);
}

TEST(Typed, AVariableOfARunTimeShapeMakesTheResultOne) {
  graph::Builder<float> builder;
  const V<Shape{3, 8, 8}> x(builder.input(Shape{3, 8, 8}, "x"));
  const graph::Value<float> w = builder.parameter(Shape{4, 3, 3, 3}, "w");
  const auto y = conv(x, w);
  static_assert(std::is_same_v<decltype(y), const graph::Value<float>>);
  EXPECT_EQ(y.shape(), (Shape{4, 6, 6}));
  expect_type<Shape{4, 6, 6}>(V<Shape{4, 6, 6}>(y));
  const graph::Value<float> converted = x;
  EXPECT_EQ(converted.node(), x.node());
  static_assert(std::is_same_v<decltype(x + Tensor<float>(Shape{8})), graph::Value<float>>);
  const V<Shape{5, 3}> logits(builder.input(Shape{5, 3}, "logits"));
  const auto loss = cross_entropy(logits, Tensor<Index>(Shape{5}));
  static_assert(std::is_same_v<decltype(loss), const graph::Value<float>>);
}

TEST(Typed, AMistakeAmongRunTimeShapesIsTheEagerOne) {
  graph::Builder<float> builder;
  const V<Shape{3, 8, 8}> x(builder.input(Shape{3, 8, 8}, "x"));
  const auto text = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const Shape wrong{4, 2, 3, 3};
  const std::string eager = text([&] {
    conv(Tensor<float>(Shape{3, 8, 8}), Tensor<float>(wrong));
  });
  EXPECT_FALSE(eager.empty());
  EXPECT_EQ(text([&] { conv(x, builder.parameter(wrong, "w")); }), eager);
}

TEST(Typed, ACastToAnotherShapeIsRefusedWithBothShapes) {
  graph::Builder<float> builder;
  try {
    V<Shape{2, 3}>{builder.input(Shape{3, 2}, "x")};
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::shape_mismatch);
    EXPECT_NE(std::string(error.what()).find("(3, 2)"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("(2, 3)"), std::string::npos);
  }
  EXPECT_THROW(D<Shape{2}>{builder.data(Shape{3}, "labels")}, Error);
}

TEST(Typed, DataReceivesNoGradient) {
  const auto loss = [](const auto& x, const auto& w, const auto& labels) {
    return cross_entropy(linear(x, w), labels);
  };
  const auto program = compile<float>(loss,
                                      typed_input<Shape{4, 3}>,
                                      typed_parameter<Shape{5, 3}>,
                                      typed_data<Shape{4}>,
                                      CompileOptions{.value_and_grad = true});
  const Tensor<float> x(Shape{4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 3, 5});
  const Tensor<float> w(Shape{5, 3}, 0.125F);
  const Tensor<Index> labels(Shape{4}, {0, 4, 2, 1});
  Context context(program);
  const auto results = program.value_and_grad(context, x, w, labels);
  const auto [value, bars] = value_and_grad(
      [&](const auto& v, const auto& weight) { return cross_entropy(linear(v, weight), labels); },
      x,
      w);
  ASSERT_EQ(results.size(), 3u);  // the value, and a gradient each for x and w
  EXPECT_EQ(results[0], value);
  EXPECT_EQ(results[1], std::get<0>(bars));
  EXPECT_EQ(results[2], std::get<1>(bars));
}

TEST(Typed, MasksReceiveNoGradient) {
  const auto loss = [](const auto& x, const auto& mask) { return sum(x * x * mask); };
  const auto program = compile<double>(
      loss, typed_input<Shape{4}>, typed_mask<Shape{4}>, CompileOptions{.value_and_grad = true});
  Context context(program);
  const Tensor<double> x(Shape{4}, {1, 2, 3, 4}), mask(Shape{4}, {1, 0, 0, 1});
  const auto results = program.value_and_grad(context, x, mask);
  ASSERT_EQ(results.size(), 2u);  // the value and the gradient of x
  EXPECT_EQ(results[0][0], 17);
  EXPECT_EQ(results[1], Tensor<double>(Shape{4}, {2, 0, 0, 8}));
}

}  // namespace
}  // namespace fenestra

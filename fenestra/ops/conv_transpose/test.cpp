// Transposed convolution: the contract's answers on every scalar, cropping and output padding, and
// the gradients.
#include <fenestra/check/examples.hpp>
#include <fenestra/ops/conv_transpose/op.hpp>
#include <fenestra/tensor/transform.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace fenestra {
namespace {

using check::counting;
using check::cube;
using check::for_each_scalar;
using check::line;
using check::tensor;

constexpr Shape output_of(const Shape& x, const Shape& w, const ConvTransposeOptions& options) {
  return resolve_conv_transpose(x, w, std::nullopt, options).geometry.y_shape();
}
static_assert(output_of({1, 1, 1}, {1, 1, 3}, {.padding = 1}) == Shape{1, 1, 1}, "computed signed");
static_assert(output_of({1, 8, 7, 7}, {8, 4, 4, 4}, {.stride = 2, .padding = 1}) ==
              Shape{1, 4, 14, 14});

TEST(ConvTranspose, KnownAnswersOfTheContract) {
  for_each_scalar([]<class T>() {
    const auto x = line<T>({1, 2, 3});
    const auto w = line<T>({1, 10, 100});
    EXPECT_EQ(spec::conv_transpose(x, w, {.stride = 2}), line<T>({1, 10, 102, 20, 203, 30, 300}));
    EXPECT_EQ(spec::conv_transpose(x, w, {.stride = 2, .padding = 1}),
              line<T>({10, 102, 20, 203, 30}));
    EXPECT_EQ(spec::conv_transpose(x, w, {.stride = 2, .padding = 1, .output_padding = 1}),
              line<T>({10, 102, 20, 203, 30, 300}));
    EXPECT_EQ(spec::conv_transpose(line<T>({7}), line<T>({1, 10, 100}), {.padding = 1}),
              line<T>({70}));
  });
}

TEST(ConvTranspose, OutputPaddingRevealsHiddenCellsFirstThenZeros) {
  for_each_scalar([]<class T>() {
    const auto x = line<T>({1, 2});
    const auto w = line<T>({1, 10, 100});
    const auto whole = {1.0, 10.0, 100.0, 2.0, 20.0, 200.0};
    EXPECT_EQ(spec::conv_transpose(x, w, {.stride = 3}), line<T>(whole));
    EXPECT_EQ(spec::conv_transpose(x, w, {.stride = 3, .padding = {{0, 1}}, .output_padding = 1}),
              line<T>(whole));
    EXPECT_EQ(spec::conv_transpose(x, w, {.stride = 3, .padding = {{0, 1}}, .output_padding = 2}),
              line<T>({1, 10, 100, 2, 20, 200, 0}));
    EXPECT_EQ(spec::conv_transpose(x, w, {.stride = 3, .output_padding = 2}),
              line<T>({1, 10, 100, 2, 20, 200, 0, 0}));
    EXPECT_EQ(spec::conv_transpose(x, w, {.dilation = 3, .output_padding = 2}).shape(),
              (Shape{1, 1, 10}))
        << "below the dilation is enough";
  });
}

TEST(ConvTranspose, AnOutputSizeMayBeGivenInsteadOfAnOutputPadding) {
  for_each_scalar([]<class T>() {
    const auto x = line<T>({1, 2, 3});
    const auto w = line<T>({1, 10, 100});
    for (const Index extra : {0, 1}) {
      EXPECT_EQ(spec::conv_transpose(x, w, {.stride = 2, .padding = 1, .output_size = 5 + extra}),
                spec::conv_transpose(x, w, {.stride = 2, .padding = 1, .output_padding = extra}));
    }
  });
}

TEST(ConvTranspose, DilationGroupsAndBias) {
  for_each_scalar([]<class T>() {
    EXPECT_EQ(spec::conv_transpose(line<T>({1, 2}), line<T>({1, 10}), {.dilation = 2}),
              line<T>({1, 2, 10, 20}));
    const auto x = tensor<T>({1, 2, 1}, {3, 5});
    EXPECT_EQ(spec::conv_transpose(x, tensor<T>({2, 2, 1}, {1, 10, 100, 1000}), {.groups = 2}),
              tensor<T>({1, 4, 1}, {3, 30, 500, 5000}));
    EXPECT_EQ(
        spec::conv_transpose(x, tensor<T>({2, 2, 1}, {1, 10, 100, 1000}), tensor<T>({2}, {1, 2})),
        tensor<T>({1, 2, 1}, {504, 5032}));
  });
}

TEST(ConvTranspose, SamePaddingMultipliesTheExtentByTheStride) {
  for_each_scalar([]<class T>() {
    EXPECT_EQ(spec::conv_transpose(
                  line<T>({1, 2, 3}), line<T>({1, 10, 100}), {.stride = 2, .padding = same}),
              line<T>({1, 10, 102, 20, 203, 30}))
        << "one cell cropped, on the high side";
    EXPECT_EQ(spec::conv_transpose(line<T>({1, 2}), line<T>({1, 10, 100}), {.padding = same}),
              line<T>({12, 120}));
  });
}

TEST(ConvTranspose, IsTheInputGradientOfTheConvolutionWithTheSameNumbers) {
  const auto g = conv_geometry(
      {2, 4, 6, 5},
      {6, 2, 3, 2},
      std::nullopt,
      {.stride = {2, 1}, .padding = {{1, 0}, {1, 1}}, .dilation = {1, 2}, .groups = 2});
  const auto y_bar = counting<Rational>(g.y_shape());
  const auto w = counting<Rational>(g.w_shape());
  EXPECT_EQ(spec::conv_transpose(y_bar,
                                 w,
                                 {.stride = {2, 1},
                                  .padding = {{1, 0}, {1, 1}},
                                  .dilation = {1, 2},
                                  .output_size = {6, 5},
                                  .groups = 2}),
            spec::conv_input_grad(y_bar, w, g));
}

TEST(ConvTranspose, GradientsByHand) {
  for_each_scalar([]<class T>() {
    // y = [x0 w0, x0 w1 + x1 w0, x1 w1]
    const auto x = line<T>({2, 3});
    const auto w = line<T>({5, 7});
    const auto g = conv_transpose_geometry(x.shape(), w.shape(), Shape{1}, {});
    EXPECT_EQ(spec::conv_transpose<T>(x, w, nullptr, g), line<T>({10, 29, 21}));
    const auto grads = spec::conv_transpose_vjp(x, w, line<T>({1, 10, 100}), g);
    EXPECT_EQ(grads.x_bar, line<T>({75, 750}));
    EXPECT_EQ(grads.w_bar, line<T>({32, 320}));
    EXPECT_EQ(grads.b_bar, tensor<T>({1}, {111}));
    const auto b_dot = tensor<T>({1}, {100});
    EXPECT_EQ(spec::conv_transpose_jvp(x, w, line<T>({1, 0}), line<T>({0, 1}), &b_dot, g),
              line<T>({105, 109, 103}));
  });
}

TEST(ConvTranspose, ACroppedCellHasNoPartInTheGradient) {
  const auto x = line<Rational>({1, 2, 3});
  const auto w = line<Rational>({1, 10, 100});
  const auto g =
      conv_transpose_geometry(x.shape(), w.shape(), std::nullopt, {.stride = 2, .padding = 1});
  const auto grads = spec::conv_transpose_vjp(x, w, Tensor<Rational>(g.y_shape(), Rational(1)), g);
  EXPECT_EQ(grads.x_bar, line<Rational>({110, 111, 11}));
  EXPECT_EQ(grads.w_bar, line<Rational>({5, 6, 3}));
}

TEST(ConvTranspose, ChannelsLastHasTheSameValues) {
  for_each_scalar([]<class T>() {
    const auto x = counting<T>({2, 4, 3, 2});
    const auto w = counting<T>({4, 3, 2, 2});
    const auto b = counting<T>({6});
    const auto first = spec::conv_transpose(x, w, b, {.stride = 2, .groups = 2});
    const auto last = spec::conv_transpose(
        activation_to_layout(x, true, Layout::channels_first, Layout::channels_last),
        weight_to_layout(w, Layout::channels_first, Layout::channels_last),
        b,
        {.stride = 2, .groups = 2, .layout = Layout::channels_last});
    EXPECT_EQ(last,
              activation_to_layout(first, true, Layout::channels_first, Layout::channels_last));
  });
}

TEST(ConvTranspose, ASingleSampleIsASliceOfItsBatch) {
  const auto x = counting<double>({2, 3, 4});
  const auto w = counting<double>({3, 2, 2});
  const auto y = spec::conv_transpose(x, w);
  for (Index n = 0; n < 2; ++n) {
    EXPECT_EQ(spec::conv_transpose(sliced(x, 0, n, 1).reshaped({3, 4}), w),
              sliced(y, 0, n, 1).reshaped({2, 5}));
  }
}

TEST(ConvTranspose, EveryRankUpToEight) {
  for (const int rank : {1, 2, 3, 4, 5, 8}) {
    const Tensor<double> x(cube(1, 2, 2, rank), 1.0);
    const Tensor<double> w(cube(2, 1, 2, rank), 1.0);
    EXPECT_EQ(spec::conv_transpose(x, w, {.stride = 2}), Tensor<double>(cube(1, 1, 4, rank), 2.0))
        << rank;
    EXPECT_EQ(spec::conv_transpose(x, w, {.padding = 1}),
              Tensor<double>(cube(1, 1, 1, rank), 2 * std::pow(2.0, rank)));
  }
}

TEST(ConvTranspose, EmptyBatchesAndChannels) {
  const Tensor<double> b(Shape{2}, {5.0, 6.0});
  EXPECT_EQ(spec::conv_transpose(Tensor<double>(Shape{0, 3, 4}), Tensor<double>(Shape{3, 2, 2}), b),
            Tensor<double>(Shape{0, 2, 5}));
  EXPECT_EQ(spec::conv_transpose(Tensor<double>(Shape{1, 0, 1}), Tensor<double>(Shape{0, 2, 2}), b),
            (Tensor<double>(Shape{1, 2, 2}, {5.0, 5.0, 6.0, 6.0})));
  EXPECT_EQ(spec::conv_transpose(Tensor<double>(Shape{1, 3, 4}), Tensor<double>(Shape{3, 0, 2})),
            Tensor<double>(Shape{1, 0, 5}));
  const auto g = conv_transpose_geometry({0, 3, 4}, {3, 2, 2}, Shape{2}, {});
  const auto grads = spec::conv_transpose_vjp(Tensor<double>(g.x_shape()),
                                              Tensor<double>(g.w_shape(), 1.0),
                                              Tensor<double>(g.y_shape()),
                                              g);
  EXPECT_EQ(grads.w_bar, Tensor<double>(Shape{3, 2, 2}));
  EXPECT_EQ(grads.b_bar, Tensor<double>(Shape{2}));
}

TEST(ConvTranspose, TheForwardConvolutionLeadsBackToTheSizesForEveryOutputPadding) {
  for (Index extra = 0; extra < 3; ++extra) {
    const auto g = conv_transpose_geometry(
        {1, 2, 5}, {2, 3, 4}, std::nullopt, {.stride = 3, .padding = 1, .output_padding = extra});
    EXPECT_EQ(g.conv.windows[0].base_extent(), 14);
    EXPECT_EQ(g.output_padding(0), extra);
    EXPECT_EQ(g.conv.windows[0].output_padding_limit(), 3);
    EXPECT_EQ(ConvTranspose::size_complaint(g), "");
    EXPECT_EQ(conv_geometry(g.y_shape(), g.w_shape(), std::nullopt, {.stride = 3, .padding = 1})
                  .y_shape(),
              g.x_shape());
  }
}

}  // namespace
}  // namespace fenestra

// Max pooling: the contract's answers on every scalar; ties, NaN, infinities, windows without a
// real cell; gradients.
#include <fenestra/check/examples.hpp>
#include <fenestra/ops/pool/max/op.hpp>
#include <fenestra/tensor/transform.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fenestra {
namespace {

using check::counting;
using check::cube;
using check::for_each_scalar;
using check::line;
using check::tensor;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor<Index> winners(std::initializer_list<Index> list) {
  return Tensor<Index>(Shape{1, 1, static_cast<Index>(list.size())}, list);
}

TEST(MaxPool, KnownAnswersOfTheContract) {
  for_each_scalar([]<class T>() {
    const auto negative = line<T>({-3, -1, -2});
    const MaxPoolOptions overlapping{.kernel = 3, .stride = 2, .padding = 1};
    EXPECT_EQ(spec::max_pool(negative, overlapping), line<T>({-1, -1}));
    EXPECT_EQ(spec::max_pool_indices(negative, overlapping), winners({1, 1}));
    EXPECT_EQ(spec::max_pool(line<T>({1, 2, 3, 4, 5}),
                             {.kernel = 2, .stride = 1, .padding = 1, .dilation = 2}),
              line<T>({2, 3, 4, 5, 4}));
    EXPECT_EQ(spec::max_pool(line<T>({1, 2, 3, 4, 5, 6, 7}),
                             {.kernel = 3, .stride = 3, .ceil_mode = true}),
              line<T>({3, 6, 7}));
  });
}

TEST(MaxPool, TheGradientOfAWindowGoesToItsLargestCell) {
  for_each_scalar([]<class T>() {
    const auto x = tensor<T>({1, 1, 2, 2}, {1, 2, 5, 4});
    const auto g = max_pool_geometry(x.shape(), {.kernel = 2});
    const auto indices = spec::max_pool_indices(x, g);
    EXPECT_EQ(spec::max_pool(x, g), tensor<T>({1, 1, 1, 1}, {5}));
    EXPECT_EQ(spec::max_pool_vjp(indices, tensor<T>({1, 1, 1, 1}, {9}), g),
              tensor<T>({1, 1, 2, 2}, {0, 0, 9, 0}));
    EXPECT_EQ(spec::max_pool_jvp(indices, tensor<T>({1, 1, 2, 2}, {1, 2, 3, 4}), g),
              tensor<T>({1, 1, 1, 1}, {3}));
  });
}

TEST(MaxPool, ACellThatWinsSeveralWindowsCollectsTheirGradients) {
  for_each_scalar([]<class T>() {
    const auto x = line<T>({1, 9, 2, 3});
    const auto g = max_pool_geometry(x.shape(), {.kernel = 2, .stride = 1});
    const auto indices = spec::max_pool_indices(x, g);
    EXPECT_EQ(indices, winners({1, 1, 3}));
    EXPECT_EQ(spec::max_pool_vjp(indices, line<T>({1, 10, 100}), g), line<T>({0, 11, 0, 100}));
  });
}

TEST(MaxPool, TheFirstOfEqualsWinsInValueIndexAndBothGradients) {
  for_each_scalar([]<class T>() {
    const auto x = tensor<T>({1, 1, 2, 3}, {1, 7, 7, 7, 2, 7});
    const auto g = max_pool_geometry(x.shape(), {.kernel = {2, 3}});
    const auto indices = spec::max_pool_indices(x, g);
    EXPECT_EQ(indices[0], 1) << "row-major: the 7 to its right and the 7 below come later";
    EXPECT_EQ(spec::max_pool_vjp(indices, tensor<T>({1, 1, 1, 1}, {1}), g),
              tensor<T>({1, 1, 2, 3}, {0, 1, 0, 0, 0, 0}));
    EXPECT_EQ(spec::max_pool_jvp(indices, tensor<T>({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}), g),
              tensor<T>({1, 1, 1, 1}, {2}));
  });
  // The tangent of the forward pass itself follows the same winner.
  using D = Dual<Rational>;
  const Tensor<D> x(Shape{1, 1, 3}, {D(4, 1), D(4, 10), D(4, 100)});
  EXPECT_TRUE(identical(spec::max_pool(x, {.kernel = 3})[0], D(4, 1)));
}

TEST(MaxPool, ZeroAndNegativeZeroAreATie) {
  EXPECT_EQ(spec::max_pool_indices(line<double>({-0.0, 0.0}), {.kernel = 2}), winners({0}));
  EXPECT_TRUE(std::signbit(spec::max_pool(line<double>({-0.0, 0.0}), {.kernel = 2})[0]));
}

TEST(MaxPool, NanIsAboveEveryNumberAndTheFirstNanWins) {
  const auto expect = [](std::initializer_list<double> values, Index winner) {
    const auto x = line<double>(values);
    const MaxPoolOptions options{.kernel = x.size()};
    EXPECT_EQ(spec::max_pool_indices(x, options), winners({winner}));
    EXPECT_TRUE(std::isnan(spec::max_pool(x, options)[0]));
  };
  expect({kNan, 1, 2}, 0);
  expect({1, kNan, kInf}, 1);
  expect({1, kInf, kNan}, 2);
  expect({1, kNan, 3, kNan}, 1);
  expect({kNan, kNan}, 0);
  const auto g = max_pool_geometry({1, 1, 3}, {.kernel = 3});
  const auto indices = spec::max_pool_indices(line<double>({1, kNan, kNan}), g);
  EXPECT_EQ(spec::max_pool_vjp(indices, line<double>({5}), g), line<double>({0, 5, 0}));
}

TEST(MaxPool, InfinitiesAreOrdinaryNumbers) {
  EXPECT_EQ(spec::max_pool(line<double>({-kInf, -kInf}), {.kernel = 2}), line<double>({-kInf}));
  EXPECT_EQ(spec::max_pool_indices(line<double>({-kInf, -kInf}), {.kernel = 2}), winners({0}));
  EXPECT_EQ(spec::max_pool_indices(line<double>({-kInf, -kInf}),
                                   {.kernel = 3, .stride = 1, .padding = 1}),
            winners({0, 0}))
      << "the first real cell, not the padding before it";
  EXPECT_EQ(spec::max_pool_indices(line<double>({1, kInf, kInf}), {.kernel = 3}), winners({1}));
}

TEST(MaxPool, AWindowWithoutARealCellIsZeroWithoutIndexOrGradient) {
  for_each_scalar([]<class T>() {
    const auto x = line<T>({-5});
    const auto g = max_pool_geometry(x.shape(), {.kernel = 1, .stride = 1, .padding = 1});
    const auto indices = spec::max_pool_indices(x, g);
    EXPECT_EQ(spec::max_pool(x, g), line<T>({0, -5, 0}));
    EXPECT_EQ(indices, winners({-1, 0, -1}));
    EXPECT_EQ(spec::max_pool_vjp(indices, line<T>({1, 2, 3}), g), line<T>({2}));
    EXPECT_EQ(spec::max_pool_jvp(indices, line<T>({7}), g), line<T>({0, 7, 0}));
  });
}

TEST(MaxPool, PaddedZerosCountOnRequestAndNeverReceiveGradient) {
  for_each_scalar([]<class T>() {
    const auto x = line<T>({-3, -1, -2});
    const auto g = max_pool_geometry(
        x.shape(), {.kernel = 3, .stride = 2, .padding = 1, .pad_cells = PadCells::zero});
    const auto indices = spec::max_pool_indices(x, g);
    EXPECT_EQ(spec::max_pool(x, g), line<T>({0, 0}));
    EXPECT_EQ(indices, winners({-1, -1}));
    EXPECT_EQ(spec::max_pool_vjp(indices, line<T>({1, 1}), g), line<T>({0, 0, 0}));
  });
}

TEST(MaxPool, APaddedZeroTiesWithARealOneByPosition) {
  for_each_scalar([]<class T>() {
    const MaxPoolOptions options{
        .kernel = 2, .stride = 1, .padding = 1, .pad_cells = PadCells::zero};
    EXPECT_EQ(spec::max_pool_indices(line<T>({0}), options), winners({-1, 0}))
        << "padding first, then the cell first";
  });
}

TEST(MaxPool, TheOverhangOfCeilModeIsNotAPaddedZero) {
  for_each_scalar([]<class T>() {
    EXPECT_EQ(spec::max_pool(line<T>({-1, -2, -3}),
                             {.kernel = 2, .ceil_mode = true, .pad_cells = PadCells::zero}),
              line<T>({-1, -3}));
  });
}

TEST(MaxPool, TheStrideIsTheKernelUnlessGiven) {
  for_each_scalar([]<class T>() {
    EXPECT_EQ(spec::max_pool(line<T>({1, 2, 3, 4}), {.kernel = 2}), line<T>({2, 4}));
    EXPECT_EQ(spec::max_pool(line<T>({1, 2, 3, 4}), {.kernel = 2, .stride = 1}),
              line<T>({2, 3, 4}));
    EXPECT_EQ(spec::max_pool(line<T>({1, 2, 3, 4, 5}), {.kernel = 2, .stride = 2, .padding = same}),
              line<T>({2, 4, 5}));
  });
}

TEST(MaxPool, IndicesAreFlatOverTheSpaceOfOneSampleAndChannelInEitherLayout) {
  const auto x = counting<double>({2, 3, 2, 2});
  const Tensor<Index> needed(Shape{2, 3, 1, 1}, 3);
  EXPECT_EQ(spec::max_pool_indices(x, {.kernel = 2}), needed);
  const auto last = activation_to_layout(x, true, Layout::channels_first, Layout::channels_last);
  const MaxPoolOptions options{.kernel = 2, .layout = Layout::channels_last};
  EXPECT_EQ(spec::max_pool_indices(last, options), needed.reshaped({2, 1, 1, 3}));
  EXPECT_EQ(spec::max_pool(last, options), spec::max_pool(x, {.kernel = 2}).reshaped({2, 1, 1, 3}));
}

TEST(MaxPool, ASingleSampleIsASliceOfItsBatch) {
  const auto x = counting<double>({2, 3, 4, 4});
  const auto y = spec::max_pool(x, {.kernel = {2, 2}});
  EXPECT_EQ(spec::max_pool(sliced(x, 0, 1, 1).reshaped({3, 4, 4}), {.kernel = {2, 2}}),
            sliced(y, 0, 1, 1).reshaped({3, 2, 2}));
  EXPECT_EQ(max_pool_geometry({3, 4, 4}, {.kernel = 2}, 2).pool.y_shape(), (Shape{3, 2, 2}))
      << "a name that fixes the rank, as max_pool2d does";
  EXPECT_EQ(max_pool_geometry({3, 4, 4}, {.kernel = 2}).pool.y_shape(), (Shape{3, 4, 2}))
      << "scalars alone: one axis of a batch";
}

TEST(MaxPool, EveryRankUpToEight) {
  for (const int rank : {1, 2, 3, 4, 5, 8}) {
    const auto x = counting<double>(cube(1, 1, 3, rank));
    const auto g = max_pool_geometry(x.shape(), {.kernel = 3});
    EXPECT_EQ(spec::max_pool(x, g), Tensor<double>(cube(1, 1, 1, rank), std::pow(3.0, rank) - 1))
        << rank;
    EXPECT_EQ(spec::max_pool_indices(x, g)[0], x.size() - 1);
  }
}

TEST(MaxPool, EmptyBatchesAndChannels) {
  EXPECT_EQ(spec::max_pool(Tensor<double>(Shape{0, 3, 4}), {.kernel = 2}),
            Tensor<double>(Shape{0, 3, 2}));
  EXPECT_EQ(spec::max_pool(Tensor<double>(Shape{2, 0, 4}), {.kernel = 2}),
            Tensor<double>(Shape{2, 0, 2}));
}

TEST(MaxPool, IntervalsEncloseTheMaximumWhereTheWinnerIsUnknown) {
  using I = Interval<double>;
  const Tensor<I> x(Shape{1, 1, 2}, {I(1, 3), I(2, 4)});
  EXPECT_EQ(spec::max_pool(x, {.kernel = 2})[0], I(2, 4));
  try {
    spec::max_pool_indices(x, {.kernel = 2});
    FAIL() << "no index is right for all numbers inside";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::ambiguous_comparison);
  }
}

}  // namespace
}  // namespace fenestra

// Average pooling: the contract's answers on every scalar, the three divisors, and the gradients.
#include <fenestra/check/examples.hpp>
#include <fenestra/ops/pool/avg/op.hpp>
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

constexpr auto kExcluding =
    resolve_avg_pool({1, 1, 5},
                     {.kernel = 3, .stride = 2, .padding = 1, .count_include_pad = false})
        .geometry;
static_assert(kExcluding.divisor(0) == 2 && kExcluding.divisor(1) == 3 &&
              kExcluding.divisor(2) == 2);

TEST(AvgPool, KnownAnswersOfTheContract) {
  for_each_scalar([]<class T>() {
    const auto five = line<T>({1, 2, 3, 4, 5});
    EXPECT_EQ(spec::avg_pool(five, {.kernel = 3, .stride = 2, .padding = 1}), line<T>({1, 3, 3}));
    EXPECT_EQ(
        spec::avg_pool(five, {.kernel = 3, .stride = 2, .padding = 1, .count_include_pad = false}),
        line<T>({1.5, 3, 4.5}));
    EXPECT_EQ(
        spec::avg_pool(line<T>({1, 2, 3, 4, 5, 6}), {.kernel = 3, .stride = 2, .ceil_mode = true}),
        line<T>({2, 4, 5.5}));
    EXPECT_EQ(
        spec::avg_pool(counting<T>({1, 1, 7, 7}), {.kernel = 2, .stride = 3, .ceil_mode = true}),
        tensor<T>({1, 1, 3, 3}, {4, 7, 9.5, 25, 28, 30.5, 42.5, 45.5, 48}));
  });
}

TEST(AvgPool, TheCeilOverhangIsNotCountedButDeclaredPaddingIs) {
  for_each_scalar([]<class T>() {
    // The second window covers two real cells, one padded cell and one cell beyond that.
    const auto x = line<T>({4, 8, 12, 15});
    AvgPoolOptions options{.kernel = 4, .stride = 3, .padding = 1, .ceil_mode = true};
    EXPECT_EQ(spec::avg_pool(x, options), line<T>({6, 9}));
    options.count_include_pad = false;
    EXPECT_EQ(spec::avg_pool(x, options), line<T>({8, 13.5}));
  });
}

TEST(AvgPool, AnOverrideWinsOverBothCounts) {
  for_each_scalar([]<class T>() {
    const auto x = line<T>({1, 2, 3, 4, 5});
    for (const bool include : {true, false}) {
      AvgPoolOptions options{.kernel = 3, .stride = 2, .padding = 1, .count_include_pad = include};
      options.divisor_override = 2;
      EXPECT_EQ(spec::avg_pool(x, options), line<T>({1.5, 4.5, 4.5}));
      options.divisor_override = -4;
      EXPECT_EQ(spec::avg_pool(x, options), line<T>({-0.75, -2.25, -2.25}));
    }
  });
}

TEST(AvgPool, AWindowWithoutARealCellIsZeroWithoutGradient) {
  for_each_scalar([]<class T>() {
    for (const bool include : {true, false}) {
      const AvgPoolOptions options{.kernel = 1, .padding = 2, .count_include_pad = include};
      const auto g = avg_pool_geometry({1, 1, 1}, options);
      EXPECT_EQ(spec::avg_pool(line<T>({7}), g), line<T>({0, 0, 7, 0, 0}));
      EXPECT_EQ(spec::avg_pool_vjp(line<T>({1, 2, 4, 8, 16}), g), line<T>({4}));
    }
  });
}

TEST(AvgPool, DilationSkipsCells) {
  for_each_scalar([]<class T>() {
    EXPECT_EQ(spec::avg_pool(line<T>({1, 2, 3, 4, 5}), {.kernel = 2, .stride = 1, .dilation = 3}),
              line<T>({2.5, 3.5}));
    EXPECT_EQ(spec::avg_pool(line<T>({1, 2, 3, 4}), {.kernel = 2, .stride = 1, .padding = same}),
              line<T>({1.5, 2.5, 3.5, 2}));
  });
}

TEST(AvgPool, TheSumIsDividedOnce) {
  const Tensor<float> x(Shape{1, 1, 3}, 0.1F);
  EXPECT_EQ(spec::avg_pool(x, {.kernel = 3})[0], (0.1F + 0.1F + 0.1F) / 3.0F);
  EXPECT_NE((0.1F + 0.1F + 0.1F) / 3.0F, 0.1F / 3.0F + 0.1F / 3.0F + 0.1F / 3.0F)
      << "the test can tell";
  EXPECT_EQ(spec::avg_pool(line<Rational>({1, 0, 0}), {.kernel = 3})[0], Rational(1, 3));
}

TEST(AvgPool, GradientsByHand) {
  for_each_scalar([]<class T>() {
    const auto g = avg_pool_geometry({1, 1, 3}, {.kernel = 2, .stride = 1});
    EXPECT_EQ(spec::avg_pool_vjp(line<T>({2, 8}), g), line<T>({1, 5, 4}));
    EXPECT_EQ(spec::avg_pool(line<T>({2, 4, 16}), g), line<T>({3, 10}))
        << "linear: the JVP is the pool itself";
    const auto excluding = avg_pool_geometry(
        {1, 1, 5}, {.kernel = 3, .stride = 2, .padding = 1, .count_include_pad = false});
    EXPECT_EQ(spec::avg_pool_vjp(line<T>({2, 3, 8}), excluding), line<T>({1, 2, 1, 5, 4}));
    AvgPoolOptions negative{.kernel = 2};
    negative.divisor_override = -2;
    EXPECT_EQ(spec::avg_pool_vjp(line<T>({6}), avg_pool_geometry({1, 1, 2}, negative)),
              line<T>({-3, -3}));
  });
}

TEST(AvgPool, ChannelsLastAndSingleSamplesHaveTheSameValues) {
  const auto x = counting<double>({2, 3, 4, 4});
  const AvgPoolOptions options{.kernel = {2, 2}, .stride = 1, .padding = 1};
  AvgPoolOptions last = options;
  last.layout = Layout::channels_last;
  const auto y = spec::avg_pool(x, options);
  EXPECT_EQ(spec::avg_pool(
                activation_to_layout(x, true, Layout::channels_first, Layout::channels_last), last),
            activation_to_layout(y, true, Layout::channels_first, Layout::channels_last));
  EXPECT_EQ(spec::avg_pool(sliced(x, 0, 1, 1).reshaped({3, 4, 4}), options),
            sliced(y, 0, 1, 1).reshaped({3, 5, 5}));
}

TEST(AvgPool, EveryRankUpToEight) {
  for (const int rank : {1, 2, 3, 4, 5, 8}) {
    const Tensor<double> x(cube(1, 2, 3, rank), 1.0);
    EXPECT_EQ(spec::avg_pool(x, {.kernel = 2, .stride = 1}),
              Tensor<double>(cube(1, 2, 2, rank), 1.0))
        << rank;
    const auto padded = spec::avg_pool(x, {.kernel = 2, .stride = 2, .padding = 1});
    EXPECT_EQ(padded[0], std::pow(0.5, rank)) << "one real cell of 2^" << rank;
  }
}

TEST(AvgPool, EmptyBatchesAndChannels) {
  EXPECT_EQ(spec::avg_pool(Tensor<double>(Shape{0, 3, 4}), {.kernel = 2}),
            Tensor<double>(Shape{0, 3, 2}));
  EXPECT_EQ(spec::avg_pool(Tensor<double>(Shape{2, 0, 4}), {.kernel = 2}),
            Tensor<double>(Shape{2, 0, 2}));
}

}  // namespace
}  // namespace fenestra

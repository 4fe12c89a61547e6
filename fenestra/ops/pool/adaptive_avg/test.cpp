// Adaptive and global average pooling: bins, their divisors and gradients.
#include <fenestra/check/examples.hpp>
#include <fenestra/ops/pool/adaptive_avg/op.hpp>
#include <fenestra/tensor/transform.hpp>

#include <gtest/gtest.h>

namespace fenestra {
namespace {

using check::counting;
using check::cube;
using check::for_each_scalar;
using check::line;
using check::tensor;

TEST(AdaptiveAvgPool, TenCellsIntoThreeBins) {
  for_each_scalar([]<class T>() {
    // [0,4) [3,7) [6,10), four cells each.
    const auto x = counting<T>({1, 1, 10});
    const auto g = adaptive_avg_pool_geometry(x.shape(), {.output_size = 3});
    EXPECT_EQ(spec::avg_pool(x, g), line<T>({1.5, 4.5, 7.5}));
    EXPECT_EQ(spec::avg_pool_vjp(line<T>({4, 8, 16}), g), line<T>({1, 1, 1, 3, 2, 2, 6, 4, 4, 4}));
  });
}

TEST(AdaptiveAvgPool, BinsOfDifferentSizesHaveDifferentDivisors) {
  const auto x = line<Rational>({1, 2, 4, 8, 16});
  EXPECT_EQ(spec::adaptive_avg_pool(x, {.output_size = 3}),
            (Tensor<Rational>(Shape{1, 1, 3}, {Rational(3, 2), Rational(14, 3), Rational(12)})))
      << "[0,2) [1,4) [3,5)";
}

TEST(AdaptiveAvgPool, MoreBinsThanCells) {
  for_each_scalar([]<class T>() {
    EXPECT_EQ(spec::adaptive_avg_pool(line<T>({4, 8}), {.output_size = 3}), line<T>({4, 6, 8}));
    const auto g = adaptive_avg_pool_geometry({1, 1, 2}, {.output_size = 3});
    EXPECT_EQ(spec::avg_pool_vjp(line<T>({1, 2, 4}), g), line<T>({2, 5}));
  });
}

TEST(AdaptiveAvgPool, GlobalIsTheMeanOfEachChannel) {
  for_each_scalar([]<class T>() {
    const auto x = counting<T>({2, 2, 2, 2});
    EXPECT_EQ(spec::global_avg_pool(x), tensor<T>({2, 2, 1, 1}, {1.5, 5.5, 9.5, 13.5}));
    EXPECT_EQ(spec::global_avg_pool(
                  activation_to_layout(x, true, Layout::channels_first, Layout::channels_last),
                  Layout::channels_last),
              tensor<T>({2, 1, 1, 2}, {1.5, 5.5, 9.5, 13.5}));
    EXPECT_EQ(spec::adaptive_avg_pool(x, {.output_size = {2, 2}}), x)
        << "as many bins as cells: the identity";
  });
}

TEST(AdaptiveAvgPool, EqualsAveragePoolingWhereTheBinsAreEqual) {
  const auto x = counting<Rational>({2, 3, 6, 8});
  EXPECT_EQ(spec::adaptive_avg_pool(x, {.output_size = {2, 4}}),
            spec::avg_pool(x, {.kernel = {3, 2}}));
}

TEST(AdaptiveAvgPool, SingleSamplesRanksAndEmptyOnes) {
  const auto x = counting<double>({2, 3, 4, 4});
  const auto y = spec::adaptive_avg_pool(x, {.output_size = {3, 2}});
  EXPECT_EQ(
      spec::adaptive_avg_pool(sliced(x, 0, 1, 1).reshaped({3, 4, 4}), {.output_size = {3, 2}}),
      sliced(y, 0, 1, 1).reshaped({3, 3, 2}));
  for (const int rank : {1, 2, 3, 4, 5, 8}) {
    const Tensor<double> ones(cube(1, 2, 3, rank), 1.0);
    EXPECT_EQ(spec::adaptive_avg_pool(ones, {.output_size = 2}),
              Tensor<double>(cube(1, 2, 2, rank), 1.0))
        << rank;
  }
  EXPECT_EQ(spec::adaptive_avg_pool(Tensor<double>(Shape{0, 3, 4}), {.output_size = 2}),
            Tensor<double>(Shape{0, 3, 2}));
  EXPECT_EQ(spec::adaptive_avg_pool(Tensor<double>(Shape{2, 0, 4}), {.output_size = 2}),
            Tensor<double>(Shape{2, 0, 2}));
}

}  // namespace
}  // namespace fenestra

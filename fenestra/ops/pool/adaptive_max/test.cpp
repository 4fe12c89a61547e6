// Adaptive and global max pooling: bins, their winners and gradients. What a bin covers is tested
// in spec/window_test.
#include <fenestra/check/examples.hpp>
#include <fenestra/ops/pool/adaptive_max/op.hpp>
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

TEST(AdaptiveMaxPool, TenCellsIntoThreeBins) {
  for_each_scalar([]<class T>() {
    // [0,4) [3,7) [6,10): cells 3 and 6 belong to two bins each.
    const auto x = line<T>({0, 1, 2, 9, 4, 5, 8, 7, 3, 6});
    const auto g = adaptive_max_pool_geometry(x.shape(), {.output_size = 3});
    const auto indices = spec::max_pool_indices(x, g);
    EXPECT_EQ(spec::max_pool(x, g), line<T>({9, 9, 8}));
    EXPECT_EQ(indices, Tensor<Index>(Shape{1, 1, 3}, {3, 3, 6}));
    EXPECT_EQ(spec::max_pool_vjp(indices, line<T>({1, 10, 100}), g),
              line<T>({0, 0, 0, 11, 0, 0, 100, 0, 0, 0}));
    EXPECT_EQ(spec::max_pool_jvp(indices, counting<T>({1, 1, 10}), g), line<T>({3, 3, 6}));
  });
}

TEST(AdaptiveMaxPool, MoreBinsThanCellsRepeatThem) {
  for_each_scalar([]<class T>() {
    EXPECT_EQ(spec::adaptive_max_pool(line<T>({5, 7}), {.output_size = 4}), line<T>({5, 5, 7, 7}));
    EXPECT_EQ(spec::adaptive_max_pool(line<T>({7, 5}), {.output_size = 3}), line<T>({7, 7, 5}));
    EXPECT_EQ(spec::adaptive_max_pool_indices(line<T>({7, 5}), {.output_size = 3}),
              Tensor<Index>(Shape{1, 1, 3}, {0, 0, 1}));
  });
}

TEST(AdaptiveMaxPool, AsManyBinsAsCellsIsTheIdentity) {
  for_each_scalar([]<class T>() {
    const auto x = counting<T>({2, 3, 4, 5});
    EXPECT_EQ(spec::adaptive_max_pool(x, {.output_size = {4, 5}}), x);
  });
}

TEST(AdaptiveMaxPool, GlobalIsOneBin) {
  for_each_scalar([]<class T>() {
    const auto x = counting<T>({2, 2, 2, 3});
    EXPECT_EQ(spec::global_max_pool(x), tensor<T>({2, 2, 1, 1}, {5, 11, 17, 23}));
    EXPECT_EQ(spec::global_max_pool(
                  activation_to_layout(x, true, Layout::channels_first, Layout::channels_last),
                  Layout::channels_last),
              tensor<T>({2, 1, 1, 2}, {5, 11, 17, 23}));
  });
}

TEST(AdaptiveMaxPool, TiesAndNanFollowTheRulesOfMaxPooling) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(
      spec::adaptive_max_pool_indices(line<double>({4, 4, 1, nan, nan, 2}), {.output_size = 2}),
      Tensor<Index>(Shape{1, 1, 2}, {0, 3}));
  const double low = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(spec::adaptive_max_pool(line<double>({low, low}), {.output_size = 1}),
            line<double>({low}));
}

TEST(AdaptiveMaxPool, AxesHaveBinsOfTheirOwn) {
  const auto x = counting<double>({1, 1, 4, 5});
  EXPECT_EQ(spec::adaptive_max_pool(x, {.output_size = {2, 1}}),
            tensor<double>({1, 1, 2, 1}, {9, 19}));
  EXPECT_EQ(spec::adaptive_max_pool(x.reshaped({1, 4, 5}), {.output_size = {2, 1}}),
            tensor<double>({1, 2, 1}, {9, 19}))
      << "a list of two sizes makes three axes a single sample";
}

TEST(AdaptiveMaxPool, EveryRankUpToEightAndEmptyOnes) {
  for (const int rank : {1, 2, 3, 4, 5, 8}) {
    const auto x = counting<double>(cube(1, 1, 3, rank));
    EXPECT_EQ(spec::global_max_pool(x),
              Tensor<double>(cube(1, 1, 1, rank), std::pow(3.0, rank) - 1))
        << rank;
    const auto y = spec::adaptive_max_pool(x, {.output_size = 2});
    EXPECT_EQ(y.shape(), cube(1, 1, 2, rank));
    EXPECT_EQ(y[0], (std::pow(3.0, rank) - 1) / 2) << "the cell 1, 1, ... of 3 x 3 x ...";
  }
  EXPECT_EQ(spec::adaptive_max_pool(Tensor<double>(Shape{0, 3, 4}), {.output_size = 2}),
            Tensor<double>(Shape{0, 3, 2}));
  EXPECT_EQ(spec::adaptive_max_pool(Tensor<double>(Shape{2, 0, 4}), {.output_size = 2}),
            Tensor<double>(Shape{2, 0, 2}));
}

TEST(AdaptiveMaxPool, ProblemStringsReadBack) {
  for (const char* text : {"x=1x512x10x10 output_size=3,3",
                           "x=4x9 output_size=3 batched=false",
                           "x=1x9x9x4 output_size=2,1 layout=channels_last"}) {
    EXPECT_EQ(to_string(AdaptiveMaxPool::parse(text)), text);
  }
}

}  // namespace
}  // namespace fenestra

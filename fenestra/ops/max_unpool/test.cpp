// Max unpooling: placement, duplicates, nowhere, validation, and the gradient that matches what was
// placed.
#include <fenestra/check/examples.hpp>
#include <fenestra/ops/max_unpool/op.hpp>
#include <fenestra/ops/pool/max/op.hpp>
#include <fenestra/tensor/transform.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace fenestra {
namespace {

using check::counting;
using check::cube;
using check::for_each_scalar;
using check::line;
using check::tensor;

Tensor<Index> places(std::initializer_list<Index> list) {
  return Tensor<Index>(Shape{1, 1, static_cast<Index>(list.size())}, list);
}

static_assert(resolve_max_unpool({1, 8, 4, 4}, {.kernel = 2}).geometry.y_shape() ==
              Shape{1, 8, 8, 8});
static_assert(resolve_max_unpool({1, 8, 4}, {.kernel = 3, .stride = 2, .padding = 1})
                  .geometry.y_shape() == Shape{1, 8, 7});

TEST(MaxUnpool, PutsEveryValueBackAndZerosElsewhere) {
  for_each_scalar([]<class T>() {
    EXPECT_EQ(spec::max_unpool(line<T>({5, 6}), places({1, 3}), {.kernel = 2}),
              line<T>({0, 5, 0, 6}));
    EXPECT_EQ(spec::max_unpool(line<T>({5, 6}), places({4, 0}), {.output_size = 5}),
              line<T>({6, 0, 0, 0, 5}));
  });
}

TEST(MaxUnpool, UndoesAMaxPoolUpToTheCellsThatLost) {
  for_each_scalar([]<class T>() {
    const auto x = tensor<T>({1, 1, 2, 4}, {1, 2, 8, 7, 4, 3, 5, 6});
    const MaxPoolOptions pool{.kernel = 2};
    const auto y = spec::max_pool(x, pool);
    const auto back = spec::max_unpool(y, spec::max_pool_indices(x, pool), {.kernel = 2});
    EXPECT_EQ(back, tensor<T>({1, 1, 2, 4}, {0, 0, 8, 0, 4, 0, 0, 0}));
    EXPECT_EQ(spec::max_pool(back, pool), y);
  });
}

TEST(MaxUnpool, OfDuplicateTargetsTheLastInRowMajorOrderStays) {
  for_each_scalar([]<class T>() {
    const auto indices = places({2, 0, 2});
    EXPECT_EQ(spec::max_unpool(line<T>({5, 6, 7}), indices, {.output_size = 4}),
              line<T>({6, 0, 7, 0}))
        << "overwritten, not added";
    const auto g = max_unpool_geometry({1, 1, 3}, {.output_size = 4});
    EXPECT_EQ(spec::max_unpool_vjp(indices, line<T>({1, 10, 100, 1000}), g), line<T>({0, 1, 100}))
        << "what was overwritten has no gradient";
  });
}

TEST(MaxUnpool, AnIndexOfMinusOneIsNowhere) {
  for_each_scalar([]<class T>() {
    const auto indices = places({-1, 1});
    EXPECT_EQ(spec::max_unpool(line<T>({5, 6}), indices, {.output_size = 3}), line<T>({0, 6, 0}));
    const auto g = max_unpool_geometry({1, 1, 2}, {.output_size = 3});
    EXPECT_EQ(spec::max_unpool_vjp(indices, line<T>({1, 10, 100}), g), line<T>({0, 10}));
  });
}

TEST(MaxUnpool, RefusesIndicesOutsideTheOutputInBothDirections) {
  const auto g = max_unpool_geometry({1, 2, 2}, {.output_size = 3});
  for (const Index bad : {Index{3},
                          Index{-2},
                          std::numeric_limits<Index>::max(),
                          std::numeric_limits<Index>::min()}) {
    const Tensor<Index> indices(Shape{1, 2, 2}, {0, 1, bad, 2});
    for (const bool backward : {false, true}) {
      try {
        if (backward) {
          spec::max_unpool_vjp(indices, Tensor<double>(g.y_shape()), g);
        } else {
          spec::max_unpool(Tensor<double>(g.x_shape()), indices, g);
        }
        ADD_FAILURE() << bad << " accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_index);
        EXPECT_EQ(error.argument(), "indices");
        EXPECT_EQ(error.fault().got, bad);
        const std::string text = error.what();
        EXPECT_NE(text.find("channel 1, cell 0] = " + std::to_string(bad)), std::string::npos)
            << text;
        EXPECT_NE(text.find("fix: indices from 0 to 2, or -1"), std::string::npos) << text;
      }
    }
  }
}

TEST(MaxUnpool, RefusesIndicesOfAnotherShape) {
  EXPECT_THROW(spec::max_unpool(line<double>({1, 2}), places({0}), {.output_size = 3}), Error);
}

TEST(MaxUnpool, EverySampleAndChannelHasTargetsOfItsOwnInEitherLayout) {
  const auto x = counting<double>({2, 2, 2}).map([](double v) { return v + 1; });
  const Tensor<Index> indices(Shape{2, 2, 2}, {0, 2, 2, 0, 1, 2, 2, 1});
  const auto y = spec::max_unpool(x, indices, {.output_size = 3});
  EXPECT_EQ(y, tensor<double>({2, 2, 3}, {1, 0, 2, 4, 0, 3, 0, 5, 6, 0, 8, 7}));
  const auto last = [](const auto& t) {
    return activation_to_layout(t, true, Layout::channels_first, Layout::channels_last);
  };
  EXPECT_EQ(
      spec::max_unpool(last(x), last(indices), {.output_size = 3, .layout = Layout::channels_last}),
      last(y));
}

TEST(MaxUnpool, ASingleSampleOfTwoAxes) {
  const Tensor<Index> indices(Shape{1, 1, 1}, {3});
  EXPECT_EQ(spec::max_unpool(tensor<double>({1, 1, 1}, {9}), indices, {.kernel = {2, 2}}),
            tensor<double>({1, 2, 2}, {0, 0, 0, 9}));
}

TEST(MaxUnpool, EveryRankUpToEightAndEmptyOnes) {
  for (const int rank : {1, 2, 3, 4, 5, 8}) {
    const Tensor<double> x(cube(1, 1, 1, rank), 3.0);
    const Index last = Tensor<double>(cube(1, 1, 2, rank)).size() - 1;
    const auto y = spec::max_unpool(x, Tensor<Index>(x.shape(), last), {.kernel = 2});
    EXPECT_EQ(y.shape(), cube(1, 1, 2, rank));
    EXPECT_EQ(y[last], 3.0);
  }
  EXPECT_EQ(spec::max_unpool(
                Tensor<double>(Shape{0, 3, 2}), Tensor<Index>(Shape{0, 3, 2}), {.kernel = 2}),
            Tensor<double>(Shape{0, 3, 4}));
  EXPECT_EQ(spec::max_unpool(
                Tensor<double>(Shape{2, 0, 2}), Tensor<Index>(Shape{2, 0, 2}), {.kernel = 2}),
            Tensor<double>(Shape{2, 0, 4}));
}

}  // namespace
}  // namespace fenestra

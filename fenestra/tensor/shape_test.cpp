// Shapes as values and as template arguments, and the offsets of both layouts.
#include <fenestra/tensor/layout.hpp>
#include <fenestra/tensor/shape.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace fenestra {
namespace {

constexpr Index kLargest = std::numeric_limits<Index>::max();

template <Shape shape>
constexpr int rank_of = shape.rank();

static_assert(rank_of<Shape{3, 32, 32}> == 3, "a shape is a template argument");
static_assert(Shape{2, 3, 4}.elements() == 24);
static_assert(Shape{}.elements() == 1, "rank 0 holds one element");
static_assert(Shape{2, 0, 4}.elements() == 0);
static_assert(!Shape{2, -1}.elements());
static_assert(!Shape{0, -1}.elements(), "an empty tensor does not excuse a negative extent");
static_assert(!Shape{kLargest, 2}.elements());
static_assert(!Shape{0, kLargest, 2}.elements(), "nor extents whose product overflows");
static_assert(!Shape{std::numeric_limits<Index>::min()}.elements());
static_assert(Shape{kMaxElements}.elements() == kMaxElements);
static_assert(!Shape{kMaxElements + 1}.elements());
static_assert(Shape{1, 2} == Shape{1, 2} && Shape{1, 2} != Shape{1, 2, 1});

TEST(Shape, PrintsAsATupleDoes) {
  EXPECT_EQ(to_string(Shape{8, 3, 2, 64}), "(8, 3, 2, 64)");
  EXPECT_EQ(to_string(Shape{5}), "(5,)");
  EXPECT_EQ(to_string(Shape{}), "()");
  EXPECT_EQ(to_string(Shape{-1, 0}), "(-1, 0)");
}

TEST(Shape, HoldsSixteenAxesAndRefusesASeventeenth) {
  Shape shape;
  for (Index i = 0; i < kMaxRank; ++i) {
    shape.push_back(i);
  }
  EXPECT_EQ(shape.rank(), kMaxRank);
  EXPECT_EQ(shape[kMaxRank - 1], kMaxRank - 1);
  try {
    shape.push_back(1);
    FAIL() << "a seventeenth axis was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::rank_mismatch);
  }
}

TEST(Layout, EveryElementOfAnActivationHasOneOffsetInEitherLayout) {
  for (const Layout layout : {Layout::channels_first, Layout::channels_last}) {
    const ActivationMap map{2, 3, 5, layout};
    std::vector<int> seen(2 * 3 * 5);
    for (Index n = 0; n < 2; ++n) {
      for (Index c = 0; c < 3; ++c) {
        for (Index cell = 0; cell < 5; ++cell) {
          ++seen.at(static_cast<std::size_t>(map.at(n, c, cell)));
        }
      }
    }
    EXPECT_EQ(seen, std::vector<int>(2 * 3 * 5, 1)) << layout_name(layout);
  }
  EXPECT_EQ((ActivationMap{2, 3, 5, Layout::channels_first}.at(1, 0, 0)), 15);
  EXPECT_EQ((ActivationMap{2, 3, 5, Layout::channels_first}.at(0, 1, 0)), 5);
  EXPECT_EQ((ActivationMap{2, 3, 5, Layout::channels_last}.at(0, 1, 0)), 1);
  EXPECT_EQ((ActivationMap{2, 3, 5, Layout::channels_last}.at(0, 0, 1)), 3);
}

TEST(Layout, EveryElementOfAWeightHasOneOffsetInEitherLayout) {
  for (const Layout layout : {Layout::channels_first, Layout::channels_last}) {
    const WeightMap map{4, 3, 2, layout};
    std::vector<int> seen(4 * 3 * 2);
    for (Index co = 0; co < 4; ++co) {
      for (Index ci = 0; ci < 3; ++ci) {
        for (Index tap = 0; tap < 2; ++tap) {
          ++seen.at(static_cast<std::size_t>(map.at(co, ci, tap)));
        }
      }
    }
    EXPECT_EQ(seen, std::vector<int>(4 * 3 * 2, 1)) << layout_name(layout);
  }
  EXPECT_EQ((WeightMap{4, 3, 2, Layout::channels_first}.at(1, 0, 0)), 6);
  EXPECT_EQ((WeightMap{4, 3, 2, Layout::channels_last}.at(1, 0, 0)), 1);
  EXPECT_EQ((WeightMap{4, 3, 2, Layout::channels_last}.at(0, 1, 0)), 4);
}

}  // namespace
}  // namespace fenestra

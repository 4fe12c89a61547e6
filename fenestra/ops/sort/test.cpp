// Sorting beyond its laws: ties, NaN, indices, top k, batches, programs, refusals.
#include <fenestra/fenestra.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fenestra {
namespace {

using D = Tensor<double>;
using I = Tensor<Index>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Sort, OfEqualsTheEarlierComesFirstInBothDirections) {
  const D x(Shape{5}, {2, 1, 2, 1, 3});
  const auto up = sort_with_indices(x);
  EXPECT_EQ(up.values, D(Shape{5}, {1, 1, 2, 2, 3}));
  EXPECT_EQ(up.indices.indices(), I(Shape{5}, {1, 3, 0, 2, 4}));
  const auto down = sort_with_indices(x, {.descending = true});
  EXPECT_EQ(down.values, D(Shape{5}, {3, 2, 2, 1, 1}));
  EXPECT_EQ(down.indices.indices(), I(Shape{5}, {4, 0, 2, 1, 3}));
}

TEST(Sort, NanIsAboveEveryNumber) {
  const D x(Shape{4}, {kNan, 1, kNan, -1});
  EXPECT_EQ(sort_with_indices(x).indices.indices(), I(Shape{4}, {3, 1, 0, 2}));
  EXPECT_EQ(topk(x, 3).indices.indices(), I(Shape{3}, {0, 2, 1}));
}

TEST(Sort, IndicesAreAlongTheAxis) {
  const D x(Shape{3, 2}, {5, 1, 4, 9, 6, 0});
  const auto sorted = sort_with_indices(x, {.axis = 0});
  EXPECT_EQ(sorted.values, D(Shape{3, 2}, {4, 0, 5, 1, 6, 9}));
  EXPECT_EQ(sorted.indices.indices(), I(Shape{3, 2}, {1, 2, 0, 0, 2, 1}));
  EXPECT_EQ(gather(x, sorted.indices, 0), sorted.values);
}

TEST(Sort, TheGradientGoesBackToWhatWasChosen) {
  const D x(Shape{2, 3}, {3, 1, 2, 4, 6, 5});
  const D weights(Shape{2, 2}, {1, 10, 100, 1000});
  const auto f = [&](const auto& v) { return sum(mul(topk(v, 2).values, weights)); };
  EXPECT_EQ(D(grad(f, x)), D(Shape{2, 3}, {1, 0, 10, 0, 100, 1000}));
}

TEST(Sort, ManyLinesAgreeWithStandardSortOnEveryNumberOfThreads) {
  Tensor<float> x(Shape{300, 31});
  for (Index i = 0; i < x.size(); ++i) {
    x.mutable_data()[i] = static_cast<float>((i * 7919) % 1009);
  }
  Tensor<float> needed = x;
  for (Index line = 0; line < 300; ++line) {
    std::sort(needed.mutable_data() + line * 31, needed.mutable_data() + (line + 1) * 31);
  }
  const int before = threads();
  for (const int count : {1, 4}) {
    set_threads(count);
    EXPECT_EQ(sort(x), needed);
  }
  set_threads(before);
}

TEST(Sort, ABatchIsEveryItemAloneValuesIndicesAndGradients) {
  const D x(Shape{2, 3, 2}, {5, 1, 4, 9, 6, 0, 1, 2, 3, 4, 2, 8});
  EXPECT_EQ(D(vmap([](const auto& v) { return sort(v, {.axis = 0}); }, over(x))),
            sort(x, {.axis = 1}));
  const auto largest = [](const auto& v) {
    const auto [values, indices] = topk(v, 1, {.axis = 0});
    return gather(mul(v, v), indices, 0);
  };
  EXPECT_EQ(D(vmap(largest, over(x))), D(Shape{2, 1, 2}, {36, 81, 9, 64}));
  const auto bars = per_sample_grad(
      [](const auto& w, const auto& v) { return sum(topk(mul(w, v), 1, {.axis = 0}).values); },
      D(Shape{}, 2.0),
      over(x));
  EXPECT_EQ(D(bars), D(Shape{2}, {15, 11}));
}

TEST(Sort, AProgramGivesTheSameAndKnowsItsIndices) {
  const D x(Shape{2, 3}, {3, 1, 2, 4, 6, 5});
  const auto f = [](const auto& v) {
    const auto [values, indices] = sort_with_indices(v, {.descending = true});
    return add(values, gather(v, indices, 1));
  };
  const auto program = compile<double>(f, x.shape(), CompileOptions{.vjp = true});
  Context context(program);
  EXPECT_EQ(program.run(context, x)[0], D(Shape{2, 3}, {6, 4, 2, 12, 10, 8}));
}

TEST(Sort, MoreElementsThanThereAreAreRefused) {
  try {
    topk(D(Shape{2, 3}), 4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_extent);
    EXPECT_EQ(error.fault().got, 4);
    EXPECT_EQ(error.fault().needed, 3);
  }
  EXPECT_EQ(topk(D(Shape{2, 3}), 0).values, D(Shape{2, 0}));
  EXPECT_THROW(sort(D(Shape{})), Error);
}

}  // namespace
}  // namespace fenestra

// Running sums beyond their laws: axes, compiled loops, batches, programs, refusals.
#include <fenestra/fenestra.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace fenestra {
namespace {

using D = Tensor<double>;

D counting(const Shape& shape) {
  D x(shape);
  for (Index i = 0; i < x.size(); ++i) {
    x.mutable_data()[i] = static_cast<double>(i % 17 - 8);
  }
  return x;
}

/// By the definition, in integers that double holds.
D by_definition(const D& x, int axis, bool reverse) {
  D y(x.shape());
  Index inner = 1;
  for (int i = axis + 1; i < x.rank(); ++i) {
    inner *= x.shape()[i];
  }
  const Index extent = x.shape()[axis];
  for (Index i = 0; i < x.size(); ++i) {
    const Index k = i / inner % extent;
    double sum = 0;
    for (Index j = 0; j < extent; ++j) {
      if (reverse ? j >= k : j <= k) {
        sum += x[i + (j - k) * inner];
      }
    }
    y.mutable_data()[i] = sum;
  }
  return y;
}

TEST(Cumsum, EveryAxisAndDirectionIsTheSumOfTheDefinition) {
  const D x = counting(Shape{3, 5, 40});
  for (int axis = 0; axis < 3; ++axis) {
    for (const bool reverse : {false, true}) {
      EXPECT_EQ(cumsum(x, axis, reverse), by_definition(x, axis, reverse));
      EXPECT_EQ(cumsum(x, axis - 3, reverse), by_definition(x, axis, reverse));
    }
  }
}

TEST(Cumsum, ManyLinesAreTheSameOnEveryNumberOfThreads) {
  const D x = counting(Shape{2, 30, 5000});
  const int before = threads();
  for (const int count : {1, 4}) {
    set_threads(count);
    EXPECT_EQ(cumsum(x, 1), by_definition(x, 1, false));
  }
  set_threads(before);
}

TEST(Cumsum, ABatchAndAProgramGiveTheSame) {
  const D x = counting(Shape{4, 3, 5});
  EXPECT_EQ(D(vmap([](const auto& v) { return cumsum(v, 0); }, over(x))), cumsum(x, 1));
  const auto program = compile<double>([](const auto& v) { return cumsum(v, 1, true); }, x.shape());
  Context context(program);
  EXPECT_EQ(program.run(context, x)[0], cumsum(x, 1, true));
}

TEST(Cumsum, ItsGradientRunsFromTheOtherEnd) {
  const D x(Shape{3}, {1, 2, 3});
  const auto weighted = [](const auto& v) {
    return sum(mul(cumsum(v, 0), D(Shape{3}, {1, 10, 100})));
  };
  EXPECT_EQ(D(grad(weighted, x)), D(Shape{3}, {111, 110, 100}));
}

TEST(Cumsum, AnEmptyTensorHasNoSumsAndAScalarNoAxis) {
  EXPECT_EQ(cumsum(D(Shape{0, 3}), 0), D(Shape{0, 3}));
  EXPECT_THROW(cumsum(D(Shape{}), 0), Error);
  EXPECT_THROW(cumsum(D(Shape{2}), 1), Error);
}

}  // namespace
}  // namespace fenestra

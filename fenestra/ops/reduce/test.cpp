// Reductions beyond their laws: extremes, errors, second derivatives, large sums.
#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/reduce/op.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/spec/interval.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace fenestra {
namespace {

using D = Tensor<double>;
using Exact = Tensor<Rational>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

template <class Call>
Fault fault_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("fix: "), std::string::npos) << error.what();
    return error.fault();
  }
  return {};
}

TEST(Reduce, AxesThatDoNotExistOrAreNamedTwiceAreRefused) {
  const D x(Shape{2, 3});
  EXPECT_EQ(fault_of([&] { sum(x, {.axes = {2}}); }).code, ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([&] { mean(x, {.axes = {-3}}); }).code, ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([&] { max_over(x, {.axes = {1, -1}}); }).code, ErrorCode::rank_mismatch);
}

TEST(Reduce, TheSumOfNothingIsZeroAndItsMaximumIsAnError) {
  EXPECT_EQ(sum(D(Shape{0, 3}), {.axes = {0}}), D(Shape{3}, 0.0));
  EXPECT_EQ(fault_of([] {
              max_over(D(Shape{0, 3}), {.axes = {0}});
            }).code,
            ErrorCode::invalid_extent);
  EXPECT_EQ(max_over(D(Shape{0, 3}), {.axes = {1}}).shape(), Shape{0});
}

TEST(Reduce, TheFirstWinnerTakesTheWholeGradient) {
  Tape<double> tape;
  const auto x = tape.parameter(D(Shape{2, 3}, {1.0, 5.0, 5.0, 2.0, 2.0, 2.0}));
  EXPECT_EQ(tape.backward(max_over(x, {.axes = {1}}), {.retain = true})[x],
            D(Shape{2, 3}, {0.0, 1.0, 0.0, 1.0, 0.0, 0.0}));
  EXPECT_EQ(tape.backward(min_over(x))[x], D(Shape{2, 3}, {1.0, 0.0, 0.0, 0.0, 0.0, 0.0}));
}

TEST(Reduce, NanWinsMaximumAndMinimumAndTheFirstOneTakesTheGradient) {
  Tape<double> tape;
  const auto x = tape.parameter(D(Shape{4}, {kInf, kNan, -kInf, kNan}));
  for (const auto& y : {max_over(x), min_over(x)}) {
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(tape.backward(y)[x], D(Shape{4}, {0.0, 1.0, 0.0, 0.0}));
  }
}

TEST(Reduce, MinusInfinityEverywhereIsWonByTheFirst) {
  Tape<double> tape;
  const auto x = tape.parameter(D(Shape{2}, -kInf));
  const auto y = max_over(x);
  EXPECT_EQ(y[0], -kInf);
  EXPECT_EQ(tape.backward(y)[x], D(Shape{2}, {1.0, 0.0}));
}

TEST(Reduce, TheMaximumOfOverlappingIntervalsIsEnclosedAndItsWinnerIsAnError) {
  using I = Interval<double>;
  const Tensor<I> x(Shape{2}, {I(0.0, 2.0), I(1.0, 1.5)});
  EXPECT_EQ(max_over(x)[0], I(1.0, 2.0));
  Tape<I> tape;
  const auto variable = tape.parameter(x);
  try {
    max_over(variable);
    FAIL() << "a winner was chosen among intervals that overlap";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::ambiguous_comparison);
  }
}

TEST(Reduce, SecondDerivativesFollowTheWinner) {
  Tape<Rational> inner;
  Tape<Rational> outer;
  const auto x = inner.parameter(Exact(Shape{3}, {2, 7, 3}));
  const auto xx = outer.parameter(x);
  const auto y = max_over(xx);
  const auto slope = outer.backward(mul(y, mul(y, y)))[xx];  // 3 max^2 at the winner
  EXPECT_EQ(slope.tensor(), Exact(Shape{3}, {0, 147, 0}));
  EXPECT_EQ(inner.backward(slope)[x], Exact(Shape{3}, {0, 42, 0}));
}

TEST(Reduce, LargeSumsStayWithinTheirBoundAndDoNotDependOnThreads) {
  // Sums of n terms: |error| <= gamma(n) * sum |x|.
  const int before = threads();
  const Shape shape{37, 65, 129};
  Tensor<float> x(shape);
  Random random(5);
  for (float& value : x.mutable_values()) {
    value = static_cast<float>(random.real());
  }
  const auto wide = x.map([](float v) { return static_cast<long double>(v); });
  const auto sizes = x.map([](float v) { return std::fabs(static_cast<long double>(v)); });
  for (const AxisList& axes : std::vector<AxisList>{{}, {0}, {1}, {2}, {0, 2}, {0, 1}, {1, 2}}) {
    const ReduceOptions options{.axes = axes};
    set_threads(1);
    const Tensor<float> got = sum(x, options);
    const auto needed = sum(wide, options);
    const auto magnitude = sum(sizes, options);
    const long double n = static_cast<long double>(x.size()) / static_cast<long double>(got.size());
    const long double u = std::numeric_limits<float>::epsilon() / 2;
    for (Index i = 0; i < got.size(); ++i) {
      ASSERT_LE(std::fabs(static_cast<long double>(got[i]) - needed[i]),
                n * u / (1 - n * u) * magnitude[i]);
    }
    for (const int count : {2, 7}) {
      set_threads(count);
      ASSERT_EQ(sum(x, options), got);
    }
  }
  set_threads(before);
}

// Axes side by side are summed as one; which ones are depends on every axis.
TEST(Reduce, SumsOfIntegersAreExactOverAnyAxes) {
  const Shape shape{3, 4, 1, 5, 6};
  Tensor<float> x(shape);
  Random random(6);
  for (float& value : x.mutable_values()) {
    value = static_cast<float>(random.between(-9, 9));
  }
  const auto wide = x.map([](float v) { return static_cast<long double>(v); });
  for (int chosen = 0; chosen < 1 << shape.rank(); ++chosen) {
    for (const bool keep : {false, true}) {
      ReduceOptions options{.keep = keep};
      for (int axis = 0; axis < shape.rank(); ++axis) {
        if ((chosen >> axis & 1) != 0) {
          options.axes.push_back(axis);
        }
      }
      EXPECT_EQ(sum(x, options).map([](float v) { return static_cast<long double>(v); }),
                sum(wide, options))
          << chosen;
    }
  }
}

}  // namespace
}  // namespace fenestra

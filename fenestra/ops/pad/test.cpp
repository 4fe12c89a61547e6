// Pad and its adjoint: known values of every mode, errors, derivatives. The laws are checked by the
// harness.
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/pad/op.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace fenestra {
namespace {

using Exact = Tensor<Rational>;
using D = Tensor<double>;

template <class F>
Fault fault_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("fix: "), std::string::npos);
    return error.fault();
  }
  return {};
}

TEST(Pad, EveryModeFillsItsCells) {
  const Exact x(Shape{3}, {1, 2, 3});
  const auto padded = [&](PadMode mode) { return pad(x, {{2, 1}}, {.mode = mode, .value = 7}); };
  EXPECT_EQ(padded(PadMode::zero), Exact(Shape{6}, {0, 0, 1, 2, 3, 0}));
  EXPECT_EQ(padded(PadMode::constant), Exact(Shape{6}, {7, 7, 1, 2, 3, 7}));
  EXPECT_EQ(padded(PadMode::reflect), Exact(Shape{6}, {3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(padded(PadMode::replicate), Exact(Shape{6}, {1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(padded(PadMode::circular), Exact(Shape{6}, {2, 3, 1, 2, 3, 1}));
}

TEST(Pad, CornersRepeatAlongBothAxes) {
  const Exact x(Shape{2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(pad(x, {{1, 0}, {0, 1}}, {.mode = PadMode::reflect}),
            Exact(Shape{3, 3}, {3, 4, 3, 1, 2, 1, 3, 4, 3}));
}

TEST(Pad, OnlyNamedAxesArePadded) {
  const Exact x(Shape{1, 2, 1}, {1, 2});
  EXPECT_EQ(pad(x, {{1, 0}}, {.axes = {-2}}), Exact(Shape{1, 3, 1}, {0, 1, 2}));
  EXPECT_EQ(pad(x, {{0, 1}, {1, 0}}, {.axes = {2, 1}, .mode = PadMode::replicate}),
            Exact(Shape{1, 3, 2}, {1, 1, 1, 1, 2, 2}));
}

TEST(Pad, AnInfiniteConstantIsLegal) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(pad(D(Shape{1}, {1.0}), {{1, 0}}, {.mode = PadMode::constant, .value = -infinity})[0],
            -infinity);
}

TEST(Pad, TheCompiledLoopsAgreeWithThePlainOnes) {
  const Shape shape{3, 2, 37, 41};
  D x(shape);
  double next = 0;
  for (double& value : x.mutable_values()) {
    value = next++;
  }
  const auto wide = [](double v) { return static_cast<long double>(v); };
  for (const PadMode mode : {PadMode::zero,
                             PadMode::constant,
                             PadMode::reflect,
                             PadMode::replicate,
                             PadMode::circular}) {
    const std::vector<LowHigh> padding = {{0, 0}, {1, 1}, {20, 3}, {1, 0}};
    const D y = pad(x, padding, {.mode = mode, .value = 0.5});
    EXPECT_EQ(y.map(wide), pad(x.map(wide), padding, {.mode = mode, .value = 0.5}));
    // Small integers: sums are exact in either type.
    EXPECT_EQ(pad_adjoint(y, shape, padding, {.mode = mode}).map(wide),
              pad_adjoint(y.map(wide), shape, padding, {.mode = mode}));
  }
}

TEST(Pad, TheAdjointGivesAddedCellsBackToTheCellsTheyRepeat) {
  const Exact u(Shape{6}, {1, 2, 4, 8, 16, 32});
  const auto back = [&](PadMode mode) {
    return pad_adjoint(u, Shape{3}, {{2, 1}}, {.mode = mode, .value = 9});
  };
  EXPECT_EQ(back(PadMode::zero), Exact(Shape{3}, {4, 8, 16}));
  EXPECT_EQ(back(PadMode::constant), Exact(Shape{3}, {4, 8, 16}));
  EXPECT_EQ(back(PadMode::reflect), Exact(Shape{3}, {4, 8 + 2 + 32, 16 + 1}));
  EXPECT_EQ(back(PadMode::replicate), Exact(Shape{3}, {4 + 2 + 1, 8, 16 + 32}));
  EXPECT_EQ(back(PadMode::circular), Exact(Shape{3}, {4 + 32, 8 + 1, 16 + 2}));
}

TEST(Pad, SecondDerivativesComeFromNestedTapesInEveryMode) {
  for (const PadMode mode : {PadMode::zero,
                             PadMode::constant,
                             PadMode::reflect,
                             PadMode::replicate,
                             PadMode::circular}) {
    Tape<double> inner;
    Tape<double> outer;
    const auto x = inner.parameter(D(Shape{2}, {2.0, 3.0}));
    const auto xx = outer.parameter(x);
    const auto y = pad(xx, {{1, 1}}, {.mode = mode, .value = 5});
    const auto gradient = outer.backward(mul(y, mul(y, y)))[xx];
    // Every cell of x appears once in y, or twice where the two added cells repeat it.
    const double times = mode == PadMode::zero || mode == PadMode::constant ? 1 : 2;
    EXPECT_EQ(gradient.tensor(), D(Shape{2}, {times * 12, times * 27}));
    EXPECT_EQ(inner.backward(gradient)[x], D(Shape{2}, {times * 12, times * 18}));
  }
}

TEST(Pad, AJetOverATapeGivesTheMixedDerivative) {
  Tape<Rational> tape;
  const auto x = tape.parameter(Exact(Shape{2}, {Rational(1, 3), Rational(1, 5)}));
  const auto square = [](const auto& moved) {
    const auto y = pad(moved, {{1, 0}}, {.mode = PadMode::reflect});
    return mul(y, y);
  };
  const auto tangent = jvp(square, primals(x), tangents(Exact(Shape{2}, {1, 1}))).second;  // 2 x
  EXPECT_EQ(tangent.tensor(), Exact(Shape{3}, {Rational(2, 5), Rational(2, 3), Rational(2, 5)}));
  EXPECT_EQ(tape.backward(tangent)[x], Exact(Shape{2}, {2, 4}));
}

TEST(Pad, NegativePaddingIsRefused) {
  const D x(Shape{2, 3});
  EXPECT_EQ(fault_of([&] {
              pad(x, {{0, 0}, {0, -1}});
            }),
            (Fault{ErrorCode::invalid_padding, Argument::padding, 1, -1, 0}));
}

TEST(Pad, ReflectionNeedsPaddingBelowTheExtentAndCirculationPaddingUpToIt) {
  const D x(Shape{3});
  EXPECT_EQ(pad(x, {{2, 2}}, {.mode = PadMode::reflect}).shape(), Shape{7});
  EXPECT_EQ(fault_of([&] {
              pad(x, {{0, 3}}, {.mode = PadMode::reflect});
            }),
            (Fault{ErrorCode::invalid_padding, Argument::padding, 0, 3, 2}));
  EXPECT_EQ(pad(x, {{3, 3}}, {.mode = PadMode::circular}).shape(), Shape{9});
  EXPECT_EQ(fault_of([&] {
              pad(x, {{4, 0}}, {.mode = PadMode::circular});
            }),
            (Fault{ErrorCode::invalid_padding, Argument::padding, 0, 4, 3}));
  EXPECT_EQ(pad(x, {{30, 30}}, {.mode = PadMode::replicate}).shape(), Shape{63});
}

TEST(Pad, AnEmptyAxisHasNothingToRepeat) {
  const D x(Shape{0});
  EXPECT_EQ(pad(x, {{1, 1}}).shape(), Shape{2});
  EXPECT_EQ(fault_of([&] {
              pad(x, {{1, 1}}, {.mode = PadMode::replicate});
            }).code,
            ErrorCode::invalid_padding);
}

TEST(Pad, PairsThatDoNotFitTheAxesAreRefused) {
  const D x(Shape{2, 3});
  EXPECT_EQ(fault_of([&] {
              pad(x, {{1, 1}});
            }),
            (Fault{ErrorCode::rank_mismatch, Argument::padding, -1, 1, 2}));
  EXPECT_EQ(fault_of([&] { pad(x, {{1, 1}}, {.axes = {2}}); }).code, ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([&] {
              pad(x, {{1, 1}, {1, 1}}, {.axes = {1, -1}});
            }).code,
            ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([&] {
              pad(x, {{0, 0}, {std::numeric_limits<Index>::max(), 1}});
            }).code,
            ErrorCode::overflow);
  EXPECT_EQ(fault_of([&] {
              pad_adjoint(x, Shape{2, 3}, {{0, 0}, {1, 0}});
            }).code,
            ErrorCode::shape_mismatch);
}

}  // namespace
}  // namespace fenestra

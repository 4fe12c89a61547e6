// Resize and its adjoint: known values, coordinates from sizes and from scales, errors,
// derivatives. The laws are checked by the harness.
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/resize/op.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace fenestra {
namespace {

using Exact = Tensor<Rational>;
using D = Tensor<double>;
using R = Rational;

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

Exact line() { return Exact(Shape{1, 1, 4}, {1, 2, 4, 8}); }

TEST(Resize, LinearInterpolationHasHalfPixelCentres) {
  EXPECT_EQ(resize(line(), {.size = 6, .mode = ResizeMode::bilinear}),
            Exact(Shape{1, 1, 6}, {R(1), R(3, 2), R(7, 3), R(11, 3), R(6), R(8)}));
}

TEST(Resize, AlignedCornersKeepFirstAndLast) {
  EXPECT_EQ(resize(line(), {.size = 6, .mode = ResizeMode::bilinear, .align_corners = true}),
            Exact(Shape{1, 1, 6}, {R(1), R(8, 5), R(12, 5), R(18, 5), R(28, 5), R(8)}));
  EXPECT_EQ(resize(line(), {.size = 1, .mode = ResizeMode::bilinear, .align_corners = true}),
            Exact(Shape{1, 1, 1}, {R(1)}));
}

TEST(Resize, NearestTakesTheCellBelow) {
  EXPECT_EQ(resize(line(), {.size = 6}), Exact(Shape{1, 1, 6}, {1, 1, 2, 4, 4, 8}));
  EXPECT_EQ(resize(line(), {.size = 3}), Exact(Shape{1, 1, 3}, {1, 2, 4}));
}

TEST(Resize, AScaleIsTheStepOfTheCoordinatesEvenWhereACellIsCutOff) {
  // floor(4 * 1.3) = 5 cells, 10/13 of a cell apart.
  EXPECT_EQ(resize(line(), {.scale = 1.3, .mode = ResizeMode::bilinear}),
            Exact(Shape{1, 1, 5}, {R(1), R(43, 26), R(37, 13), R(62, 13), R(102, 13)}));
  EXPECT_EQ(resize(line(), {.scale = 0.6, .mode = ResizeMode::bilinear}),
            Exact(Shape{1, 1, 2}, {R(4, 3), R(4)}));
  EXPECT_EQ(resize(line(), {.scale = 1.7}), Exact(Shape{1, 1, 6}, {1, 1, 2, 2, 4, 4}));
}

TEST(Resize, AScaleThatLeavesTheExtentOrDoublesItForNearestGivesWayToTheSizes) {
  EXPECT_EQ(resize(line(), {.scale = 1.2, .mode = ResizeMode::bilinear}), line());
  EXPECT_EQ(resize(line(), {.scale = 1.2}), line());
  EXPECT_EQ(resize(line(), {.scale = 2.1}), Exact(Shape{1, 1, 8}, {1, 1, 2, 2, 4, 4, 8, 8}));
}

TEST(Resize, AScaleIsTheSimplestFractionThatRoundsToIt) {
  EXPECT_EQ(detail::simplest_ratio(0.1), (Ratio{1, 10}));
  EXPECT_EQ(detail::simplest_ratio(1.0 / 3), (Ratio{1, 3}));
  EXPECT_EQ(detail::simplest_ratio(2), (Ratio{2, 1}));
  EXPECT_EQ(detail::simplest_ratio(1023.0 / 1000003), (Ratio{1023, 1000003}));
  // Every fraction that can come out is found again from its double: a problem string names one
  // geometry.
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const Index den = random.between(1, Index{1} << 20);
    const Ratio ratio = Ratio::of(random.between((den >> 10) + 1, den << 10), den);
    const double value = static_cast<double>(ratio.num) / static_cast<double>(ratio.den);
    EXPECT_EQ(detail::simplest_ratio(value), ratio) << ratio.num << "/" << ratio.den;
  }
}

TEST(Resize, EachSpatialAxisIsInterpolatedOnItsOwn) {
  const Exact x(Shape{1, 2, 2}, {0, 4, 8, 16});  // one sample
  EXPECT_EQ(resize(x, {.size = {3, 2}, .mode = ResizeMode::bilinear}),
            Exact(Shape{1, 3, 2}, {0, 4, 4, 10, 8, 16}));
  EXPECT_EQ(resize(x, {.scale = {1, 2}}), Exact(Shape{1, 2, 4}, {0, 0, 4, 4, 8, 8, 16, 16}));
}

TEST(Resize, ChannelsLastResizesTheMiddleAxes) {
  const Exact x(Shape{1, 2, 2}, {1, 10, 3, 30});  // length 2, two channels
  EXPECT_EQ(resize(x, {.size = 3, .mode = ResizeMode::bilinear, .layout = Layout::channels_last}),
            Exact(Shape{1, 3, 2}, {1, 10, 2, 20, 3, 30}));
}

TEST(Resize, ConstantsStayConstant) {
  const Exact x(Shape{1, 1, 3, 5, 2}, R(2, 7));
  const Exact y = resize(x, {.size = {4, 3, 5}, .mode = ResizeMode::bilinear});
  EXPECT_EQ(y, Exact(Shape{1, 1, 4, 3, 5}, R(2, 7)));
}

TEST(Resize, TheAdjointOfNearestSumsTheCopies) {
  EXPECT_EQ(
      resize_adjoint(Exact(Shape{1, 1, 6}, {1, 2, 4, 8, 16, 32}), Shape{1, 1, 4}, {.size = 6}),
      Exact(Shape{1, 1, 4}, {3, 4, 24, 32}));
}

TEST(Resize, TheResultDoesNotDependOnThreads) {
  D x(Shape{2, 3, 61, 67});
  Random random(3);
  for (double& value : x.mutable_values()) {
    value = random.real();
  }
  const ResizeOptions options{.size = {130, 40}, .mode = ResizeMode::bilinear};
  const int before = threads();
  set_threads(1);
  const D one = resize(x, options);
  const D one_back = resize_adjoint(one, x.shape(), options);
  set_threads(7);
  EXPECT_EQ(resize(x, options), one);
  EXPECT_EQ(resize_adjoint(one, x.shape(), options), one_back);
  set_threads(before);
}

TEST(Resize, SecondDerivativesComeFromNestedTapes) {
  Tape<Rational> inner;
  Tape<Rational> outer;
  const auto x = inner.parameter(Exact(Shape{1, 1, 2}, {1, 3}));
  const auto xx = outer.parameter(x);
  const auto y = resize(xx, {.size = 3, .mode = ResizeMode::bilinear});  // x0, (x0 + x1)/2, x1
  const auto gradient = outer.backward(mul(y, mul(y, y)))[xx];           // 3 x0^2 + 3/2 m^2, ...
  EXPECT_EQ(gradient.tensor(), Exact(Shape{1, 1, 2}, {3 + 6, 27 + 6}));
  // Row sums of the Hessian: 6 x0 + 3 m, 6 x1 + 3 m.
  EXPECT_EQ(inner.backward(gradient)[x], Exact(Shape{1, 1, 2}, {6 + 6, 18 + 6}));
}

TEST(Resize, AJetOverATapeGivesTheMixedDerivative) {
  Tape<double> tape;
  const auto x = tape.parameter(D(Shape{1, 1, 1}, {3.0}));
  const auto square = [](const auto& moved) {
    const auto y = resize(moved, {.scale = 2});
    return mul(y, y);
  };
  const D direction(Shape{1, 1, 1}, {1.0});
  const auto tangent = jvp(square, primals(x), tangents(direction)).second;  // 2 x, twice
  EXPECT_EQ(tape.backward(tangent)[x][0], 4);
}

TEST(Resize, SizesAndScalesThatMakeNoSenseAreRefused) {
  const D x(Shape{1, 2, 4, 5});
  EXPECT_EQ(fault_of([&] {
              resize(x, {.size = {4, 0}});
            }),
            (Fault{ErrorCode::invalid_output_size, Argument::output_size, 1, 0, 1}));
  EXPECT_EQ(fault_of([&] { resize(x, {.scale = 0.2}); }).code, ErrorCode::invalid_output_size);
  EXPECT_EQ(fault_of([&] { resize(x, {.scale = -1.0}); }).code, ErrorCode::invalid_output_size);
  EXPECT_EQ(fault_of([&] { resize(x, {.scale = std::numeric_limits<double>::quiet_NaN()}); }).code,
            ErrorCode::invalid_output_size);
  EXPECT_EQ(fault_of([&] { resize(x, ResizeOptions{}); }).code, ErrorCode::invalid_output_size);
  EXPECT_EQ(fault_of([&] { resize(x, {.size = 2, .scale = 2}); }).code,
            ErrorCode::invalid_output_size);
  EXPECT_EQ(fault_of([&] { resize(x, {.size = 2, .align_corners = true}); }).code,
            ErrorCode::invalid_output_size);
}

TEST(Resize, RanksAndEmptyAxesAreRefused) {
  EXPECT_EQ(fault_of([] { resize(D(Shape{4}), {.size = {2, 2}}); }).code, ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([] { resize(D(Shape{4, 4}), {.size = 2}); }).code, ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([] {
              resize_geometry(Shape{1, 1, 4}, {.size = {2, 2}}, 1);
            }).code,
            ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([] {
              resize(D(Shape{1, 1, 0}), {.size = 2});
            }).code,
            ErrorCode::invalid_extent);
  EXPECT_EQ(fault_of([] {
              resize(D(Shape{1, 1, 3}), {.size = Index{1} << 60});
            }).code,
            ErrorCode::overflow);
  EXPECT_EQ(fault_of([] {
              resize_adjoint(D(Shape{1, 1, 3}), Shape{1, 1, 4}, {.size = 2});
            }).code,
            ErrorCode::shape_mismatch);
}

TEST(Resize, AScalarWithoutDivisionIsRefusedForInterpolationOnly) {
  const Tensor<Index> x(Shape{1, 1, 2}, {1, 3});
  EXPECT_EQ(resize(x, {.size = 4}), Tensor<Index>(Shape{1, 1, 4}, {1, 1, 3, 3}));
  EXPECT_EQ(fault_of([&] { resize(x, {.size = 4, .mode = ResizeMode::bilinear}); }).code,
            ErrorCode::dtype_mismatch);
}

}  // namespace
}  // namespace fenestra

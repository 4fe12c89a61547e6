// Slice and its adjoint: known values, errors, derivatives of derivatives. The laws are checked by
// the harness.
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/ops/slice/op.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

#include <string>

namespace fenestra {
namespace {

using Exact = Tensor<Rational>;
using D = Tensor<double>;

template <class T>
Tensor<T> counted(const Shape& shape) {
  Tensor<T> x(shape);
  Index next = 0;
  for (T& value : x.mutable_values()) {
    value = from_index<T>(next++);
  }
  return x;
}

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

TEST(Slice, TakesCountCellsFromBeginInSteps) {
  const Exact x(Shape{6}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(slice(x, 0, 1, 3), Exact(Shape{3}, {1, 2, 3}));
  EXPECT_EQ(slice(x, -1, 1, 3, 2), Exact(Shape{3}, {1, 3, 5}));
  EXPECT_EQ(slice(x, 0, 5, 6, -1), Exact(Shape{6}, {5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(slice(x, 0, 6, 0), Exact(Shape{0}));
}

TEST(Slice, CutsSeveralAxesAtOnce) {
  EXPECT_EQ(
      slice(counted<Rational>({3, 4}),
            {{.axis = 1, .begin = 3, .count = 2, .step = -3}, {.axis = 0, .begin = 1, .count = 2}}),
      Exact(Shape{2, 2}, {7, 4, 11, 8}));
}

TEST(Slice, TheCompiledCopyAgreesWithThePlainOne) {
  // Long, short and strided innermost runs, and enough elements for several ranges.
  const AxisRange cuts[] = {
      {0, 1, 40, 1}, {1, 2, 25, 2}, {2, 59, 30, -2}, {2, 0, 60, 1}, {0, 3, 0, 1}};
  const Shape shape{50, 60, 60};
  for (const AxisRange& cut : cuts) {
    const auto plain = slice(counted<long double>(shape), {cut});
    EXPECT_EQ(slice(counted<float>(shape), {cut}).map([](float v) {
      return static_cast<long double>(v);
    }),
              plain);
    EXPECT_EQ(slice(counted<double>(shape), {cut}).map([](double v) {
      return static_cast<long double>(v);
    }),
              plain);
  }
}

TEST(Slice, TheAdjointPutsTheCellsBackIntoZeros) {
  EXPECT_EQ(
      slice_adjoint(
          Exact(Shape{2}, {7, 8}), Shape{5}, {{.axis = 0, .begin = 3, .count = 2, .step = -2}}),
      Exact(Shape{5}, {0, 8, 0, 7, 0}));
}

TEST(Slice, TheWholeIsTheSameTensor) {
  const D x = counted<double>({2, 3});
  EXPECT_EQ(slice(x, 1, 0, 3).data(), x.data());
}

TEST(Slice, SecondDerivativesComeFromNestedTapes) {
  Tape<double> inner;
  Tape<double> outer;
  const auto x = inner.parameter(D(Shape{3}, {1.0, 2.0, 3.0}));
  const auto xx = outer.parameter(x);
  const auto part = slice(xx, 0, 1, 2);
  const auto gradient = outer.backward(mul(part, mul(part, part)))[xx];  // 3 x^2 on the part
  EXPECT_EQ(gradient.tensor(), D(Shape{3}, {0.0, 12.0, 27.0}));
  EXPECT_EQ(inner.backward(gradient)[x], D(Shape{3}, {0.0, 12.0, 18.0}));
}

TEST(Slice, AJetOverATapeGivesTheMixedDerivative) {
  Tape<double> tape;
  const auto x = tape.parameter(D(Shape{2}, {3.0, 5.0}));
  const auto square = [](const auto& moved) {
    const auto part = slice(moved, 0, 1, 1);
    return mul(part, part);
  };
  const auto tangent = jvp(square, primals(x), tangents(D(Shape{2}, {1.0, 1.0}))).second;  // 2 x
  EXPECT_EQ(tangent.tensor(), D(Shape{1}, {10.0}));
  EXPECT_EQ(tape.backward(tangent)[x], D(Shape{2}, {0.0, 2.0}));
}

TEST(Slice, GradientsAreExactInRationals) {
  Tape<Rational> tape;
  const auto x = tape.parameter(Exact(Shape{3}, {Rational(1, 3), Rational(1, 7), Rational(2)}));
  const auto part = slice(x, 0, 0, 2);
  EXPECT_EQ(tape.backward(mul(part, part))[x],
            Exact(Shape{3}, {Rational(2, 3), Rational(2, 7), Rational(0)}));
}

TEST(Slice, ACountThatLeavesTheAxisIsRefusedWithTheLargestThatFits) {
  const D x = counted<double>({2, 5});
  EXPECT_EQ(fault_of([&] { slice(x, 1, 1, 3, 2); }),
            (Fault{ErrorCode::invalid_index, Argument::x, 1, 3, 2}));
  EXPECT_EQ(fault_of([&] { slice(x, 1, 5, 1); }),
            (Fault{ErrorCode::invalid_index, Argument::x, 1, 5, 5}));
  EXPECT_EQ(fault_of([&] { slice(x, 1, 0, -1); }).code, ErrorCode::invalid_index);
  EXPECT_EQ(fault_of([&] { slice(x, 1, 1, 3, Index{1} << 62); }).code, ErrorCode::invalid_index);
}

TEST(Slice, AnAxisThatIsMissingOrNamedTwiceAndAStepOfZeroAreRefused) {
  const D x = counted<double>({2, 5});
  EXPECT_EQ(fault_of([&] { slice(x, 2, 0, 1); }),
            (Fault{ErrorCode::rank_mismatch, Argument::x, -1, 2, 2}));
  EXPECT_EQ(fault_of([&] { slice(x, {{0, 0, 1}, {-2, 0, 1}}); }).code, ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([&] { slice(x, 1, 0, 1, 0); }).code, ErrorCode::invalid_stride);
  EXPECT_EQ(fault_of([&] {
              slice_adjoint(x, Shape{2, 6}, {{1, 0, 4}});
            }).code,
            ErrorCode::shape_mismatch);
}

}  // namespace
}  // namespace fenestra

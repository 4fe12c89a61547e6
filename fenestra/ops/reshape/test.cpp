// Reshape beyond its laws: the open extent, shared storage, errors, second derivatives.
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/reshape/op.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

#include <string>

namespace fenestra {
namespace {

using D = Tensor<double>;
using Exact = Tensor<Rational>;

ErrorCode code_of(const Shape& x, const Shape& y) {
  try {
    reshape(D(x), y);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("fix: "), std::string::npos);
    return error.code();
  }
  return ErrorCode::none;
}

TEST(Reshape, OneExtentMayBeLeftOpen) {
  EXPECT_EQ(reshape(D(Shape{4, 6}), Shape{3, -1}).shape(), (Shape{3, 8}));
  EXPECT_EQ(reshape(D(Shape{1}), Shape{}).shape(), Shape{});
  EXPECT_EQ(reshape(D(Shape{0, 6}), Shape{-1, 3}).shape(), (Shape{0, 3}));
}

TEST(Reshape, RefusesWhatDoesNotHoldTheElements) {
  EXPECT_EQ(code_of(Shape{4, 6}, Shape{5, -1}), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of(Shape{4, 6}, Shape{4, 5}), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of(Shape{4, 6}, Shape{-1, -1}), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of(Shape{0}, Shape{0, -1}), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of(Shape{2}, Shape{Index{1} << 40, Index{1} << 40}), ErrorCode::shape_mismatch);
}

TEST(Reshape, SharesStorage) {
  const D x(Shape{2, 3}, 1.0);
  EXPECT_EQ(reshape(x, Shape{6}).data(), x.data());
}

TEST(Reshape, SecondDerivativesPassThrough) {
  Tape<Rational> inner;
  Tape<Rational> outer;
  const auto x = inner.parameter(Exact(Shape{2, 1}, {3, 5}));
  const auto xx = outer.parameter(x);
  const auto flat = reshape(xx, Shape{2});
  const auto slope = outer.backward(mul(flat, mul(flat, flat)))[xx];
  EXPECT_EQ(inner.backward(slope)[x], Exact(Shape{2, 1}, {18, 30}));
}

}  // namespace
}  // namespace fenestra

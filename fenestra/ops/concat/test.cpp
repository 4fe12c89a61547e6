// Concat: known values, errors, derivatives of derivatives. The laws are checked by the harness.
#include <fenestra/ops/concat/op.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <tuple>
#include <vector>

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

TEST(Concat, PutsPartsOneAfterAnotherAlongTheAxis) {
  const Exact a(Shape{2, 1}, {1, 2});
  const Exact b(Shape{2, 2}, {3, 4, 5, 6});
  EXPECT_EQ(concat({a, b}, 1), Exact(Shape{2, 3}, {1, 3, 4, 2, 5, 6}));
  EXPECT_EQ(concat({b, b}, -2), Exact(Shape{4, 2}, {3, 4, 5, 6, 3, 4, 5, 6}));
}

TEST(Concat, TheCompiledCopyAgreesWithThePlainOne) {
  std::vector<Tensor<float>> parts;
  std::vector<Tensor<long double>> plain;
  float next = 0;
  for (const Index channels : {3, 0, 64, 1}) {
    Tensor<float> part(Shape{4, channels, 9, 17});
    for (float& value : part.mutable_values()) {
      value = next++;
    }
    plain.push_back(part.map([](float v) { return static_cast<long double>(v); }));
    parts.push_back(part);
  }
  EXPECT_EQ(concat(parts, 1).map([](float v) { return static_cast<long double>(v); }),
            concat(plain, 1));
}

TEST(Concat, EmptyPartsAddNothing) {
  const D a(Shape{2, 0});
  const D b(Shape{2, 1}, {1.0, 2.0});
  EXPECT_EQ(concat({a, b, a}, 1), b);
  EXPECT_EQ(concat({a, a}, 1), a);
}

TEST(Concat, TensorsAndVariablesMix) {
  Tape<double> tape;
  const auto x = tape.parameter(D(Shape{2}, {1.0, 2.0}));
  const D c(Shape{1}, {5.0});
  const auto y = concat(std::tie(c, x, x), 0);
  EXPECT_EQ(y.tensor(), D(Shape{5}, {5.0, 1.0, 2.0, 1.0, 2.0}));
  EXPECT_EQ(tape.backward(mul(y, D(Shape{5}, {1.0, 2.0, 3.0, 4.0, 5.0})))[x],
            D(Shape{2}, {6.0, 8.0}));
}

TEST(Concat, AMissingTangentIsZero) {
  using V = Value<double>;
  const Level level = new_level();
  const V moving(level, V::Jet(D(Shape{1}, {1.0}), V(D(Shape{1}, {7.0}))));
  const V still(level, V::Jet(D(Shape{2}, {2.0, 3.0})));
  EXPECT_EQ(concat({still, moving}, 0).on<V::Jet>(level).tangent_or_zeros(),
            D(Shape{3}, {0.0, 0.0, 7.0}));
  EXPECT_FALSE(concat({still, still}, 0).on<V::Jet>(level).tangent().has_value());
}

TEST(Concat, SecondDerivativesComeFromNestedTapes) {
  Tape<double> inner;
  Tape<double> outer;
  const auto x = inner.parameter(D(Shape{1}, {2.0}));
  const auto xx = outer.parameter(x);
  const auto y = concat({xx, mul(xx, xx)}, 0);
  const auto gradient = outer.backward(mul(y, y))[xx];  // of x^2 + x^4
  EXPECT_EQ(gradient[0], 2 * 2 + 4 * 8);
  EXPECT_EQ(inner.backward(gradient)[x][0], 2 + 12 * 4);
}

TEST(Concat, GradientsAreExactInRationals) {
  Tape<Rational> tape;
  const auto a = tape.parameter(Exact(Shape{1}, {Rational(1, 3)}));
  const auto b = tape.parameter(Exact(Shape{1}, {Rational(1, 7)}));
  const auto y = concat({a, b}, 0);
  const auto grads = tape.backward(mul(y, y));
  EXPECT_EQ(grads[a][0], Rational(2, 3));
  EXPECT_EQ(grads[b][0], Rational(2, 7));
}

TEST(Concat, PartsThatDoNotFitAreRefusedWithBothShapes) {
  const D a(Shape{2, 3});
  EXPECT_EQ(fault_of([&] { concat({a, D(Shape{3, 3})}, 1); }).code, ErrorCode::shape_mismatch);
  EXPECT_EQ(fault_of([&] { concat({a, D(Shape{6})}, 0); }).code, ErrorCode::shape_mismatch);
  EXPECT_EQ(fault_of([&] { concat({a, a}, 2); }).code, ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([] { concat(std::vector<D>{}, 0); }).code, ErrorCode::invalid_option);
  EXPECT_EQ(fault_of([] { concat({D(Shape{}), D(Shape{})}, 0); }).code, ErrorCode::rank_mismatch);
}

TEST(Concat, SizesThatOverflowAreRefused) {
  const std::vector<Shape> parts(2, Shape{std::numeric_limits<Index>::max() / 2 + 1});
  EXPECT_EQ(fault_of([&] { resolve_concat(parts, 0); }).code, ErrorCode::overflow);
}

}  // namespace
}  // namespace fenestra

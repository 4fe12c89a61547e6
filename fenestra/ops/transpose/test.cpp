// Transpose: known values, the blocked copy, errors, derivatives of derivatives. The laws are
// checked by the harness.
#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/ops/transpose/op.hpp>
#include <fenestra/spec/rational.hpp>
#include <fenestra/tensor/transform.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

TEST(Transpose, AMatrixIsMirrored) {
  EXPECT_EQ(transpose(Exact(Shape{2, 3}, {1, 2, 3, 4, 5, 6})),
            Exact(Shape{3, 2}, {1, 4, 2, 5, 3, 6}));
}

TEST(Transpose, ABatchOfMatricesIsMirroredOneByOne) {
  EXPECT_EQ(transpose(Exact(Shape{2, 1, 2}, {1, 2, 3, 4})), Exact(Shape{2, 2, 1}, {1, 2, 3, 4}));
}

TEST(Transpose, AxisIOfTheResultIsAxisOrderI) {
  const Exact x = counted<Rational>({2, 3, 4});
  const Exact y = transpose(x, {2, 0, -2});
  EXPECT_EQ(y.shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(y[(3 * 2 + 1) * 3 + 2], x[(1 * 3 + 2) * 4 + 3]);
}

TEST(Transpose, TheBlockedCopyAgreesWithThePlainOneAtEveryEdgeOfItsTiles) {
  struct Case {
    Shape shape;
    std::vector<int> order;
  };
  std::vector<Case> cases = {{{3, 5, 7, 11}, {0, 2, 3, 1}},
                             {{3, 7, 11, 5}, {0, 3, 1, 2}},
                             {{4, 33, 34}, {2, 1, 0}},
                             {{17, 3, 19}, {1, 2, 0}},
                             {{2, 3, 4, 5, 6}, {4, 2, 0, 3, 1}},
                             {{40, 16, 48}, {1, 0, 2}},
                             {{1, 20, 1, 21}, {3, 2, 1, 0}}};
  for (const Index rows : {1, 15, 16, 17, 64}) {
    for (const Index columns : {1, 15, 16, 17, 300}) {
      cases.push_back({{rows, columns}, {1, 0}});
    }
  }
  for (const auto& [shape, order] : cases) {
    EXPECT_EQ(transpose(counted<float>(shape), order), permuted(counted<float>(shape), order))
        << to_string(shape);
    EXPECT_EQ(transpose(counted<double>(shape), order), permuted(counted<double>(shape), order))
        << to_string(shape);
  }
}

TEST(Transpose, TheResultDoesNotDependOnThreads) {
  const Tensor<float> x = counted<float>({3, 70, 90, 5});
  const int before = threads();
  set_threads(1);
  const Tensor<float> one = transpose(x, {3, 1, 0, 2});
  set_threads(7);
  EXPECT_EQ(transpose(x, {3, 1, 0, 2}), one);
  set_threads(before);
}

TEST(Transpose, TheInverseOrderLeadsBack) {
  const D x = counted<double>({2, 3, 4, 5});
  EXPECT_EQ(transpose(transpose(x, {3, 1, 0, 2}), {2, 1, 3, 0}), x);
}

TEST(Transpose, TheIdentityMovesNothing) {
  const D x = counted<double>({2, 3});
  EXPECT_EQ(transpose(x, {0, 1}).data(), x.data());
}

TEST(Transpose, SecondDerivativesComeFromNestedTapes) {
  Tape<double> inner;
  Tape<double> outer;
  const auto x = inner.parameter(D(Shape{1, 2}, {2.0, 3.0}));
  const auto xx = outer.parameter(x);
  const auto y = transpose(xx);
  const auto gradient = outer.backward(mul(y, mul(y, y)))[xx];
  EXPECT_EQ(gradient.tensor(), D(Shape{1, 2}, {12.0, 27.0}));
  EXPECT_EQ(inner.backward(gradient)[x], D(Shape{1, 2}, {12.0, 18.0}));
}

TEST(Transpose, GradientsAreExactInRationals) {
  Tape<Rational> tape;
  const auto x = tape.parameter(Exact(Shape{1, 2}, {Rational(1, 3), Rational(1, 7)}));
  const auto y = tape.constant(Exact(Shape{2, 1}, {5, 6}));
  EXPECT_EQ(tape.backward(mul(transpose(x), y))[x], Exact(Shape{1, 2}, {5, 6}));
}

TEST(Transpose, AnOrderThatIsNoPermutationIsRefused) {
  const D x = counted<double>({2, 3});
  for (const std::vector<int>& order : {std::vector<int>{0}, {0, 0}, {0, 2}, {-3, 0}, {0, 1, 2}}) {
    const Fault fault = fault_of([&] { transpose(x, order); });
    EXPECT_EQ(fault.code, ErrorCode::rank_mismatch);
    EXPECT_EQ(fault.needed, 2);
  }
  EXPECT_EQ(fault_of([] { transpose(D(Shape{3})); }).code, ErrorCode::rank_mismatch);
}

}  // namespace
}  // namespace fenestra

// Matrix products beyond their laws: NumPy's forms, errors, exact gradients by every flag, the
// compiled path.
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/ops/matmul/op.hpp>
#include <fenestra/ops/reduce/reduce.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace fenestra {
namespace {

using D = Tensor<double>;
using Exact = Tensor<Rational>;

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

/// Small integers, so that every product and sum is exact in every scalar.
template <class T>
Tensor<T> integers(const Shape& shape, std::uint64_t seed) {
  Random random(seed);
  Tensor<T> x(shape);
  for (T& value : x.mutable_values()) {
    value = from_index<T>(random.between(-4, 4));
  }
  return x;
}

template <class T>
Tensor<double> as_double(const Tensor<T>& x) {
  return x.map([](const T& v) { return static_cast<double>(v); });
}

TEST(Matmul, VectorsAndStacksTakeTheShapesOfNumpy) {
  const auto shape = [](const Shape& a, const Shape& b) { return matmul(D(a), D(b)).shape(); };
  EXPECT_EQ(shape({3}, {3}), Shape{});
  EXPECT_EQ(shape({2, 3}, {3}), (Shape{2}));
  EXPECT_EQ(shape({3}, {3, 4}), (Shape{4}));
  EXPECT_EQ(shape({3}, {5, 3, 4}), (Shape{5, 4}));
  EXPECT_EQ(shape({5, 2, 3}, {3}), (Shape{5, 2}));
  EXPECT_EQ(shape({6, 1, 2, 3}, {5, 3, 4}), (Shape{6, 5, 2, 4}));
  EXPECT_EQ(shape({0, 2, 3}, {3, 4}), (Shape{0, 2, 4}));
}

TEST(Matmul, ASumOverNothingIsZeroOrTheBias) {
  EXPECT_EQ(matmul(D(Shape{2, 0}), D(Shape{0, 3})), D(Shape{2, 3}));
  EXPECT_EQ(linear(D(Shape{2, 0}), D(Shape{2, 0}), D(Shape{2}, {1.0, 2.0})),
            D(Shape{2, 2}, {1.0, 2.0, 1.0, 2.0}));
}

TEST(Matmul, MismatchesNameBothNumbers) {
  Fault fault = fault_of([] { matmul(D(Shape{2, 3}), D(Shape{4, 2})); });
  EXPECT_EQ(fault.code, ErrorCode::shape_mismatch);
  EXPECT_EQ(fault.got, 4);
  EXPECT_EQ(fault.needed, 3);
  EXPECT_EQ(fault_of([] {
              matmul(D(Shape{2, 1, 3}), D(Shape{3, 3, 2}));
            }).code,
            ErrorCode::shape_mismatch);
  EXPECT_EQ(fault_of([] { matmul(D(Shape{}), D(Shape{3})); }).code, ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([] { matmul(D(Shape{3}), D(Shape{3}), {.transpose_a = true}); }).code,
            ErrorCode::rank_mismatch);
  fault = fault_of([] { linear(D(Shape{2, 3}), D(Shape{4, 5})); });
  EXPECT_EQ(fault.code, ErrorCode::shape_mismatch);
  EXPECT_EQ(fault.needed, 5);
  EXPECT_EQ(fault_of([] {
              linear(D(Shape{2, 3}), D(Shape{4, 3}), D(Shape{3}));
            }).code,
            ErrorCode::bias_mismatch);
  EXPECT_EQ(fault_of([] { linear(D(Shape{2, 3}), D(Shape{3})); }).code, ErrorCode::rank_mismatch);
}

TEST(Matmul, TheLinearLayerIsTheProductWithTheTransposedWeightPlusBias) {
  const Exact x = integers<Rational>({2, 3, 4}, 1);
  const Exact w = integers<Rational>({5, 4}, 2);
  const Exact b = integers<Rational>({5}, 3);
  EXPECT_EQ(linear(x, w, b), add(matmul(x, w, {.transpose_b = true}), b));
}

TEST(Matmul, CompiledValuesAndGradientsEqualTheExactOnesForEveryFlagAndBroadcast) {
  struct Case {
    Shape a, b;
  };
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const Index m = 19, k = 37, n = 21;
      const auto matrix = [](Shape batch, bool t, Index rows, Index columns) {
        batch.push_back(t ? columns : rows);
        batch.push_back(t ? rows : columns);
        return batch;
      };
      for (const Case& batch : {Case{{}, {}}, Case{{3}, {}}, Case{{}, {3}}, Case{{2, 1}, {3}}}) {
        const Shape a = matrix(batch.a, ta, m, k);
        const Shape b = matrix(batch.b, tb, k, n);
        const auto run = [&]<class T>(T) {
          Tape<T> tape;
          const auto va = tape.parameter(integers<T>(a, 4));
          const auto vb = tape.parameter(integers<T>(b, 5));
          const auto y = matmul(va, vb, {ta, tb});
          const auto grads = tape.backward(Seed<T>{y, integers<T>(y.shape(), 6)});
          return std::vector<Tensor<double>>{
              as_double(y.tensor()), as_double(grads[va].tensor()), as_double(grads[vb].tensor())};
        };
        const auto exact = run(static_cast<long double>(0));
        EXPECT_EQ(run(0.0F), exact) << to_string(a) << to_string(b) << ta << tb;
        EXPECT_EQ(run(0.0), exact) << to_string(a) << to_string(b) << ta << tb;
      }
    }
  }
}

TEST(Matmul, ResultsDoNotDependOnThreadsOrOnTheBatch) {
  const int before = threads();
  Random random(8);
  Tensor<float> x(Shape{9, 70, 130});
  Tensor<float> w(Shape{45, 130});
  for (float& value : x.mutable_values()) {
    value = static_cast<float>(random.real());
  }
  for (float& value : w.mutable_values()) {
    value = static_cast<float>(random.real());
  }
  set_threads(1);
  const Tensor<float> y = linear(x, w);
  for (const int count : {2, 7}) {
    set_threads(count);
    EXPECT_EQ(linear(x, w), y);
  }
  const Tensor<float> first(Shape{70, 130}, std::span<const float>(x.data(), 70 * 130));
  EXPECT_EQ(linear(first, w),
            Tensor<float>(Shape{70, 45}, std::span<const float>(y.data(), 70 * 45)));
  set_threads(before);
}

TEST(Matmul, TheMixedSecondDerivativeOfABilinearFormIsItsMatrix) {
  // f = x' A y; d2f/dx dy applied to a direction v of y is A v.
  const Exact a(Shape{2, 3}, {1, 2, 3, 4, 5, 6});
  const Exact v(Shape{3}, {1, -1, 2});
  Tape<Rational> tape;
  const auto x = tape.parameter(Exact(Shape{2}, {7, 8}));
  const auto f = [&](const auto& y) { return matmul(matmul(x, a), y); };
  const Value<Rational> at(Exact(Shape{3}, {1, 1, 1}));
  const auto slope = jvp(f, primals(at), tangents(v)).second;
  EXPECT_EQ(tape.backward(slope)[x], matmul(a, v));
}

}  // namespace
}  // namespace fenestra

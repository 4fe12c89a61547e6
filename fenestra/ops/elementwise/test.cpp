// The elementwise family beyond its laws: extremes, broadcasting errors, mixed levels, second
// derivatives, the compiled loops, and the scalars that `erfc` was added to.
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/ops/elementwise/op.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/spec/dual.hpp>
#include <fenestra/spec/interval.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace fenestra {
namespace {

using D = Tensor<double>;
using F = Tensor<float>;
using Exact = Tensor<Rational>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

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

/// f'' at x by a tape over a tape.
template <class Function>
D second_derivative(Function&& f, const D& x) {
  Tape<double> inner;
  Tape<double> outer;
  const auto at = inner.parameter(x);
  const auto variable = outer.parameter(at);
  const auto slope = outer.backward(f(variable))[variable];
  return inner.backward(slope)[at];
}

TEST(Elementwise, BroadcastingRefusesExtentsThatDifferAndAreNotOne) {
  const D a(Shape{2, 3});
  const D b(Shape{2});
  const Fault fault = fault_of([&] { add(a, b); });
  EXPECT_EQ(fault.code, ErrorCode::shape_mismatch);
  EXPECT_EQ(fault.got, 2);
  EXPECT_EQ(fault.needed, 3);
}

TEST(Elementwise, AnEmptyTensorMeetsAnExtentOfOne) {
  const D y = mul(D(Shape{0, 3}), D(Shape{1, 3}, 2.0));
  EXPECT_EQ(y.shape(), (Shape{0, 3}));
  Tape<double> tape;
  const auto one = tape.parameter(D(Shape{1, 3}, 2.0));
  EXPECT_EQ(tape.backward(mul(D(Shape{0, 3}), one))[one], D(Shape{1, 3}));
}

TEST(Elementwise, ClipRefusesReversedAndNanBounds) {
  EXPECT_EQ(fault_of([] { clip(D(Shape{1}), 2, 1); }).code, ErrorCode::invalid_option);
  EXPECT_EQ(fault_of([] { clip(D(Shape{1}), kNan, 1); }).code, ErrorCode::invalid_option);
}

TEST(Elementwise, AnInfiniteBoundOfClipIsNoneInExactScalarsToo) {
  Tape<Rational> tape;
  const auto x = tape.parameter(Exact(Shape{2}, {-5, 7}));
  const auto y = clip(x, 0, kInf);
  EXPECT_EQ(y.tensor(), Exact(Shape{2}, {0, 7}));
  EXPECT_EQ(tape.backward(y)[x], Exact(Shape{2}, {0, 1}));
}

TEST(Elementwise, NanPassesThroughTheBends) {
  const D x(Shape{1}, kNan);
  for (const D& y : {relu(x), leaky_relu(x, 0.5), clip(x, -1, 1), hard_sigmoid(x), abs(x)}) {
    EXPECT_TRUE(std::isnan(y[0]));
  }
  EXPECT_TRUE(std::isnan(maximum(x, D(Shape{1}, 1.0))[0]));
  EXPECT_TRUE(std::isnan(minimum(D(Shape{1}, 1.0), x)[0]));
}

TEST(Elementwise, TheGradientOfReluAtInfinityIsOne) {
  Tape<double> tape;
  const auto x = tape.parameter(D(Shape{3}, {kInf, -kInf, 0.0}));
  EXPECT_EQ(tape.backward(relu(x))[x], D(Shape{3}, {1.0, 0.0, 0.0}));
}

TEST(Elementwise, SigmoidAndSoftplusDoNotOverflow) {
  const D x(Shape{4}, {-1000.0, 1000.0, -kInf, kInf});
  EXPECT_EQ(sigmoid(x), D(Shape{4}, {0.0, 1.0, 0.0, 1.0}));
  EXPECT_EQ(softplus(x), D(Shape{4}, {0.0, 1000.0, 0.0, kInf}));
}

TEST(Elementwise, PowersOfZeroHaveFiniteDerivatives) {
  Tape<double> tape;
  const auto x = tape.parameter(D(Shape{1}, 0.0));
  EXPECT_EQ(tape.backward(power(x, 0))[x], D(Shape{1}, 0.0));
  EXPECT_EQ(tape.backward(power(x, 1))[x], D(Shape{1}, 1.0));
  EXPECT_EQ(tape.backward(power(x, 2))[x], D(Shape{1}, 0.0));
}

TEST(Elementwise, AScalarWithoutExponentialsIsRefusedByName) {
  const Exact x(Shape{1}, Rational(1));
  EXPECT_EQ(fault_of([&] { exp(x); }).code, ErrorCode::dtype_mismatch);
  EXPECT_EQ(fault_of([&] { gelu(x); }).code, ErrorCode::dtype_mismatch);
}

TEST(Elementwise, SecondDerivativesAreExactInRationals) {
  Tape<Rational> inner;
  Tape<Rational> outer;
  const auto x = inner.parameter(Exact(Shape{2}, {Rational(2), Rational(-3)}));
  const auto xx = outer.parameter(x);
  // (1/x)'' = 2/x^3
  const auto slope = outer.backward(div(ones_like(xx), xx))[xx];
  EXPECT_EQ(inner.backward(slope)[x], Exact(Shape{2}, {Rational(1, 4), Rational(-2, 27)}));
}

TEST(Elementwise, NestedTapesAgreeWithNestedDualsOnSmoothFunctions) {
  // Both evaluate the same closed forms in double; the bound is ten roundings of values below 4.
  const double bound = 10 * 4 * std::numeric_limits<double>::epsilon();
  const D x(Shape{3}, {-1.25, 0.5, 1.75});
  const auto compare = [&](UnaryFunction f) {
    const D by_tape = second_derivative([&](const auto& v) { return unary({f}, v); }, x);
    for (Index i = 0; i < x.size(); ++i) {
      const auto whole = spec::unary(UnaryCall{f}, Dual<Dual<double>>({x[i], 1.0}, {1.0, 0.0}));
      EXPECT_NEAR(by_tape[i], whole.tangent.tangent, bound) << function_name(f) << " at " << x[i];
    }
  };
  for (const UnaryFunction f : {UnaryFunction::exp,
                                UnaryFunction::sigmoid,
                                UnaryFunction::tanh,
                                UnaryFunction::normal_cdf,
                                UnaryFunction::gelu,
                                UnaryFunction::silu,
                                UnaryFunction::softplus}) {
    compare(f);
  }
}

TEST(Elementwise, AJetOverATapeGivesTheSameMixedDerivativeAsATapeOverAJet) {
  const D x(Shape{2}, {0.5, -1.0});
  const D v(Shape{2}, {1.0, 2.0});
  const auto f = [](const auto& t) { return mul(tanh(t), exp(t)); };

  Tape<double> tape;
  const auto variable = tape.parameter(x);
  const auto [y, y_dot] = jvp(f, primals(variable), tangents(v));
  const D forward_then_reverse = tape.backward(y_dot)[variable];

  const auto slope = [&](const Value<double>& at) {
    Tape<double> around;
    const auto parameter = around.parameter(at);
    return around.backward(f(parameter))[parameter];
  };
  const D reverse_then_forward = jvp(slope, primals(x), tangents(v)).second;

  for (Index i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(forward_then_reverse[i],
                reverse_then_forward[i],
                20 * std::numeric_limits<double>::epsilon());
  }
}

TEST(Elementwise, CompiledLoopsAgreeWithTheSpecificationAtEveryLengthAndThreadCount) {
  const int before = threads();
  for (const Index n : {1, 7, 16, 33, 40000}) {
    F x(Shape{n});
    F u(Shape{n});
    for (Index i = 0; i < n; ++i) {
      x.mutable_data()[i] = static_cast<float>(i % 13 - 6) / 2;
      u.mutable_data()[i] = static_cast<float>(i % 5 + 1);
    }
    for (const UnaryFunction f : detail::kUnaryFunctions) {
      const UnaryCall call{f, 0.5, 2};
      const F needed = x.map([&](float v) { return spec::unary(call, v); });
      set_threads(1);
      const F got = unary(call, x);
      for (Index i = 0; i < n; ++i) {
        // At most 6 units of the loops (accuracy_test.cpp) and 10 of the specification, whose
        // normal distribution rounds its argument first.
        const float bound = 16 * std::numeric_limits<float>::epsilon() * std::fabs(needed[i]);
        ASSERT_TRUE(std::fabs(got[i] - needed[i]) <= bound || got[i] == needed[i] ||
                    (std::isnan(got[i]) && std::isnan(needed[i])))
            << function_name(f) << " of " << x[i];
      }
      for (const int count : {2, 7}) {
        set_threads(count);
        const F again = unary(call, x);
        ASSERT_EQ(
            std::memcmp(again.data(), got.data(), sizeof(float) * static_cast<std::size_t>(n)), 0)
            << function_name(f) << " on " << count << " threads";
      }
    }
    for (const GateCall& call :
         {GateCall{0, kInf}, GateCall{-1, 1, 0, true}, GateCall{-1, 2, 0.5}}) {
      const spec::GateBounds<float> bounds(call);
      const F got = gate(call, u, x);
      for (Index i = 0; i < n; ++i) {
        ASSERT_EQ(got[i], spec::gate(call, bounds, u[i], x[i]));
      }
    }
  }
  set_threads(before);
}

TEST(Elementwise, IntervalsOfErfcEncloseWhatAWiderTypeComputes) {
  for (double x = -6; x <= 6; x += 0.0625) {
    const Interval<double> y = erfc(Interval<double>(x));
    const auto wide = static_cast<long double>(std::erfc(static_cast<long double>(x)));
    EXPECT_LE(static_cast<long double>(y.lo()), wide);
    EXPECT_GE(static_cast<long double>(y.hi()), wide);
  }
  EXPECT_EQ(erfc(Interval<double>(-kInf, kInf)), Interval<double>(0.0, 2.0));
}

TEST(Elementwise, TheDerivativeOfTheNormalDistributionIsItsDensity) {
  const auto p = spec::unary(UnaryCall{UnaryFunction::normal_cdf},
                             Dual<Interval<double>>(Interval<double>(0.0), Interval<double>(1.0)));
  EXPECT_TRUE(p.value.contains(0.5));
  EXPECT_TRUE(p.tangent.contains(0.3989422804014326779));
  EXPECT_LT(p.tangent.width(), 1e-14);  // an enclosure that says something
}

}  // namespace
}  // namespace fenestra

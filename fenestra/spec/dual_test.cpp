// Dual numbers: derivatives against exact polynomials, nesting without confusion, and the singular
// points.
#include <fenestra/spec/dual.hpp>
#include <fenestra/spec/interval.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace fenestra {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

static_assert(derivative([](auto x) { return x * x * x; }, 2.0) == 12.0);
static_assert(derivative([](auto x) { return 1 / x; }, Rational(3)) == Rational(-1, 9));
static_assert(std::is_convertible_v<double, Dual<double>> &&
              std::is_convertible_v<int, Dual<double>>);
static_assert(std::is_convertible_v<double, Dual<Dual<Dual<double>>>>);
static_assert(std::is_convertible_v<double, Dual<Interval<double>>>);
static_assert(std::is_convertible_v<Index, Dual<Rational>>);
static_assert(!std::is_convertible_v<double, Dual<float>>, "no silent change of precision");
static_assert(!std::is_convertible_v<double, Dual<Rational>>);
static_assert(!std::is_convertible_v<Dual<double>, double>, "a tangent is never dropped silently");
static_assert(!std::is_convertible_v<Dual<Dual<double>>, Dual<double>>);

template <class T>
using Dual3 = Dual<Dual<Dual<T>>>;

/// sum of coefficients[i] x^i, by Horner.
template <class X>
X polynomial(const std::vector<Rational>& coefficients, const X& x) {
  X y = X(0);
  for (auto c = coefficients.rbegin(); c != coefficients.rend(); ++c) {
    y = y * x + *c;
  }
  return y;
}

std::vector<Rational> derived(const std::vector<Rational>& coefficients) {
  std::vector<Rational> result;
  for (std::size_t i = 1; i < coefficients.size(); ++i) {
    result.push_back(coefficients[i] * static_cast<Index>(i));
  }
  return result;
}

TEST(Dual, DerivativesOfPolynomialsAreExactToThirdOrder) {
  std::mt19937_64 engine(3);
  std::uniform_int_distribution<Index> number(-9, 9);
  std::uniform_int_distribution<Index> divisor(1, 4);
  for (int i = 0; i < 500; ++i) {
    std::vector<Rational> p;
    for (int degree = 0; degree <= 5; ++degree) {
      p.emplace_back(number(engine), divisor(engine));
    }
    const Rational x(number(engine), divisor(engine));
    const auto f = [&](const auto& u) { return polynomial(p, u); };
    const auto f1 = [&](const auto& u) { return derivative(f, u); };
    const auto f2 = [&](const auto& u) { return derivative(f1, u); };
    EXPECT_EQ(f1(x), polynomial(derived(p), x));
    EXPECT_EQ(f2(x), polynomial(derived(derived(p)), x));
    EXPECT_EQ(derivative(f2, x), polynomial(derived(derived(derived(p))), x));
  }
}

TEST(Dual, QuotientRuleIsExact) {
  std::mt19937_64 engine(4);
  std::uniform_int_distribution<Index> number(1, 9);
  for (int i = 0; i < 500; ++i) {
    const Rational a(number(engine));
    const Rational b(number(engine));
    const Rational x(number(engine), number(engine));
    // (x + a)/(x^2 + b)
    const auto f = [&](const auto& u) { return (u + a) / (u * u + b); };
    const Rational bottom = x * x + b;
    EXPECT_EQ(derivative(f, x), (bottom - (x + a) * 2 * x) / (bottom * bottom));
    // and twice for 1/x
    const auto g = [](const auto& u) { return 1 / u; };
    const auto g1 = [&](const auto& u) { return derivative(g, u); };
    EXPECT_EQ(derivative(g1, x), 2 / (x * x * x));
  }
}

TEST(Dual, NestedDerivativesOfDifferentVariablesAreNotConfused) {
  // d/dx [x * d/dy (x + y)] at x = 1, y = 1 is 1; an implementation that confuses the two
  // answers 2.
  const auto outer = [](const auto& x) {
    using X = std::decay_t<decltype(x)>;
    return x * derivative([&](const auto& y) { return x + y; }, X(1));
  };
  EXPECT_EQ(derivative(outer, 1.0), 1.0);
  EXPECT_EQ(derivative(outer, Rational(1)), Rational(1));
  // d/dx [x * d/dy (x * y)] = d/dx x^2 = 2x
  const auto product = [](const auto& x) {
    using X = std::decay_t<decltype(x)>;
    return x * derivative([&](const auto& y) { return x * y; }, X(5));
  };
  EXPECT_EQ(derivative(product, Rational(7, 2)), Rational(7));
}

TEST(Dual, MixedPartialDerivativesCommute) {
  const auto f = [](const auto& x, const auto& y) { return x * x * y + x / (y + 1) * y; };
  const Rational x(2, 3);
  const Rational y(5, 2);
  using D = Dual<Rational>;
  using DD = Dual<D>;
  const DD xy = f(DD(D(x, 1), D(0)), DD(D(y), D(1)));
  const DD yx = f(DD(D(x), D(1)), DD(D(y, 1), D(0)));
  EXPECT_EQ(xy.tangent.tangent, yx.tangent.tangent);
  EXPECT_EQ(xy.tangent.tangent, 2 * x + 1 / ((y + 1) * (y + 1)));
}

TEST(Dual, ConstantsOfEveryInnerLevelMixWithAllOperators) {
  const Dual3<double> x(Dual<Dual<double>>(Dual<double>(2.0, 1.0), 1.0), 1.0);
  const Dual<double> inner(3.0, 1.0);
  EXPECT_EQ((x + inner).value.value.value, 5.0);
  EXPECT_EQ((inner * x).value.value.value, 6.0);
  EXPECT_EQ((x * 4.0 - 1).value.value.value, 7.0);
  EXPECT_EQ((1.0 / x).value.value.value, 0.5);
  EXPECT_TRUE(x < inner);
  EXPECT_TRUE(x < 3.0);
  EXPECT_TRUE(2 <= x);
  EXPECT_TRUE(x > 1.0);
  EXPECT_TRUE(x >= 2.0);
  EXPECT_TRUE(x == 2.0);
  EXPECT_TRUE(3.0 != x);
  Dual<double> sum(1.0, 1.0);
  sum += 2.0;
  sum *= sum;
  sum -= 1;
  sum /= 2.0;
  EXPECT_TRUE(identical(sum, Dual<double>(4.0, 3.0)));
}

TEST(Dual, EqualityFollowsTheValueAndIdenticalSeesEverything) {
  using DD = Dual<Dual<double>>;
  const DD a(Dual<double>(1.0, 2.0), Dual<double>(3.0, 4.0));
  const DD b(Dual<double>(1.0, 2.0), Dual<double>(3.0, 5.0));
  EXPECT_TRUE(a == b);
  EXPECT_FALSE(identical(a, b));
  EXPECT_TRUE(identical(a, a));
  EXPECT_FALSE(a < b);
}

TEST(Dual, TranscendentalDerivativesHaveTheirClosedForm) {
  const auto exp_of = [](const auto& x) { return scalar_exp(x); };
  const auto log_of = [](const auto& x) { return scalar_log(x); };
  const auto sqrt_of = [](const auto& x) { return scalar_sqrt(x); };
  for (const double x : {0.25, 1.0, 3.0, 7.5}) {
    EXPECT_EQ(derivative(exp_of, x), std::exp(x));
    EXPECT_EQ(derivative([&](const auto& u) { return derivative(exp_of, u); }, x), std::exp(x));
    EXPECT_EQ(derivative(log_of, x), 1 / x);
    EXPECT_EQ(derivative(sqrt_of, x), 1 / (2 * std::sqrt(x)));
  }
  EXPECT_EQ(derivative([&](const auto& u) { return derivative(log_of, u); }, 2.0), -0.25);
  EXPECT_EQ(derivative([&](const auto& u) { return derivative(sqrt_of, u); }, 4.0), -1.0 / 32);
  EXPECT_EQ(derivative(exp_of, 1.0f), std::exp(1.0f));
  EXPECT_EQ(derivative(exp_of, 1.0L), std::exp(1.0L));
}

TEST(Dual, IntegerPowersHaveRightDerivativesOfEveryOrderAtZero) {
  for (const int n : {0, 1, 2, 3, 4}) {
    const auto f = [n](const auto& x) { return pow(x, std::decay_t<decltype(x)>(n)); };
    const auto f1 = [&](const auto& x) { return derivative(f, x); };
    const auto f2 = [&](const auto& x) { return derivative(f1, x); };
    EXPECT_EQ(f1(0.0), n == 1 ? 1.0 : 0.0) << n;
    EXPECT_EQ(f2(0.0), n == 2 ? 2.0 : 0.0) << n;
    EXPECT_EQ(derivative(f2, 0.0), n == 3 ? 6.0 : 0.0) << n;
    EXPECT_EQ(f1(-2.0), n == 0 ? 0.0 : n * std::pow(-2.0, n - 1)) << n;
    EXPECT_EQ(derivative(f2, -2.0), n < 3 ? 0.0 : n * (n - 1) * (n - 2) * std::pow(-2.0, n - 3))
        << n;
  }
}

TEST(Dual, RealPowersAtZeroFollowTheirSlope) {
  const auto power = [](double p) { return [p](const auto& x) { return pow(x, p); }; };
  EXPECT_EQ(derivative(power(1.5), 0.0), 0.0);
  EXPECT_EQ(derivative(power(0.5), 0.0), inf);
  EXPECT_EQ(pow(Dual<double>(0.0), Dual<double>(0.5)).tangent, 0.0) << "a constant does not move";
  EXPECT_EQ(sqrt(Dual<double>(0.0)).tangent, 0.0);
  EXPECT_EQ(sqrt(Dual<double>(0.0, 1.0)).tangent, inf);
  EXPECT_EQ(log(Dual<double>(0.0)).tangent, 0.0);
}

TEST(Dual, AMovingExponentAddsTheLogarithm) {
  const auto f = [](const auto& p) { return pow(std::decay_t<decltype(p)>(2.0), p); };
  EXPECT_EQ(derivative(f, 3.0), 8.0 * std::log(2.0));
  const auto zero = [](const auto& p) { return pow(std::decay_t<decltype(p)>(0.0), p); };
  EXPECT_EQ(derivative(zero, 2.0), 0.0);
  const auto zero1 = [&](const auto& p) { return derivative(zero, p); };
  EXPECT_EQ(derivative(zero1, 2.0), 0.0);
  // x^x at 2: 4 (1 + log 2), each side at most four roundings from the exact value
  const double exact = 4 * (1 + std::log(2.0));
  const double got = derivative([](const auto& x) { return pow(x, x); }, 2.0);
  EXPECT_NEAR(got, exact, 8 * std::numeric_limits<double>::epsilon() * exact);
}

TEST(Dual, ZeroTangentsOfAnOuterLevelDoNotHideAnInnerOne) {
  // The tangent of the outer level is {0, 1}: zero by value, moving at the inner level.
  using D = Dual<double>;
  const Dual<D> x(D(4.0, 0.0), D(0.0, 1.0));
  EXPECT_EQ(sqrt(x).tangent.tangent, 0.25);
  EXPECT_EQ(exp(x).tangent.tangent, std::exp(4.0));
  EXPECT_EQ(log(x).tangent.tangent, 0.25);
  EXPECT_EQ(pow(x, Dual<D>(2.0)).tangent.tangent, 8.0);
}

TEST(Dual, AbsoluteValueHasSlopeOfTheSignAndZeroAtZero) {
  const auto f = [](const auto& x) { return abs(x); };
  EXPECT_EQ(derivative(f, -2.0), -1.0);
  EXPECT_EQ(derivative(f, 3.0), 1.0);
  EXPECT_EQ(derivative(f, 0.0), 0.0);
  EXPECT_EQ(derivative(f, Rational(-1, 3)), Rational(-1));
  EXPECT_EQ(derivative([&](const auto& x) { return derivative(f, x); }, -2.0), 0.0);
  EXPECT_EQ(scalar_abs(Dual<double>(-2.0, 5.0)).tangent, -5.0);
  EXPECT_TRUE(identical(sign_of(Dual<double>(-2.0, 5.0)), Dual<double>(-1.0)));
}

TEST(Dual, IsNanLooksAtTheInnermostValue) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(is_nan(Dual<Dual<double>>(Dual<double>(nan, 0.0), Dual<double>(0.0))));
  EXPECT_FALSE(is_nan(Dual<Dual<double>>(Dual<double>(0.0, nan), Dual<double>(nan))));
}

TEST(Dual, DerivativesOverIntervalsEncloseTheExactOnes) {
  using I = Interval<double>;
  const auto f = [](const auto& x) { return (x * x * x - 2 * x) / (x + 3); };
  const auto f1 = [&](const auto& x) { return derivative(f, x); };
  for (Index n = 1; n < 50; ++n) {
    const Rational x(n, 7);
    const I box = I(static_cast<double>(n)) / 7;
    EXPECT_TRUE(f1(box).contains(f1(x))) << n;
    EXPECT_TRUE(derivative(f1, box).contains(derivative(f1, x))) << n;
  }
  EXPECT_TRUE(abs(Dual<I>(I(-1.0, 2.0), I(3.0))).tangent == I(-3.0, 3.0));
}

/// Integers modulo 7, constructible from int explicitly and nothing else.
class Mod7 {
 public:
  constexpr explicit Mod7(int n) : n_(((n % 7) + 7) % 7) {}
  friend constexpr Mod7 operator+(Mod7 a, Mod7 b) { return Mod7(a.n_ + b.n_); }
  friend constexpr Mod7 operator-(Mod7 a, Mod7 b) { return Mod7(a.n_ - b.n_); }
  friend constexpr Mod7 operator-(Mod7 a) { return Mod7(-a.n_); }
  friend constexpr Mod7 operator*(Mod7 a, Mod7 b) { return Mod7(a.n_ * b.n_); }
  friend constexpr bool operator==(Mod7 a, Mod7 b) = default;

 private:
  int n_;
};

TEST(Dual, WorksOverAUsersOwnNumber) {
  static_assert(derivative([](auto x) { return x * x * x + 2 * x; }, Mod7(3)) == Mod7(29));
  static_assert(derivative([](auto x) { return -(1 - x) * (x - 3); }, Mod7(5)) == Mod7(6));
  // x^7 has derivative 7 x^6 = 0 in this field
  const auto seventh = [](const auto& x) { return x * x * x * x * x * x * x; };
  for (int n = 0; n < 7; ++n) {
    EXPECT_TRUE(derivative(seventh, Mod7(n)) == Mod7(0));
    EXPECT_TRUE(seventh(Mod7(n)) == Mod7(n));
  }
}

}  // namespace
}  // namespace fenestra

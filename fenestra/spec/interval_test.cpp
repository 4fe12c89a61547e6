// Interval: the result encloses the exact one, is not wider than rounding requires, and says when
// it cannot decide.
#include <fenestra/spec/interval.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <type_traits>

namespace fenestra {
namespace {

using I = Interval<double>;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double most = std::numeric_limits<double>::max();
constexpr double tiny = std::numeric_limits<double>::denorm_min();

static_assert(std::is_convertible_v<int, I> && std::is_convertible_v<double, I>);
static_assert(!std::is_constructible_v<Interval<float>, double>, "no silent rounding");
static_assert(Interval<double>(1, 2) < Interval<double>(3, 4));

template <class F>
ErrorCode code_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::none;
}

/// A random expression, evaluated in T and in Rational side by side.
template <class T>
struct Pair {
  Interval<T> interval;
  Rational exact;
};

template <class T>
Pair<T> random_expression(std::mt19937_64& engine, int depth) {
  if (depth == 0) {
    std::uniform_int_distribution<int> num(-20, 20);
    std::uniform_int_distribution<int> den(1, 12);
    const int n = num(engine);
    const int d = den(engine);
    return {Interval<T>(n) / Interval<T>(d), Rational(n, d)};
  }
  const Pair<T> a = random_expression<T>(engine, depth - 1);
  const Pair<T> b = random_expression<T>(engine, depth - 1);
  switch (std::uniform_int_distribution<int>(0, 5)(engine)) {
    case 0: return {a.interval + b.interval, a.exact + b.exact};
    case 1: return {a.interval - b.interval, a.exact - b.exact};
    case 2: return {a.interval * b.interval, a.exact * b.exact};
    case 3: return {scalar_max(a.interval, -b.interval), scalar_max(a.exact, -b.exact)};
    case 4: return {abs(a.interval) - b.interval, abs(a.exact) - b.exact};
    default: break;
  }
  if (b.exact == 0) {
    return a;
  }
  return {a.interval / b.interval, a.exact / b.exact};
}

template <class T>
class IntervalOf : public testing::Test {};
using Floats = testing::Types<float, double, long double>;
TYPED_TEST_SUITE(IntervalOf, Floats);

TYPED_TEST(IntervalOf, EnclosesTheExactValueOfRandomExpressions) {
  std::mt19937_64 engine(5);
  int checked = 0;
  for (int i = 0; i < 20000; ++i) {
    try {
      const Pair<TypeParam> pair = random_expression<TypeParam>(engine, 1 + i % 4);
      ASSERT_TRUE(pair.interval.contains(pair.exact)) << pair.interval << " " << pair.exact;
      ++checked;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::overflow) << error.what();  // of the exact side
    }
  }
  EXPECT_GT(checked, 15000);
}

TYPED_TEST(IntervalOf, OneOperationIsAtMostOneStepWide) {
  std::mt19937_64 engine(6);
  std::uniform_int_distribution<int> number(1, 1 << 20);
  using J = Interval<TypeParam>;
  const auto tight = [](const J& x) {
    return x.lo() == x.hi() ||
           std::nextafter(x.lo(), std::numeric_limits<TypeParam>::infinity()) == x.hi();
  };
  for (int i = 0; i < 2000; ++i) {
    const J a(static_cast<TypeParam>(number(engine)) / TypeParam(7));
    const J b(static_cast<TypeParam>(number(engine)) / TypeParam(13));
    EXPECT_TRUE(tight(a + b) && tight(a - b) && tight(a * b) && tight(a / b) && tight(sqrt(a)));
  }
}

TYPED_TEST(IntervalOf, ExactOperationsStayPoints) {
  using J = Interval<TypeParam>;
  EXPECT_EQ(J(3) + J(4), J(7));
  EXPECT_EQ(J(3) * J(-4), J(-12));
  EXPECT_EQ(J(3) / J(-4), J(TypeParam(-0.75)));
  EXPECT_EQ(sqrt(J(49)), J(7));
  EXPECT_EQ(exp(J(0)), J(1));
  EXPECT_EQ(log(J(1)), J(0));
  EXPECT_EQ(pow(J(5), J(0)), J(1));
  EXPECT_EQ(pow(J(5), J(1)), J(5));
  const TypeParam third = TypeParam(1) / 3;
  EXPECT_EQ(J(third) * J(0), J(0));
  EXPECT_LT((J(third) * J(third)).lo(), (J(third) * J(third)).hi());
}

/// Whether y, computed by the long double library to within 2 ulp, can be the value that x
/// encloses.
template <class T>
bool encloses(const Interval<T>& x, long double y) {
  const long double slack = 2 * std::numeric_limits<long double>::epsilon() * std::fabs(y);
  return x.lo() <= y + slack && y - slack <= x.hi();
}

/// Two steps each way, and the step doubles at a power of two.
template <class T>
bool narrow(const Interval<T>& x) {
  const T size = std::max(std::fabs(x.lo()), std::fabs(x.hi()));
  return x.hi() - x.lo() <= 4 * std::numeric_limits<T>::epsilon() * size;
}

template <class T>
class Transcendentals : public testing::Test {};
using Narrower = testing::Types<float, double>;
TYPED_TEST_SUITE(Transcendentals, Narrower);

TYPED_TEST(Transcendentals, PointsAreEnclosedAgainstLongDouble) {
  using T = TypeParam;
  using J = Interval<T>;
  std::mt19937_64 engine(8);
  std::uniform_real_distribution<T> exponent(T(-80), T(80));
  std::uniform_real_distribution<T> power(T(-8), T(8));
  for (int i = 0; i < 5000; ++i) {
    const T e = exponent(engine);
    const T x = std::exp(e / 2);
    const T p = power(engine);
    EXPECT_TRUE(encloses(exp(J(e)), std::exp(static_cast<long double>(e)))) << e;
    EXPECT_TRUE(encloses(log(J(x)), std::log(static_cast<long double>(x)))) << x;
    EXPECT_TRUE(encloses(sqrt(J(x)), std::sqrt(static_cast<long double>(x)))) << x;
    const T base = std::exp(e / 10);
    const auto exact = std::pow(static_cast<long double>(base), static_cast<long double>(p));
    EXPECT_TRUE(encloses(pow(J(base), J(p)), exact)) << base << " " << p;
    EXPECT_TRUE(narrow(exp(J(e))) && narrow(log(J(x))) && narrow(pow(J(base), J(p)))) << e;
  }
}

TYPED_TEST(Transcendentals, BoxesEncloseTheirPoints) {
  using T = TypeParam;
  using J = Interval<T>;
  std::mt19937_64 engine(9);
  std::uniform_real_distribution<T> position(T(0.01), T(6));
  std::uniform_real_distribution<T> power(T(-3), T(3));
  for (int i = 0; i < 2000; ++i) {
    const T a = position(engine);
    const T b = position(engine);
    const T p = power(engine);
    const T q = power(engine);
    const J x(std::min(a, b), std::max(a, b));
    const J y(std::min(p, q), std::max(p, q));
    const auto inner_x = static_cast<long double>(x.mid());
    const auto inner_y = static_cast<long double>(y.mid());
    EXPECT_TRUE(encloses(exp(x), std::exp(inner_x)));
    EXPECT_TRUE(encloses(log(x), std::log(inner_x)));
    EXPECT_TRUE(encloses(sqrt(x), std::sqrt(inner_x)));
    EXPECT_TRUE(encloses(pow(x, y), std::pow(inner_x, inner_y)));
  }
}

TEST(Interval, TranscendentalExtremesStayEnclosed) {
  EXPECT_EQ(exp(I(-inf)), I(0));
  EXPECT_EQ(exp(I(1000.0)).hi(), inf);
  EXPECT_LT(exp(I(1000.0)).lo(), inf);
  EXPECT_EQ(exp(I(-1000.0)).lo(), 0.0);
  EXPECT_GT(exp(I(-1000.0)).hi(), 0.0);
  EXPECT_EQ(log(I(0)), I(-inf));
  EXPECT_EQ(log(I(0.0, 1.0)), I(-inf, 0.0));
  EXPECT_EQ(log(I(-1.0, 1.0)), log(I(0.0, 1.0)));
  EXPECT_TRUE(is_nan(log(I(-2.0, -1.0))));
  EXPECT_TRUE(is_nan(sqrt(I(-2.0, -1.0))));
  EXPECT_EQ(sqrt(I(-2.0, 4.0)), I(0.0, 2.0));
  EXPECT_EQ(sqrt(I(0.0, inf)), I(0.0, inf));
}

TEST(Interval, PowersOfZeroFollowTheExponent) {
  EXPECT_EQ(pow(I(0), I(0.5)), I(0));
  EXPECT_EQ(pow(I(0), I(0)), I(1));
  EXPECT_EQ(pow(I(0), I(-1)), I(inf));
  EXPECT_EQ(pow(I(0.0, 1.0), I(0.5)), I(0.0, 1.0));
  EXPECT_EQ(pow(I(0.0, 1.0), I(-2)).hi(), inf);
  EXPECT_EQ(pow(I(0.0, 1.0), I(-1.0, 1.0)), I(0.0, inf));
}

TEST(Interval, IntegerPowersOfNegativeBasesKeepTheirSign) {
  EXPECT_TRUE(pow(I(-2), I(3)).contains(-8.0));
  EXPECT_LT(pow(I(-2), I(3)).hi(), -7.0);
  EXPECT_TRUE(pow(I(-2), I(2)).contains(4.0));
  EXPECT_EQ(pow(I(-2.0, 1.0), I(2)).lo(), 0.0);
  EXPECT_TRUE(pow(I(-2.0, 1.0), I(3)).contains(-8.0));
  EXPECT_TRUE(pow(I(-2.0, 1.0), I(3)).contains(1.0));
  EXPECT_TRUE(pow(I(-2), I(-3)).contains(-0.125));
  EXPECT_EQ(pow(I(-2.0, 1.0), I(-3)), I::whole());
  EXPECT_TRUE(is_nan(pow(I(-2), I(0.5))));
  EXPECT_EQ(pow(I(-4.0, 4.0), I(0.5)), pow(I(0.0, 4.0), I(0.5)));
}

TEST(Interval, OverflowAndUnderflowStayEnclosed) {
  EXPECT_EQ(I(most) + I(most), I(most, inf));
  EXPECT_EQ(I(-most) - I(most), I(-inf, -most));
  EXPECT_EQ(I(most) * I(2), I(most, inf));
  EXPECT_EQ(I(most) / I(0.5), I(most, inf));
  EXPECT_EQ(I(tiny) * I(tiny), I(0.0, tiny));
  EXPECT_EQ(I(tiny) * I(-tiny), I(-tiny, 0.0));
  EXPECT_EQ(I(tiny) / I(most), I(0.0, tiny));
  EXPECT_EQ(I(tiny) + I(tiny), I(2 * tiny)) << "sums of subnormals are exact";
  // 3 tiny / 2 is not a double and its product form has no representable error
  const I half = I(3 * tiny) * I(0.5);
  EXPECT_LE(half.lo(), tiny);
  EXPECT_GE(half.hi(), 2 * tiny);
  const I quotient = I(3 * tiny) / I(2);
  EXPECT_LE(quotient.lo(), tiny);
  EXPECT_GE(quotient.hi(), 2 * tiny);
}

TEST(Interval, UnboundedOperandsBehaveAsSetsOfNumbers) {
  EXPECT_EQ(I(0) * I::whole(), I(0));
  EXPECT_EQ(I(0.0, 1.0) * I(1.0, inf), I(0.0, inf));
  EXPECT_EQ(I(-1.0, 1.0) * I(1.0, inf), I::whole());
  EXPECT_EQ(I(1.0, inf) / I(1.0, inf), I(0.0, inf));
  EXPECT_EQ(I(1) / I(2.0, inf), I(0.0, 0.5));
  EXPECT_EQ(I(1.0, inf) - I(1.0, inf), I::whole());
  EXPECT_EQ(I(inf) - I(inf), I::whole());
  EXPECT_EQ(I(1) / I(0), I::whole());
  EXPECT_EQ(I(1) / I(0.0, 1.0), I::whole());
  EXPECT_EQ(I(1) / I(-1.0, 1.0), I::whole());
}

TEST(Interval, NanStaysNanAndContainsNothing) {
  const I nan = I::nan();
  EXPECT_TRUE(is_nan(nan));
  for (const I& x : {nan + 1,
                     1 - nan,
                     nan * 0,
                     0 / nan,
                     nan / 0,
                     -nan,
                     abs(nan),
                     exp(nan),
                     log(nan),
                     sqrt(nan),
                     pow(nan, I(0)),
                     hull(nan, I(1)),
                     scalar_max(nan, I(1)),
                     scalar_max(I(1), nan),
                     sign_of(nan),
                     I(1.0, std::nan(""))}) {
    EXPECT_TRUE(is_nan(x)) << x;
  }
  EXPECT_FALSE(nan.contains(0.0));
  EXPECT_FALSE(nan.contains(Rational(0)));
  EXPECT_FALSE(intersects(nan, I::whole()));
  EXPECT_FALSE(nan < I(1));
  EXPECT_FALSE(nan <= I(1));
  EXPECT_TRUE(beats(nan, I(1)));
  EXPECT_FALSE(beats(I(1), nan));
  EXPECT_TRUE(std::isnan(nan.width()));
  EXPECT_TRUE(std::isnan(nan.mid()));
}

TEST(Interval, AnUncertainOrderIsAnErrorAndACertainOneIsNot) {
  const auto ambiguous = [](auto f) { return code_of(f) == ErrorCode::ambiguous_comparison; };
  EXPECT_TRUE(I(1.0, 2.0) < I(3.0, 4.0));
  EXPECT_FALSE(I(3.0, 4.0) < I(1.0, 3.0)) << "touching: 3 < 3 is false for certain";
  EXPECT_FALSE(I(1) < I(1));
  EXPECT_TRUE(I(1) <= I(1));
  EXPECT_TRUE(I(1.0, 2.0) <= I(2.0, 3.0));
  EXPECT_TRUE(I(2.0, 3.0) >= I(1.0, 2.0));
  EXPECT_TRUE(I(3) > I(2));
  EXPECT_TRUE(ambiguous([] { return I(1.0, 2.0) < I(2.0, 3.0); }));
  EXPECT_TRUE(ambiguous([] { return I(1.0, 2.0) < I(1.0, 2.0); }));
  EXPECT_TRUE(ambiguous([] { return I(2.0, 3.0) <= I(1.0, 2.0); }));
  EXPECT_TRUE(ambiguous([] { return beats(I(1.0, 3.0), I(2)); }));
  EXPECT_FALSE(beats(I(1), I(1)));
  EXPECT_TRUE(beats(I(2.0, 3.0), I(0.0, 1.0)));
  EXPECT_FALSE(beats(I(0.0, 1.0), I(1.0, 3.0)));
  EXPECT_EQ(scalar_max(I(1.0, 3.0), I(2)), I(2.0, 3.0)) << "the maximum itself is never ambiguous";
}

TEST(Interval, AbsoluteValueAndSignEncloseAcrossZero) {
  EXPECT_EQ(scalar_abs(I(-3.0, 2.0)), I(0.0, 3.0));
  EXPECT_EQ(scalar_abs(I(-3.0, -2.0)), I(2.0, 3.0));
  EXPECT_EQ(sign_of(I(-3.0, 2.0)), I(-1.0, 1.0));
  EXPECT_EQ(sign_of(I(0.0, 2.0)), I(0.0, 1.0));
  EXPECT_EQ(sign_of(I(-2)), I(-1));
}

TEST(Interval, QueriesAreExact) {
  EXPECT_TRUE(I(0.1).contains(0.1));
  EXPECT_FALSE(I(0.1).contains(Rational(1, 10)));
  EXPECT_TRUE((I(1) / I(10)).contains(Rational(1, 10)));
  EXPECT_TRUE(I::whole().contains(Rational(1, 3)));
  EXPECT_GE((I(1.0, 1.0 + 0x1p-52)).width(), 0x1p-52);
  EXPECT_EQ(I::whole().width(), inf);
  EXPECT_EQ(I(-most, most).width(), inf);
  EXPECT_GT(I(-tiny, 1.0).width(), 1.0) << "the width is rounded up";
  EXPECT_EQ(I::whole().mid(), 0.0);
  EXPECT_EQ(I(most, most).mid(), most);
  EXPECT_EQ(I(inf).mid(), inf);
  EXPECT_TRUE(I(1.0, inf).contains(I(1.0, inf).mid()));
  EXPECT_EQ(I(1.0, 4.0).mid(), 2.5);
  EXPECT_EQ(hull(I(1), I(3)), I(1.0, 3.0));
  EXPECT_TRUE(intersects(I(1.0, 2.0), I(2.0, 3.0)));
  EXPECT_FALSE(intersects(I(1.0, 2.0), I(2.5, 3.0)));
}

TEST(Interval, ReversedBoundsAreAnError) {
  EXPECT_EQ(code_of([] { return I(2.0, 1.0); }), ErrorCode::invalid_option);
}

TEST(Interval, IntegersThatFloatCannotHoldAreEnclosed) {
  const Interval<float> x = 16777217;
  EXPECT_EQ(x, Interval<float>(16777216.0f, 16777218.0f));
}

}  // namespace
}  // namespace fenestra

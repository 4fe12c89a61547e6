// The concepts and the functions of scalar.hpp, on built-in numbers and on number types defined
// here.
#include <fenestra/spec/dual.hpp>
#include <fenestra/spec/interval.hpp>
#include <fenestra/spec/rational.hpp>
#include <fenestra/spec/scalar.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

namespace fenestra {
namespace {

/// Integers modulo 7: the least a user can write. No order, no NaN, no floating point.
class Mod7 {
 public:
  explicit Mod7(int n) : n_(((n % 7) + 7) % 7) {}
  friend Mod7 operator+(Mod7 a, Mod7 b) { return Mod7(a.n_ + b.n_); }
  friend Mod7 operator-(Mod7 a, Mod7 b) { return Mod7(a.n_ - b.n_); }
  friend Mod7 operator-(Mod7 a) { return Mod7(-a.n_); }
  friend Mod7 operator*(Mod7 a, Mod7 b) { return Mod7(a.n_ * b.n_); }
  friend bool operator==(Mod7 a, Mod7 b) { return a.n_ == b.n_; }

 private:
  int n_;
};

/// A user's number in the user's namespace, with every optional operation.
namespace user {
struct Real {
  double v;
  Real(double x) : v(x) {}
  friend Real operator+(Real a, Real b) { return a.v + b.v; }
  friend Real operator-(Real a, Real b) { return a.v - b.v; }
  friend Real operator-(Real a) { return -a.v; }
  friend Real operator*(Real a, Real b) { return a.v * b.v; }
  friend Real operator/(Real a, Real b) { return a.v / b.v; }
  friend bool operator==(Real a, Real b) { return a.v == b.v; }
  friend bool operator<(Real a, Real b) { return a.v < b.v; }
  friend Real exp(Real a) { return std::exp(a.v); }
  friend Real log(Real a) { return std::log(a.v); }
  friend Real pow(Real a, Real b) { return std::pow(a.v, b.v); }
};
}  // namespace user

static_assert(Scalar<Mod7> && !Field<Mod7> && !OrderedScalar<Mod7> && !Transcendental<Mod7>);
static_assert(Transcendental<user::Real> && OrderedScalar<user::Real>);
static_assert(Transcendental<float> && Transcendental<double> && Transcendental<long double>);
static_assert(OrderedScalar<int> && !Field<int> && !Transcendental<int>);
static_assert(Field<Rational> && OrderedScalar<Rational> && !Transcendental<Rational>);
static_assert(Transcendental<Interval<float>> && OrderedScalar<Interval<long double>>);
static_assert(Transcendental<Dual<Dual<Interval<double>>>>);
static_assert(Field<Dual<Dual<Rational>>> && !Transcendental<Dual<Rational>>);
static_assert(Scalar<Dual<Mod7>> && !Field<Dual<Mod7>> && !OrderedScalar<Dual<Mod7>>);
static_assert(Transcendental<Dual<user::Real>> && OrderedScalar<Dual<user::Real>>);
static_assert(!Field<Dual<int>>);

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

template <class T>
T dot(const std::vector<T>& a, const std::vector<T>& b) {
  T sum = T(0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum = sum + a[i] * b[i];
  }
  return sum;
}

TEST(Scalar, AUserTypeWithRingOperationsRunsADefinition) {
  const std::vector<Mod7> a = {Mod7(3), Mod7(5)};
  EXPECT_TRUE(dot(a, a) == Mod7(34));
  EXPECT_FALSE(dot(a, a) == Mod7(35));
  EXPECT_TRUE(a[0] - a[1] == a[0] + (-a[1]));
  EXPECT_FALSE(is_nan(a[0]));
}

TEST(Scalar, AUserTypeWithDivisionRunsADefinitionThatDivides) {
  const auto variance = []<Field T>(const T& a, const T& b) {
    const T mean = (a + b) / T(2);
    return (a - mean) * (a - mean) + (b - mean) * (b - mean);
  };
  EXPECT_EQ(variance(user::Real(1), user::Real(4)).v, 4.5);
  EXPECT_EQ(variance(Rational(1), Rational(4)), Rational(9, 2));
}

TEST(Scalar, ACountConvertsExactlyThroughIntAlone) {
  const Index cases[] = {0, 1, -1, 6, 1LL << 40, -(1LL << 40) - 3, INT64_MAX, INT64_MIN};
  for (const Index n : cases) {
    EXPECT_TRUE(from_index<Mod7>(n) == Mod7(static_cast<int>(n % 7))) << n;
  }
}

TEST(Scalar, ACountConvertsExactlyToEveryNumberThatHoldsIt) {
  const Index n = (1LL << 53) - 1;
  EXPECT_EQ(from_index<double>(n), 9007199254740991.0);
  EXPECT_EQ(from_index<int>(12), 12);
  EXPECT_EQ(from_index<Rational>(INT64_MIN), Rational(INT64_MIN));
  EXPECT_EQ(from_index<Interval<double>>(n), Interval<double>(9007199254740991.0));
  EXPECT_EQ(from_index<user::Real>(n).v, 9007199254740991.0);
  using Dual2 = Dual<Dual<Rational>>;
  EXPECT_TRUE(identical(from_index<Dual2>(n), Dual2(Dual<Rational>(Rational(n)))));
}

TEST(Scalar, AnIntervalEnclosesACountThatItCannotHold) {
  for (const Index n : {INT64_MAX, INT64_MIN + 1, (Index{1} << 53) + 1, Index{16777217}}) {
    const auto narrow = from_index<Interval<float>>(n);
    EXPECT_TRUE(narrow.contains(Rational(n))) << n;
    EXPECT_LT(narrow.lo(), narrow.hi()) << n;
    EXPECT_TRUE(from_index<Interval<double>>(n).contains(Rational(n))) << n;
  }
}

TEST(Scalar, ADoubleConvertsExactlyOrNotAtAll) {
  EXPECT_EQ(from_double<Rational>(-0.375), Rational(-3, 8));
  EXPECT_EQ(from_double<user::Real>(0.1).v, 0.1);
  EXPECT_EQ(from_double<float>(0.5), 0.5f);
  EXPECT_EQ(from_double<int>(-3.0), -3);
  EXPECT_TRUE(from_double<Mod7>(-10.0) == Mod7(-10));
  EXPECT_TRUE(from_double<Mod7>(std::ldexp(1.0, 100)) == Mod7(2));  // 2^3 = 1, 100 = 1 modulo 3
  EXPECT_TRUE(identical(from_double<Dual<Rational>>(0.25), Dual<Rational>(Rational(1, 4))));
  EXPECT_THROW(from_double<Mod7>(0.5), Error);
  EXPECT_THROW(from_double<Mod7>(nan), Error);
  EXPECT_THROW(from_double<int>(0.5), Error);
  EXPECT_THROW(from_double<int>(2147483648.0), Error);
  EXPECT_THROW(from_double<Rational>(1e300), Error);
  EXPECT_EQ(from_double<int>(-2147483648.0), INT32_MIN);
}

TEST(Scalar, AnIntervalOfFloatEnclosesADoubleTightly) {
  const auto tenth = from_double<Interval<float>>(0.1);
  EXPECT_LE(static_cast<double>(tenth.lo()), 0.1);
  EXPECT_GE(static_cast<double>(tenth.hi()), 0.1);
  EXPECT_EQ(std::nextafter(tenth.lo(), 1.0f), tenth.hi());
  EXPECT_EQ(from_double<Interval<float>>(0.5), Interval<float>(0.5f));
  EXPECT_EQ(from_double<Interval<double>>(0.1), Interval<double>(0.1));
}

TEST(Scalar, ADoubleIsTheSumOfItsDyadicParts) {
  for (const double x : {0.1, -3.0, 1e300, 5e-324, 2.2250738585072014e-308, 0.0}) {
    const detail::Dyadic d = detail::to_dyadic(x);
    const double size = std::ldexp(static_cast<double>(d.mantissa), d.exponent);
    EXPECT_EQ(d.negative ? -size : size, x);
    EXPECT_TRUE(d.mantissa == 0 || d.mantissa % 2 == 1);
    const detail::Dyadic wide = detail::to_dyadic(static_cast<long double>(x));
    EXPECT_EQ(wide.mantissa, d.mantissa);
    EXPECT_EQ(wide.exponent, d.exponent);
    EXPECT_EQ(wide.negative, d.negative);
  }
}

TEST(Scalar, NanBeatsEveryNumberAndTheFirstWinsTies) {
  EXPECT_TRUE(beats(2.0, 1.0));
  EXPECT_FALSE(beats(1.0, 1.0));
  EXPECT_FALSE(beats(1.0, 2.0));
  EXPECT_TRUE(beats(nan, inf));
  EXPECT_FALSE(beats(inf, nan));
  EXPECT_FALSE(beats(nan, nan));
  EXPECT_FALSE(beats(-inf, -inf));
  EXPECT_TRUE(std::isnan(scalar_max(1.0, nan)));
  EXPECT_TRUE(std::isnan(scalar_max(nan, 1.0)));
  EXPECT_EQ(scalar_max(-inf, 3.0), 3.0);
  EXPECT_EQ(scalar_max(Rational(1, 3), Rational(1, 2)), Rational(1, 2));
}

TEST(Scalar, TheFirstOfTwoEqualDualsIsTheMaximum) {
  const Dual<double> a(1.0, 10.0);
  const Dual<double> b(1.0, 20.0);
  EXPECT_TRUE(identical(scalar_max(a, b), a));
  EXPECT_TRUE(identical(scalar_max(b, a), b));
  EXPECT_TRUE(beats(Dual<double>(nan, 1.0), a));
  EXPECT_FALSE(beats(Dual<double>(0.0, nan), a)) << "a NaN tangent is not a NaN";
}

TEST(Scalar, AbsoluteValueAndSignAgreeWithTheOrder) {
  EXPECT_EQ(scalar_abs(-2.5), 2.5);
  EXPECT_FALSE(std::signbit(scalar_abs(-0.0)));
  EXPECT_EQ(scalar_abs(Rational(-2, 3)), Rational(2, 3));
  EXPECT_EQ(sign_of(-2.5), -1.0);
  EXPECT_EQ(sign_of(-0.0), 0.0);
  EXPECT_EQ(sign_of(inf), 1.0);
  EXPECT_TRUE(std::isnan(sign_of(nan)));
  EXPECT_EQ(sign_of(Rational(-2, 3)), Rational(-1));
  EXPECT_EQ(sign_of(user::Real(-4.0)).v, -1.0);
}

TEST(Scalar, FunctionsAreFoundInStdAndBesideTheType) {
  EXPECT_EQ(scalar_exp(1.5f), std::exp(1.5f));
  EXPECT_EQ(scalar_log(1.5), std::log(1.5));
  EXPECT_EQ(scalar_pow(1.5, 2.5), std::pow(1.5, 2.5));
  EXPECT_EQ(scalar_exp(user::Real(1.5)).v, std::exp(1.5));
  EXPECT_EQ(scalar_log(user::Real(1.5)).v, std::log(1.5));
  EXPECT_EQ(scalar_pow(user::Real(1.5), user::Real(2.5)).v, std::pow(1.5, 2.5));
  EXPECT_TRUE(scalar_exp(Interval<double>(1)).contains(std::numbers::e));
}

}  // namespace
}  // namespace fenestra

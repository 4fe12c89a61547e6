// GmpRational against Rational, and as the oracle for intervals over the whole range of doubles.
#include <fenestra/spec/dual.hpp>
#include <fenestra/spec/gmp_rational.hpp>
#include <fenestra/spec/interval.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>

namespace fenestra {
namespace {

static_assert(Field<GmpRational> && OrderedScalar<GmpRational> && !Transcendental<GmpRational>);
static_assert(Field<Dual<GmpRational>>);
static_assert(!std::is_convertible_v<double, GmpRational>);

constexpr double inf = std::numeric_limits<double>::infinity();

template <class F>
ErrorCode code_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::none;
}

/// One fixed computation for any field: the shape comes from the engine, the numbers are small
/// fractions.
template <class T>
T random_expression(std::mt19937_64& engine, int depth) {
  if (depth == 0) {
    std::uniform_int_distribution<int> number(-9, 9);
    const T num = T(number(engine));
    return num / T(std::uniform_int_distribution<int>(1, 9)(engine));
  }
  const T a = random_expression<T>(engine, depth - 1);
  const T b = random_expression<T>(engine, depth - 1);
  switch (std::uniform_int_distribution<int>(0, 4)(engine)) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return a < b ? -a : abs(b);
    default: return b == T(0) ? a : T(a / b);
  }
}

TEST(GmpRational, AgreesWithRationalOnRandomExpressions) {
  int agreed = 0;
  for (unsigned seed = 0; seed < 5000; ++seed) {
    std::mt19937_64 small(seed);
    std::mt19937_64 large(seed);
    const GmpRational big = random_expression<GmpRational>(large, 1 + static_cast<int>(seed % 4));
    try {
      const Rational exact = random_expression<Rational>(small, 1 + static_cast<int>(seed % 4));
      ASSERT_EQ(compare(big, exact), 0) << big << " " << exact;
      ASSERT_EQ(to_string(big), to_string(exact));
      ++agreed;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::overflow) << error.what();
    }
  }
  EXPECT_GT(agreed, 4000);
}

TEST(GmpRational, RationalOverflowsExactlyWhenTheReducedResultLeaves64Bits) {
  std::mt19937_64 engine(2);
  std::uniform_int_distribution<Index> any(std::numeric_limits<Index>::min(),
                                           std::numeric_limits<Index>::max());
  const auto part = [&] {
    return any(engine) >> std::uniform_int_distribution<int>(0, 60)(engine);
  };
  const auto fits = [](const GmpRational& x) {
    return x.value.get_num().fits_slong_p() && x.value.get_den().fits_slong_p();
  };
  int kept = 0;
  int thrown = 0;
  const auto check = [&](auto op, const Rational& a, const Rational& b) {
    const GmpRational exact = op(GmpRational(a), GmpRational(b));
    try {
      const Rational got = op(a, b);
      ASSERT_EQ(compare(exact, got), 0) << a << " " << b;
      ++kept;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::overflow);
      ASSERT_FALSE(fits(exact)) << a << " " << b;
      ++thrown;
    }
  };
  for (int i = 0; i < 20000; ++i) {
    const Index a_den = part() | 1;
    const Index b_den = part() | 1;
    if (a_den == std::numeric_limits<Index>::min() || b_den == std::numeric_limits<Index>::min()) {
      continue;
    }
    const Rational a(part() | 1, a_den);
    const Rational b(part() | 1, b_den);
    check([](const auto& p, const auto& q) { return p + q; }, a, b);
    check([](const auto& p, const auto& q) { return p - q; }, a, b);
    check([](const auto& p, const auto& q) { return p * q; }, a, b);
    check([](const auto& p, const auto& q) { return p / q; }, a, b);
    EXPECT_EQ(compare(GmpRational(a), GmpRational(b)), a < b ? -1 : (b < a ? 1 : 0));
  }
  EXPECT_GT(kept, 5000);
  EXPECT_GT(thrown, 5000);
}

TEST(GmpRational, GoesBeyond64Bits) {
  GmpRational factorial = 1;
  for (int n = 2; n <= 30; ++n) {
    factorial *= n;
  }
  EXPECT_EQ(to_string(factorial), "265252859812191058636308480000000");
  EXPECT_EQ(factorial / factorial, GmpRational(1));
  GmpRational back = factorial;
  for (int n = 2; n <= 30; ++n) {
    back /= n;
  }
  EXPECT_EQ(back, GmpRational(1));
  EXPECT_EQ(to_string(GmpRational(1) / factorial), "1/265252859812191058636308480000000");
}

TEST(GmpRational, ConvertsExactlyFromIntegersAndDoubles) {
  EXPECT_EQ(from_index<GmpRational>(INT64_MIN), GmpRational(Rational(INT64_MIN)));
  EXPECT_EQ(to_string(GmpRational(std::numeric_limits<std::uint64_t>::max())),
            "18446744073709551615");
  EXPECT_EQ(from_double<GmpRational>(0.1), GmpRational(Rational::from_double(0.1)));
  for (const double x : {5e-324, -1e300, std::numeric_limits<double>::max(), 0.1, 0.0}) {
    EXPECT_EQ(from_double<GmpRational>(x).to_double(), x);
  }
  EXPECT_EQ(code_of([] { return from_double<GmpRational>(inf); }), ErrorCode::overflow);
  EXPECT_EQ(code_of([] { return from_double<GmpRational>(std::nan("")); }), ErrorCode::overflow);
}

TEST(GmpRational, DivisionByZeroIsAnError) {
  EXPECT_EQ(code_of([] { return GmpRational(1) / GmpRational(0); }), ErrorCode::division_by_zero);
}

TEST(GmpRational, OrdersAgainstRationalsAndDoubles) {
  EXPECT_EQ(compare(GmpRational(1), Rational(4, 3)), -1);
  EXPECT_EQ(compare(GmpRational(Rational(1, 10)), 0.1), -1);
  EXPECT_EQ(compare(GmpRational(5), inf), -1);
  EXPECT_EQ(compare(GmpRational(5), -inf), 1);
  EXPECT_EQ(code_of([] { return compare(GmpRational(5), std::nan("")); }),
            ErrorCode::ambiguous_comparison);
}

TEST(GmpRational, DerivativesAreExactBeyond64Bits) {
  // d/dx x^40 at 3 is 40 * 3^39
  const auto power = [](const auto& x) {
    auto y = x;
    for (int i = 1; i < 40; ++i) {
      y = y * x;
    }
    return y;
  };
  GmpRational expected = 40;
  for (int i = 0; i < 39; ++i) {
    expected *= 3;
  }
  EXPECT_EQ(derivative(power, GmpRational(3)), expected);
}

TEST(GmpRational, RationalComparesWithEveryBitPatternOfADouble) {
  std::mt19937_64 engine(12);
  for (int i = 0; i < 20000; ++i) {
    const auto num = static_cast<Index>(engine() >> (i % 64));
    const Rational a(i % 2 == 0 ? num : -(num / 2), static_cast<Index>(engine() >> 1) | 1);
    double x = std::bit_cast<double>(engine());
    if (i % 3 == 0) {
      x = a.to_double();
    }
    if (std::isfinite(x)) {
      ASSERT_EQ(compare(a, x), compare(GmpRational(a), x)) << a << " " << x;
      ASSERT_EQ(compare(a, static_cast<long double>(x)), compare(a, x)) << a << " " << x;
    }
  }
}

/// A double of any size: half of them uniform in their bits, half where results underflow or
/// overflow.
double wild(std::mt19937_64& engine) {
  for (;;) {
    const double x = std::bit_cast<double>(engine());
    if (!std::isfinite(x)) {
      continue;
    }
    const int kind = std::uniform_int_distribution<int>(0, 3)(engine);
    int ignored = 0;
    const double fraction = std::frexp(x, &ignored);
    switch (kind) {
      case 0: return std::ldexp(fraction, std::uniform_int_distribution<int>(-1074, -960)(engine));
      case 1: return std::ldexp(fraction, std::uniform_int_distribution<int>(-560, -480)(engine));
      case 2:
        return std::ldexp(std::round(fraction * 64),
                          std::uniform_int_distribution<int>(-545, 512)(engine));
      default: return x;
    }
  }
}

bool encloses(const Interval<double>& x, const GmpRational& exact) {
  return compare(exact, x.lo()) >= 0 && compare(exact, x.hi()) <= 0;
}

TEST(GmpRational, IntervalArithmeticEnclosesTightlyOverTheWholeRangeOfDoubles) {
  using I = Interval<double>;
  std::mt19937_64 engine(13);
  const auto steps_at_most = [](const I& x, int steps) {
    double up = x.lo();
    for (int i = 0; i < steps; ++i) {
      up = std::nextafter(up, inf);
    }
    return up >= x.hi();
  };
  for (int i = 0; i < 40000; ++i) {
    const double a = wild(engine);
    const double b = wild(engine);
    const GmpRational exact_a = GmpRational::from_double(a);
    const GmpRational exact_b = GmpRational::from_double(b);
    ASSERT_TRUE(encloses(I(a) + I(b), exact_a + exact_b)) << a << " " << b;
    ASSERT_TRUE(encloses(I(a) - I(b), exact_a - exact_b)) << a << " " << b;
    ASSERT_TRUE(encloses(I(a) * I(b), exact_a * exact_b)) << a << " " << b;
    ASSERT_TRUE(steps_at_most(I(a) + I(b), 1) && steps_at_most(I(a) * I(b), 2)) << a << " " << b;
    if (b != 0) {
      ASSERT_TRUE(encloses(I(a) / I(b), exact_a / exact_b)) << a << " " << b;
      ASSERT_TRUE(steps_at_most(I(a) / I(b), 2)) << a << " " << b;
    }
    const I root = sqrt(I(std::fabs(a)));
    const GmpRational low = GmpRational::from_double(root.lo());
    const GmpRational high = GmpRational::from_double(root.hi());
    ASSERT_TRUE(low * low <= abs(exact_a) && abs(exact_a) <= high * high) << a;
    ASSERT_TRUE(steps_at_most(root, 2)) << a;
  }
}

}  // namespace
}  // namespace fenestra

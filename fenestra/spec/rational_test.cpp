// Rational: field axioms, normal form, errors instead of wrong answers, and exact comparison with
// floating point.
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>

namespace fenestra {
namespace {

constexpr Index most = std::numeric_limits<Index>::max();
constexpr Index least = std::numeric_limits<Index>::min();
constexpr double inf = std::numeric_limits<double>::infinity();

static_assert(Rational(1, 3) + Rational(1, 6) == Rational(1, 2));
static_assert(Rational(2, 3) / Rational(-4, 9) == Rational(-3, 2));
static_assert(Rational::from_double(0.75) - 1 == Rational(-1, 4));
static_assert(compare(Rational(1, 10), 0.1) < 0);
static_assert(Rational(1, 3).to_double() == 1.0 / 3.0);
static_assert(!std::is_convertible_v<double, Rational> &&
              !std::is_constructible_v<Rational, double>);
static_assert(std::is_convertible_v<int, Rational> && std::is_convertible_v<Index, Rational>);

template <class F>
ErrorCode code_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::none;
}

class RandomRationals {
 public:
  Rational operator()() {
    std::uniform_int_distribution<Index> num(-1000, 1000);
    std::uniform_int_distribution<Index> den(1, 60);
    return {num(engine_), den(engine_)};
  }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_{20240611};
};

void expect_normal(const Rational& a) {
  EXPECT_GT(a.den(), 0);
  EXPECT_EQ(std::gcd(a.num(), a.den()), 1) << a;
}

TEST(Rational, SatisfiesTheFieldAxioms) {
  RandomRationals random;
  for (int i = 0; i < 5000; ++i) {
    const Rational a = random();
    const Rational b = random();
    const Rational c = random();
    EXPECT_EQ((a + b) + c, a + (b + c));
    EXPECT_EQ((a * b) * c, a * (b * c));
    EXPECT_EQ(a + b, b + a);
    EXPECT_EQ(a * b, b * a);
    EXPECT_EQ(a * (b + c), a * b + a * c);
    EXPECT_EQ(a + 0, a);
    EXPECT_EQ(a * 1, a);
    EXPECT_EQ(a + (-a), Rational(0));
    EXPECT_EQ(a - b, a + (-b));
    if (b != 0) {
      EXPECT_EQ(a / b * b, a);
      EXPECT_EQ(b / b, Rational(1));
    }
  }
}

TEST(Rational, OrderIsTotalAndCompatibleWithArithmetic) {
  RandomRationals random;
  for (int i = 0; i < 5000; ++i) {
    const Rational a = random();
    const Rational b = random();
    const Rational c = random();
    EXPECT_EQ((a < b) + (a == b) + (b < a), 1);
    EXPECT_EQ(a < b, a + c < b + c);
    EXPECT_EQ(a < b, Rational(0) < b - a);
    EXPECT_EQ(a <= b, !(b < a));
    EXPECT_EQ(abs(a) < 0, false);
    EXPECT_EQ(abs(a), a < 0 ? -a : a);
  }
}

TEST(Rational, EveryResultIsInNormalForm) {
  RandomRationals random;
  for (int i = 0; i < 5000; ++i) {
    const Rational a = random();
    const Rational b = random();
    expect_normal(a);
    expect_normal(a + b);
    expect_normal(a - b);
    expect_normal(a * b);
    if (b != 0) {
      expect_normal(a / b);
    }
  }
  EXPECT_EQ(Rational(6, -4).num(), -3);
  EXPECT_EQ(Rational(6, -4).den(), 2);
  EXPECT_EQ(Rational(0, -5).den(), 1);
  EXPECT_EQ(Rational(least, least), Rational(1));
  EXPECT_EQ(Rational(least, -2), Rational(Index{1} << 62));
  EXPECT_EQ(Rational(2, least), Rational(-1, Index{1} << 62));
}

TEST(Rational, ResultsAtTheEdgeOf64BitsAreExact) {
  EXPECT_EQ(Rational(most) - Rational(most - 1), Rational(1));
  EXPECT_EQ(Rational(least) + Rational(most), Rational(-1));
  EXPECT_EQ(Rational(-1) - Rational(least), Rational(most));
  EXPECT_EQ(Rational(least) / Rational(least), Rational(1));
  EXPECT_EQ(Rational(least) * Rational(1, 2), Rational(least / 2));
  EXPECT_EQ(Rational(most, 3) * Rational(3, most), Rational(1));
  EXPECT_EQ(Rational(1, most) + Rational(1, most), Rational(2, most));
  EXPECT_EQ(Rational(most - 1, most) + Rational(1, most), Rational(1));
  EXPECT_EQ(Rational(2) / Rational(least), Rational(-1, Index{1} << 62));
}

TEST(Rational, OverflowIsAnErrorThatNamesBothOperands) {
  const auto overflows = [](auto f) { return code_of(f) == ErrorCode::overflow; };
  EXPECT_TRUE(overflows([] { return Rational(most) + 1; }));
  EXPECT_TRUE(overflows([] { return Rational(least) - 1; }));
  EXPECT_TRUE(overflows([] { return Rational(0) - Rational(least); }));
  EXPECT_TRUE(overflows([] { return Rational(most) * 2; }));
  EXPECT_TRUE(overflows([] { return Rational(1, most) * Rational(1, 2); }));
  EXPECT_TRUE(overflows([] { return Rational(1, most) + Rational(1, most - 1); }));
  EXPECT_TRUE(overflows([] { return Rational(1, 3) / Rational(most); }));
  EXPECT_TRUE(overflows([] { return Rational(1) / Rational(least); }));
  EXPECT_TRUE(overflows([] { return -Rational(least); }));
  EXPECT_TRUE(overflows([] { return abs(Rational(least)); }));
  EXPECT_TRUE(overflows([] { return Rational(1, least); }));
  EXPECT_TRUE(overflows([] { return Rational(std::numeric_limits<std::uint64_t>::max()); }));
  try {
    static_cast<void>(Rational(most, 2) * Rational(5, 3));
    FAIL() << "no overflow";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("9223372036854775807/2"), std::string::npos) << text;
    EXPECT_NE(text.find("5/3"), std::string::npos) << text;
  }
}

TEST(Rational, DivisionByZeroIsAnError) {
  EXPECT_EQ(code_of([] { return Rational(1, 3) / 0; }), ErrorCode::division_by_zero);
  EXPECT_EQ(code_of([] { return Rational(1, 0); }), ErrorCode::division_by_zero);
  EXPECT_EQ(code_of([] { return Rational(0) / Rational(0); }), ErrorCode::division_by_zero);
}

TEST(Rational, FromDoubleKeepsTheValueOrThrows) {
  std::mt19937_64 engine(7);
  std::uniform_int_distribution<Index> mantissa(-(Index{1} << 53), Index{1} << 53);
  std::uniform_int_distribution<int> exponent(-62, 10);
  for (int i = 0; i < 5000; ++i) {
    const double x = std::ldexp(static_cast<double>(mantissa(engine)), exponent(engine));
    const Rational a = Rational::from_double(x);
    EXPECT_EQ(a.to_double(), x);
    EXPECT_EQ(compare(a, x), 0);
  }
  EXPECT_EQ(Rational::from_double(0.1), Rational(3602879701896397, Index{1} << 55));
  EXPECT_EQ(Rational::from_double(-0.0), Rational(0));
  EXPECT_EQ(Rational::from_double(-0x1p63), Rational(least));
  EXPECT_EQ(Rational::from_double(0x1p62), Rational(Index{1} << 62));
  for (const double x : {0x1p63, -0x1.8p63, 0x1p-63, 1e300, 5e-324, inf, -inf, std::nan("")}) {
    EXPECT_EQ(code_of([x] { return Rational::from_double(x); }), ErrorCode::overflow) << x;
  }
}

TEST(Rational, ToDoubleIsTheNearestDouble) {
  std::mt19937_64 engine(11);
  std::uniform_int_distribution<Index> any(1, most);
  for (int i = 0; i < 5000; ++i) {
    const Index scale = Index{1} << (i % 62);
    const Rational a(i % 2 == 0 ? any(engine) : -(any(engine) / scale), any(engine) / scale + 1);
    const double x = a.to_double();
    const double below = std::nextafter(x, -inf);
    const double above = std::nextafter(x, inf);
    // x is nearest exactly when a lies between the two midpoints; long double holds those.
    const long double low_mid = (static_cast<long double>(below) + x) / 2;
    const long double high_mid = (static_cast<long double>(above) + x) / 2;
    EXPECT_GE(compare(a, low_mid), 0) << a;
    EXPECT_LE(compare(a, high_mid), 0) << a;
  }
  EXPECT_EQ(Rational((Index{1} << 53) + 1).to_double(), 0x1p53) << "ties go to even";
  EXPECT_EQ(Rational((Index{1} << 53) + 3).to_double(), 0x1p53 + 4) << "ties go to even";
  EXPECT_EQ(Rational(least).to_double(), -0x1p63);
}

TEST(Rational, ComparisonWithADoubleIsExactForEveryDouble) {
  EXPECT_EQ(compare(Rational(1, 10), 0.1), -1) << "the double 0.1 is above one tenth";
  EXPECT_EQ(compare(Rational(-1, 10), -0.1), 1);
  EXPECT_EQ(compare(Rational(3, 10), 0.3), 1) << "the double 0.3 is below three tenths";
  EXPECT_EQ(compare(Rational(1, 10), 0.1f), -1);
  EXPECT_EQ(compare(Rational(1, 10), 0.1L), -1);
  EXPECT_EQ(compare(Rational(1, 2), 0.5), 0);
  EXPECT_EQ(compare(Rational(0), 0.0), 0);
  EXPECT_EQ(compare(Rational(0), -0.0), 0);
  EXPECT_EQ(compare(Rational(most), 1e300), -1);
  EXPECT_EQ(compare(Rational(least), -1e300), 1);
  EXPECT_EQ(compare(Rational(most), 0x1p63), -1) << "2^63 - 1 rounds to 2^63 but is below it";
  EXPECT_EQ(compare(Rational(least), -0x1p63), 0);
  EXPECT_EQ(compare(Rational(1, most), 5e-324), 1);
  EXPECT_EQ(compare(Rational(-1, most), -5e-324), -1);
  EXPECT_EQ(compare(Rational(0), 5e-324), -1);
  EXPECT_EQ(compare(Rational(0), -5e-324), 1);
  EXPECT_EQ(compare(Rational(1, most), 0x1p-63), 1) << "1/(2^63 - 1) rounds to 2^-63 but is above";
  EXPECT_EQ(compare(Rational(most), inf), -1);
  EXPECT_EQ(compare(Rational(most), -inf), 1);
  EXPECT_EQ(compare(Rational(most), std::numeric_limits<double>::max()), -1);
  EXPECT_EQ(code_of([] { return compare(Rational(0), std::nan("")); }),
            ErrorCode::ambiguous_comparison);
}

TEST(Rational, ComparisonWithADoubleAgreesWithTheOrderOfRationals) {
  RandomRationals random;
  std::uniform_int_distribution<int> steps(-2, 2);
  for (int i = 0; i < 5000; ++i) {
    const Rational a = random() * Rational(1, 8);
    double x = a.to_double();
    for (int step = steps(random.engine()), j = 0; j < std::abs(step); ++j) {
      x = std::nextafter(x, step < 0 ? -inf : inf);
    }
    if (std::fabs(x) < 0x1p-9 && x != 0) {
      continue;  // the neighbours of zero are not representable as Rational
    }
    const Rational b = Rational::from_double(x);
    EXPECT_EQ(compare(a, x), a < b ? -1 : (b < a ? 1 : 0)) << a << " " << x;
  }
}

TEST(Rational, PrintsAsAFraction) {
  EXPECT_EQ(to_string(Rational(3, 7)), "3/7");
  EXPECT_EQ(to_string(Rational(-6, 2)), "-3");
  std::ostringstream out;
  out << Rational(-1, 2);
  EXPECT_EQ(out.str(), "-1/2");
}

}  // namespace
}  // namespace fenestra

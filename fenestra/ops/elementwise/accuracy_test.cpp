// Elementwise functions of float and double against the same functions in long double, within the
// bounds that docs/kernels/elementwise.md states, on every instruction set; and the same bits
// wherever a number stands.
#include <fenestra/kernels/isa.hpp>
#include <fenestra/ops/elementwise/spec.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <vector>

namespace fenestra {
namespace {

using Real = long double;

/// erfc(-x/sqrt(2))/2; the rounding of the quotient is made good, or the tail would lose digits.
Real normal_cdf(Real x) {
  const Real inverse = std::numbers::sqrt2_v<Real> / 2;
  const Real z = -x * inverse;
  const Real error = std::fma(-x, inverse, -z);
  const Real slope = -2 / std::sqrt(std::numbers::pi_v<Real>) * std::exp(-z * z);
  return (std::erfc(z) + (std::isfinite(x) ? slope * error : 0)) / 2;
}

struct Case {
  UnaryCall call;
  double low;
  double high;
  double bound_f32;  ///< in units of the last place
  double bound_f64;
  Real (*reference)(Real);
};

const Case kCases[] = {
    {{UnaryFunction::exp}, -110, 90, 1.5, 1.5, [](Real x) { return std::exp(x); }},
    {{UnaryFunction::exp}, -750, 711, 1.5, 1.5, [](Real x) { return std::exp(x); }},
    {{UnaryFunction::log}, 0, 4, 1.5, 1.5, [](Real x) { return std::log(x); }},
    {{UnaryFunction::log}, 0, 1e30, 1.5, 1.5, [](Real x) { return std::log(x); }},
    {{UnaryFunction::sqrt}, 0, 1e9, 0.5, 0.5, [](Real x) { return std::sqrt(x); }},
    {{UnaryFunction::sigmoid}, -110, 110, 2.5, 2.5, [](Real x) { return 1 / (1 + std::exp(-x)); }},
    {{UnaryFunction::silu}, -87, 110, 3, 3, [](Real x) { return x / (1 + std::exp(-x)); }},
    {{UnaryFunction::tanh}, -20, 20, 3, 3, [](Real x) { return std::tanh(x); }},
    {{UnaryFunction::softplus},
     -110,
     110,
     3,
     3,
     [](Real x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }},
    {{UnaryFunction::normal_cdf}, -16, 16, 5, 5, normal_cdf},
    {{UnaryFunction::normal_cdf}, -40, 10, 5, 5, normal_cdf},
    {{UnaryFunction::gelu}, -12, 16, 5, 5, [](Real x) { return x * normal_cdf(x); }},
    {{UnaryFunction::erf}, -7, 7, 1.5, 1.5, [](Real x) { return std::erf(x); }},
    {{UnaryFunction::erf}, -1.2, 1.2, 1.5, 1.5, [](Real x) { return std::erf(x); }},
    {{UnaryFunction::sin}, -4, 4, 2, 2, [](Real x) { return std::sin(x); }},
    {{UnaryFunction::sin}, -2e6, 2e6, 2, 2, [](Real x) { return std::sin(x); }},
    {{UnaryFunction::cos}, -4, 4, 2, 2, [](Real x) { return std::cos(x); }},
    {{UnaryFunction::cos}, -2e6, 2e6, 2, 2, [](Real x) { return std::cos(x); }},
    {{UnaryFunction::elu, 1}, -45, 2, 2, 2, [](Real x) { return x > 0 ? x : std::expm1(x); }},
    {{UnaryFunction::power, 1.5}, 0, 1e20, 1.5, 1.5, [](Real x) { return std::pow(x, 1.5L); }},
    {{UnaryFunction::power, -0.75}, 0, 4, 1.5, 1.5, [](Real x) { return std::pow(x, -0.75L); }},
    {{UnaryFunction::power, 8}, -40, 40, 4, 4, [](Real x) { return std::pow(x, 8.0L); }},
    {{UnaryFunction::hard_sigmoid}, -4, 4, 2, 2, [](Real x) {
       return std::clamp<Real>((x + 3) / 6, 0, 1);
     }}};

/// The distance between neighbours of T at `value`.
template <class T>
Real unit(Real value) {
  using Limits = std::numeric_limits<T>;
  const int exponent = std::max(std::ilogb(value), Limits::min_exponent - 1);
  return std::ldexp(Real(1), exponent - (Limits::digits - 1));
}

/// |got - expected| in units of the last place; what lies beyond the largest number is infinite.
template <class T>
double error(T got, Real expected) {
  const Real largest = std::numeric_limits<T>::max();
  if (std::isnan(expected)) {
    return std::isnan(got) ? 0 : INFINITY;
  }
  if (std::isinf(got) || std::isinf(expected)) {
    const bool same_side = std::signbit(got) == std::signbit(expected);
    return same_side && std::fabs(expected) >= largest && std::fabs(got) >= T(largest) ? 0
                                                                                       : INFINITY;
  }
  return static_cast<double>(
      std::fabs(got - expected) /
      (expected == 0 ? unit<T>(0.0L + std::numeric_limits<T>::min()) : unit<T>(expected)));
}

template <class T>
T random_number(std::mt19937_64& random, double low, double high) {
  if (random() % 2 == 0) {
    return static_cast<T>(low + (high - low) * std::generate_canonical<double, 53>(random));
  }
  // Small numbers of every size.
  const double size = std::ldexp(1 + std::generate_canonical<double, 53>(random),
                                 -static_cast<int>(random() % (sizeof(T) == 4 ? 150 : 1074)));
  return static_cast<T>(random() % 2 == 0 && low < 0 ? -size : size);
}

/// Numbers at which something may go wrong.
template <class T>
std::vector<T> special_numbers() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> x;
  for (const T v : {T(0),
                    Limits::denorm_min(),
                    Limits::min() / 2,
                    Limits::min(),
                    Limits::epsilon(),
                    T(1),
                    T(2.5),
                    T(3),
                    T(0x1p20),
                    T(1e22),
                    Limits::max(),
                    Limits::infinity()}) {
    x.push_back(v);
    x.push_back(-v);
  }
  x.push_back(Limits::quiet_NaN());
  // As near to multiples of pi/2 as T allows.
  for (const int k : {1, 2, 3, 11, 710, 52174, 573204, 667543, 1048575, 5000001}) {
    x.push_back(static_cast<T>(k * (std::numbers::pi_v<Real> / 2)));
  }
  return x;
}

/// The same number with the same sign, or both NaN.
template <class T>
bool is_same(T got, T expected) {
  return std::isnan(expected) ? std::isnan(got)
                              : got == expected && std::signbit(got) == std::signbit(expected);
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
void expect_bounds(std::mt19937_64& random) {
  for (const Case& c : kCases) {
    std::vector<T> x;
    for (int i = 0; i < 6000; ++i) {
      x.push_back(random_number<T>(random, c.low, c.high));
    }
    std::vector<Real> expected;
    for (const T v : x) {
      expected.push_back(c.reference(v));
    }
    const double bound = sizeof(T) == 4 ? c.bound_f32 : c.bound_f64;
    for (const std::string_view isa : kernels::supported_isas()) {
      const kernels::ScopedIsa scope(isa);
      std::vector<T> y(x.size());
      unary_kernel(c.call, x.data(), y.data(), static_cast<Index>(x.size()));
      double worst = 0;
      T at = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (const double e = error(y[i], expected[i]); !(e <= worst)) {
          worst = e;
          at = x[i];
        }
      }
      EXPECT_LE(worst, bound) << function_name(c.call.f) << " on " << isa << ", f" << sizeof(T) * 8
                              << ", at x = " << std::hexfloat << at;
    }
  }
}

TEST(ElementwiseAccuracy, FunctionsStayWithinTheirBoundsOnEveryInstructionSet) {
  std::mt19937_64 random(7);
  expect_bounds<float>(random);
  expect_bounds<double>(random);
}

// Of all functions; docs/kernels/elementwise.md.
constexpr double kWorstBound = 5;

/// What the C library says of special numbers: the same NaN, infinities and signs of zeros.
template <class T>
void expect_specials() {
  const std::vector<T> x = special_numbers<T>();
  for (const std::string_view isa : kernels::supported_isas()) {
    const kernels::ScopedIsa scope(isa);
    for (int f = 0; f <= static_cast<int>(UnaryFunction::stop_gradient); ++f) {
      UnaryCall call{static_cast<UnaryFunction>(f), 0.75, 2};
      std::vector<T> y(x.size());
      unary_kernel(call, x.data(), y.data(), static_cast<Index>(x.size()));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const T expected = spec::unary(call, x[i]);
        const bool exact = std::isnan(expected) || std::isinf(expected) || expected == T(0);
        const double off = exact ? 0 : error(y[i], spec::unary(call, static_cast<Real>(x[i])));
        EXPECT_TRUE(
            off <= kWorstBound && std::isnan(y[i]) == std::isnan(expected) &&
            (std::isnan(expected) || !exact ||
             (y[i] == expected && (call.f == UnaryFunction::ceil || call.f == UnaryFunction::abs ||
                                   std::signbit(y[i]) == std::signbit(expected)))))
            << function_name(call.f) << "(" << x[i] << ") = " << y[i] << ", expected " << expected
            << " on " << isa << ", f" << sizeof(T) * 8;
      }
    }
  }
}

TEST(ElementwiseAccuracy, SpecialNumbersGiveWhatTheCLibraryGives) {
  expect_specials<float>();
  expect_specials<double>();
}

/// Runs of 1 to 40 numbers, which end anywhere in a vector, against one long run.
template <class T>
void expect_same_bits_at_tails(std::mt19937_64& random) {
  std::vector<T> a;
  std::vector<T> b;
  for (int i = 0; i < 300; ++i) {
    a.push_back(random_number<T>(random, -9, 9));
    b.push_back(random_number<T>(random, -9, 9));
  }
  const auto n = static_cast<Index>(a.size());
  for (const std::string_view isa : kernels::supported_isas()) {
    const kernels::ScopedIsa scope(isa);
    const auto expect_same = [&](const auto& run, std::string_view name) {
      std::vector<T> whole(a.size());
      run(0, n, whole.data());
      for (Index length = 1; length <= 40; ++length) {
        const Index at = length * 5 % 37;
        std::vector<T> part(static_cast<std::size_t>(length));
        run(at, length, part.data());
        const std::vector<T> same(whole.begin() + at, whole.begin() + at + length);
        EXPECT_TRUE(same_bits(part, same)) << name << ", " << length << " numbers, " << isa;
      }
    };
    for (int f = 0; f <= static_cast<int>(UnaryFunction::stop_gradient); ++f) {
      const UnaryCall call{static_cast<UnaryFunction>(f), 0.75, 2};
      expect_same(
          [&](Index i, Index length, T* to) { unary_kernel(call, a.data() + i, to, length); },
          function_name(call.f));
    }
    for (int f = 0; f <= static_cast<int>(BinaryFunction::equal); ++f) {
      const auto function = static_cast<BinaryFunction>(f);
      expect_same(
          [&](Index i, Index length, T* to) {
            const BroadcastLoop<2> loop(Shape{length}, {Shape{length}, Shape{length}});
            binary_kernel(function, a.data() + i, b.data() + i, to, loop);
          },
          function_name(function));
    }
    expect_same(
        [&](Index i, Index length, T* to) {
          gate_kernel({-1, 2, 0.5, true}, a.data() + i, b.data() + i, to, length);
        },
        "gate");
  }
}

TEST(ElementwiseAccuracy, BitsAreTheSameAtEveryEndOfARun) {
  std::mt19937_64 random(8);
  expect_same_bits_at_tails<float>(random);
  expect_same_bits_at_tails<double>(random);
}

/// Runs f on pairs, every instruction set.
template <class T, class Judge>
void for_each_result(BinaryFunction f,
                     const std::vector<T>& a,
                     const std::vector<T>& b,
                     const Judge& judge) {
  const Shape shape{static_cast<Index>(a.size())};
  for (const std::string_view isa : kernels::supported_isas()) {
    const kernels::ScopedIsa scope(isa);
    std::vector<T> y(a.size());
    binary_kernel(f, a.data(), b.data(), y.data(), BroadcastLoop<2>(shape, {shape, shape}));
    for (std::size_t i = 0; i < a.size(); ++i) {
      judge(a[i], b[i], y[i], isa);
    }
  }
}

template <class T>
void expect_powers(std::mt19937_64& random) {
  std::vector<T> a;
  std::vector<T> b;
  for (int i = 0; i < 8000; ++i) {
    a.push_back(i % 2 == 0 ? random_number<T>(random, 0, 50)
                           : static_cast<T>(1 + random_number<double>(random, -0.01, 0.01)));
    b.push_back(random_number<T>(random, -300, 300));
  }
  for (const T v : special_numbers<T>()) {
    for (const T w : special_numbers<T>()) {
      a.push_back(v);
      b.push_back(w);
    }
  }
  for_each_result<T>(BinaryFunction::pow, a, b, [&](T p, T q, T y, std::string_view isa) {
    const double e = error(y, std::pow(static_cast<Real>(p), static_cast<Real>(q)));
    EXPECT_LE(e, 1.5) << "pow(" << p << ", " << q << ") = " << y << " on " << isa << ", f"
                      << sizeof(T) * 8;
  });
}

TEST(ElementwiseAccuracy, PowersStayWithinOneUnitAndAHalf) {
  std::mt19937_64 random(9);
  expect_powers<float>(random);
  expect_powers<double>(random);
}

/// Remainders are exact until b is added to one of the other sign, which rounds once.
template <class T>
void expect_remainders(std::mt19937_64& random) {
  std::vector<T> a;
  std::vector<T> b;
  for (int i = 0; i < 6000; ++i) {
    const T divisor = random_number<T>(random, -50, 50);
    b.push_back(divisor);
    // Near multiples, where a quotient rounds up to an integer.
    const T factor = static_cast<T>(static_cast<int>(random() % 2000) - 1000);
    a.push_back(i % 2 == 0 ? random_number<T>(random, -1e6, 1e6)
                           : std::nextafter(factor * divisor, T(0)));
  }
  for (const T v : special_numbers<T>()) {
    for (const T w : special_numbers<T>()) {
      a.push_back(v);
      b.push_back(w);
    }
  }
  for_each_result<T>(BinaryFunction::mod, a, b, [&](T p, T q, T y, std::string_view isa) {
    T expected = std::fmod(p, q);
    if (expected != T(0) && std::signbit(expected) != std::signbit(q)) {
      expected += q;
    } else if (expected == T(0)) {
      expected = std::copysign(T(0), q);
    }
    const bool same = is_same(y, expected);
    EXPECT_TRUE(same) << p << " mod " << q << " = " << y << ", expected " << expected << " on "
                      << isa;
  });
  for_each_result<T>(BinaryFunction::floor_divide, a, b, [&](T p, T q, T y, std::string_view isa) {
    // A quotient of two numbers keeps a distance from integers that long double sees. A large one
    // may be that of the specification, which rounds a product first.
    const Real quotient = static_cast<Real>(p) / static_cast<Real>(q);
    const T exact = std::copysign(static_cast<T>(std::floor(quotient)), p / q);
    const T plain = spec::binary(BinaryFunction::floor_divide, p, q);
    const bool same = std::fabs(quotient) < 0x1p20 && std::isfinite(q)
                          ? is_same(y, exact)
                          : is_same(y, plain) || is_same(y, exact);
    EXPECT_TRUE(same) << p << " // " << q << " = " << y << ", expected " << exact << " on " << isa;
  });
}

TEST(ElementwiseAccuracy, RemaindersAreExact) {
  std::mt19937_64 random(10);
  expect_remainders<float>(random);
  expect_remainders<double>(random);
}

template <class T>
void expect_extremes() {
  const std::vector<T> x = special_numbers<T>();
  std::vector<T> a;
  std::vector<T> b;
  for (const T v : x) {
    for (const T w : x) {
      a.push_back(v);
      b.push_back(w);
    }
  }
  for (const BinaryFunction f : {BinaryFunction::min, BinaryFunction::max}) {
    for_each_result<T>(f, a, b, [&](T p, T q, T y, std::string_view isa) {
      const bool second = std::isnan(q) ? !std::isnan(p) : f == BinaryFunction::max ? p < q : q < p;
      const T expected = second ? q : p;
      const bool same = is_same(y, expected);
      EXPECT_TRUE(same) << function_name(f) << "(" << p << ", " << q << ") = " << y << " on "
                        << isa;
    });
  }
}

TEST(ElementwiseAccuracy, TheFirstOfEqualExtremesWinsAndNanWinsOverNumbers) {
  expect_extremes<float>();
  expect_extremes<double>();
}

}  // namespace
}  // namespace fenestra

// Exact rationals in 64 bits: either the right answer or an error, never a rounded one.
//
// Meant for specifications on small inputs, where "equal" can be tested as an equality. Not
// arbitrary precision: a result whose reduced numerator or denominator leaves 64 bits throws
// `ErrorCode::overflow` (GmpRational goes on).
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/spec/scalar.hpp>

#include <bit>
#include <cmath>
#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <numeric>
#include <ostream>
#include <string>
#include <type_traits>

namespace fenestra {

namespace detail {

// __extension__: a compiler type outside the standard, which -Wpedantic would otherwise point out.
__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

constexpr std::uint64_t magnitude(Index n) {
  return n < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
}

constexpr int bit_length(Uint128 n) {
  const auto high = static_cast<std::uint64_t>(n >> 64);
  return static_cast<int>(high != 0 ? 64 + std::bit_width(high)
                                    : std::bit_width(static_cast<std::uint64_t>(n)));
}

constexpr int three_way(Uint128 a, Uint128 b) { return a < b ? -1 : (b < a ? 1 : 0); }

}  // namespace detail

/// num / den. Invariant: den > 0, gcd(num, den) = 1, zero is 0/1; so equal numbers have equal
/// parts.
class Rational {
 public:
  constexpr Rational() = default;
  /// Any built-in integer. A template, so that no floating-point number is truncated on its way
  /// here.
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  constexpr Rational(I n) : num_(static_cast<Index>(n)) {
    if constexpr (std::is_unsigned_v<I> && sizeof(I) >= sizeof(Index)) {
      if (n > static_cast<I>(std::numeric_limits<Index>::max())) {
        throw_overflow(std::to_string(n));
      }
    }
  }
  constexpr Rational(Index num, Index den) : Rational(quotient(num, den)) {}

  constexpr Index num() const { return num_; }
  constexpr Index den() const { return den_; }

  /// The double itself, not a nearby fraction: 0.1 needs a denominator of 2^55.
  static constexpr Rational from_double(double x) {
    if (x - x == 0) {
      const detail::Dyadic d = detail::to_dyadic(x);
      if (d.exponent >= 0 && detail::bit_length(d.mantissa) + d.exponent <= 63) {
        const auto n = static_cast<Index>(d.mantissa << d.exponent);
        return Rational(d.negative ? -n : n);
      }
      if (d.exponent < 0 && d.exponent >= -62) {
        const auto n = static_cast<Index>(d.mantissa);
        return Rational(d.negative ? -n : n, Index{1} << -d.exponent);
      }
      if (d.negative && d.mantissa == 1 && d.exponent == 63) {
        return Rational(std::numeric_limits<Index>::min());
      }
    }
    throw_overflow("the double " + std::to_string(x));
  }

  /// The nearest double, ties to even.
  constexpr double to_double() const {
    if (num_ == 0) {
      return 0.0;
    }
    // A quotient of at least 55 bits whose last one also stands for any remainder rounds once, in
    // the conversion.
    const std::uint64_t n = detail::magnitude(num_);
    const auto d = static_cast<std::uint64_t>(den_);
    const int wanted = 56 + detail::bit_length(d) - detail::bit_length(n);
    const int shift = wanted > 0 ? wanted : 0;
    const detail::Uint128 scaled = detail::Uint128{n} << shift;
    const auto bits = static_cast<std::uint64_t>(scaled / d) | (scaled % d != 0 ? 1u : 0u);
    const double power = std::bit_cast<double>(static_cast<std::uint64_t>(1023 - shift) << 52);
    const double result = static_cast<double>(bits) * power;
    return num_ < 0 ? -result : result;
  }

  friend constexpr Rational operator+(const Rational& a, const Rational& b) {
    return sum(a, b.num_, b, " + ");
  }
  friend constexpr Rational operator-(const Rational& a, const Rational& b) {
    return sum(a, -detail::Int128{b.num_}, b, " - ");
  }
  friend constexpr Rational operator-(const Rational& a) {
    if (a.num_ == std::numeric_limits<Index>::min()) {
      throw_overflow("-(" + to_string(a) + ")");
    }
    return Rational(-a.num_, a.den_, Reduced{});
  }
  friend constexpr Rational operator*(const Rational& a, const Rational& b) {
    // Cancelled crosswise first, so the products are already reduced and overflow only if the
    // result does.
    const Index g = a.den_ == 1 && b.den_ == 1 ? 1 : common(a.num_, b.den_);
    const Index h = a.den_ == 1 && b.den_ == 1 ? 1 : common(b.num_, a.den_);
    Index num = 0;
    Index den = 1;
    if (__builtin_mul_overflow(a.num_ / g, b.num_ / h, &num) ||
        __builtin_mul_overflow(a.den_ / h, b.den_ / g, &den)) {
      throw_overflow(to_string(a) + " * " + to_string(b));
    }
    return Rational(num, den, Reduced{});
  }
  friend constexpr Rational operator/(const Rational& a, const Rational& b) {
    if (b.num_ == 0) {
      throw_division_by_zero(to_string(a));
    }
    if (a.num_ == 0) {
      return Rational();
    }
    const detail::Int128 g = std::gcd(detail::magnitude(a.num_), detail::magnitude(b.num_));
    const Index h = std::gcd(a.den_, b.den_);
    const detail::Int128 sign = b.num_ < 0 ? -1 : 1;
    const detail::Int128 num = sign * (a.num_ / g) * (b.den_ / h);
    const detail::Int128 den = sign * (b.num_ / g) * (a.den_ / h);
    if (!fits(num) || !fits(den)) {
      throw_overflow(to_string(a) + " / " + to_string(b));
    }
    return Rational(static_cast<Index>(num), static_cast<Index>(den), Reduced{});
  }

  constexpr Rational& operator+=(const Rational& b) { return *this = *this + b; }
  constexpr Rational& operator-=(const Rational& b) { return *this = *this - b; }
  constexpr Rational& operator*=(const Rational& b) { return *this = *this * b; }
  constexpr Rational& operator/=(const Rational& b) { return *this = *this / b; }

  friend constexpr bool operator==(const Rational&, const Rational&) = default;
  friend constexpr std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
    if (a.den_ == b.den_) {
      return a.num_ <=> b.num_;
    }
    const detail::Int128 left = detail::Int128{a.num_} * b.den_;
    const detail::Int128 right = detail::Int128{b.num_} * a.den_;
    return left < right   ? std::strong_ordering::less
           : right < left ? std::strong_ordering::greater
                          : std::strong_ordering::equal;
  }

  friend constexpr Rational abs(const Rational& a) { return a.num_ < 0 ? -a : a; }

  /// "3/7", or "3" when the denominator is 1.
  friend std::string to_string(const Rational& a) {
    std::string text = std::to_string(a.num_);
    if (a.den_ != 1) {
      text += '/';
      text += std::to_string(a.den_);
    }
    return text;
  }
  friend std::ostream& operator<<(std::ostream& out, const Rational& a) {
    return out << to_string(a);
  }

 private:
  struct Reduced {};  // marks parts that satisfy the invariant already

  constexpr Rational(Index num, Index den, Reduced) : num_(num), den_(den) {}

  static constexpr bool fits(detail::Int128 n) {
    return n >= std::numeric_limits<Index>::min() && n <= std::numeric_limits<Index>::max();
  }

  // gcd of a numerator with a denominator; the latter is positive, so it fits.
  static constexpr Index common(Index num, Index den) {
    return static_cast<Index>(std::gcd(detail::magnitude(num), static_cast<std::uint64_t>(den)));
  }

  static constexpr Rational quotient(Index num, Index den) {
    if (den == 0) {
      throw_division_by_zero(std::to_string(num));
    }
    if (num == 0) {
      return Rational();
    }
    const detail::Int128 g = std::gcd(detail::magnitude(num), detail::magnitude(den));
    const detail::Int128 n = (den < 0 ? -detail::Int128{num} : detail::Int128{num}) / g;
    const detail::Int128 d = (den < 0 ? -detail::Int128{den} : detail::Int128{den}) / g;
    if (!fits(n) || !fits(d)) {
      throw_overflow(std::to_string(num) + " / " + std::to_string(den));
    }
    return Rational(static_cast<Index>(n), static_cast<Index>(d), Reduced{});
  }

  // a + b_num / b.den(); `b` and `op` are there for the message. No intermediate passes 127 bits:
  // numerators are at most 2^63 in size and denominators below it. What the sum can still share
  // with the denominator divides g.
  static constexpr Rational sum(const Rational& a,
                                detail::Int128 b_num,
                                const Rational& b,
                                const char* op) {
    detail::Int128 num = 0;
    detail::Int128 den = 1;
    if (a.den_ == 1 && b.den_ == 1) {
      num = a.num_ + b_num;
    } else {
      const Index g = std::gcd(a.den_, b.den_);
      num = detail::Int128{a.num_} * (b.den_ / g) + b_num * (a.den_ / g);
      const Index h = common(static_cast<Index>(num % g), g);
      num /= h;
      den = detail::Int128{a.den_ / g} * (b.den_ / h);
    }
    if (!fits(num) || !fits(den)) {
      throw_overflow(to_string(a) + op + to_string(b));
    }
    return Rational(static_cast<Index>(num), static_cast<Index>(den), Reduced{});
  }

  [[noreturn]] static void throw_overflow(const std::string& what) {
    throw Error(ErrorCode::overflow,
                "rational: " + what +
                    " does not fit a fraction of two 64-bit integers; fix: smaller "
                    "inputs, or an arbitrary-precision scalar");
  }
  [[noreturn]] static void throw_division_by_zero(const std::string& dividend) {
    throw Error(ErrorCode::division_by_zero,
                "rational: " + dividend + " / 0 is not a number; fix: a divisor other than 0");
  }

  Index num_ = 0;
  Index den_ = 1;
};

/// -1, 0 or +1 as a is below, at or above x. Exact for every x, representable as a Rational or not;
/// infinities are beyond every number, and NaN, which has no place in the order, throws
/// `ErrorCode::ambiguous_comparison`.
template <std::floating_point F>
constexpr int compare(const Rational& a, F x) {
  if (x != x) {
    throw Error(ErrorCode::ambiguous_comparison,
                "compare: " + to_string(a) + " with NaN has no answer; fix: test for NaN first");
  }
  if (x > std::numeric_limits<F>::max()) {
    return -1;
  }
  if (x < std::numeric_limits<F>::lowest()) {
    return 1;
  }
  const int a_sign = a.num() < 0 ? -1 : (a.num() > 0 ? 1 : 0);
  const int x_sign = x < 0 ? -1 : (x > 0 ? 1 : 0);
  if (a_sign != x_sign) {
    return a_sign < x_sign ? -1 : 1;
  }
  if (a_sign == 0) {
    return 0;
  }
  // |a| against |x| = m 2^e, as num against (den m) 2^e. num < 2^64 and den m < 2^127; a shift is
  // made only when bit lengths do not decide, and then it fits.
  const detail::Dyadic d = detail::to_dyadic(x);
  const detail::Uint128 num = detail::magnitude(a.num());
  const detail::Uint128 product = detail::Uint128{static_cast<std::uint64_t>(a.den())} * d.mantissa;
  const int num_bits = detail::bit_length(num) - (d.exponent < 0 ? d.exponent : 0);
  const int product_bits = detail::bit_length(product) + (d.exponent > 0 ? d.exponent : 0);
  if (num_bits != product_bits) {
    return num_bits < product_bits ? -a_sign : a_sign;
  }
  return a_sign * (d.exponent >= 0 ? detail::three_way(num, product << d.exponent)
                                   : detail::three_way(num << -d.exponent, product));
}

template <>
struct ScalarTraits<Rational> : DefaultScalarTraits<Rational> {
  static constexpr Rational from_double(double x) { return Rational::from_double(x); }
  static constexpr bool is_nan(const Rational&) { return false; }
};

}  // namespace fenestra

// GMP's rationals as a scalar: exact like Rational, without its limit of 64 bits.
//
// For tests and the check command, compiled only where gmpxx is present and not installed: no
// public header shows GMP.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/spec/rational.hpp>
#include <fenestra/spec/scalar.hpp>

#include <gmpxx.h>

#include <cmath>
#include <compare>
#include <concepts>
#include <limits>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

namespace fenestra {

/// A canonical mpq_class behind plain functions: GMP's operators return expression templates, which
/// a definition that says `auto` would keep beyond the life of their operands.
struct GmpRational {
  mpq_class value = 0;

  GmpRational() = default;
  explicit GmpRational(mpq_class number) : value(std::move(number)) { value.canonicalize(); }
  /// Any built-in integer. A template, so that no floating-point number is truncated on its way
  /// here.
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  GmpRational(I n) {
    static_assert(sizeof(I) <= sizeof(long), "GMP takes integers no wider than long");
    if constexpr (std::is_signed_v<I>) {
      value = static_cast<long>(n);
    } else {
      value = static_cast<unsigned long>(n);
    }
  }
  GmpRational(const Rational& x) {
    value.get_num() = mpz_class(static_cast<long>(x.num()));
    value.get_den() = mpz_class(static_cast<long>(x.den()));
  }

  /// The double itself, not a nearby fraction.
  static GmpRational from_double(double x) {
    if (!std::isfinite(x)) {
      throw Error(ErrorCode::overflow,
                  "gmp rational: " + std::to_string(x) +
                      " is not a rational number; fix: give a finite one");
    }
    return GmpRational(mpq_class(x));
  }
  /// Rounded towards zero, as GMP does; beyond the range of double it is not defined.
  double to_double() const { return value.get_d(); }

  friend GmpRational operator+(const GmpRational& a, const GmpRational& b) {
    return reduced(a.value + b.value);
  }
  friend GmpRational operator-(const GmpRational& a, const GmpRational& b) {
    return reduced(a.value - b.value);
  }
  friend GmpRational operator-(const GmpRational& a) { return reduced(-a.value); }
  friend GmpRational operator*(const GmpRational& a, const GmpRational& b) {
    return reduced(a.value * b.value);
  }
  friend GmpRational operator/(const GmpRational& a, const GmpRational& b) {
    if (sgn(b.value) == 0) {
      throw Error(
          ErrorCode::division_by_zero,
          "gmp rational: " + to_string(a) + " / 0 is not a number; fix: a divisor other than 0");
    }
    return reduced(a.value / b.value);
  }

  GmpRational& operator+=(const GmpRational& b) { return *this = *this + b; }
  GmpRational& operator-=(const GmpRational& b) { return *this = *this - b; }
  GmpRational& operator*=(const GmpRational& b) { return *this = *this * b; }
  GmpRational& operator/=(const GmpRational& b) { return *this = *this / b; }

  friend bool operator==(const GmpRational& a, const GmpRational& b) { return a.value == b.value; }
  friend std::strong_ordering operator<=>(const GmpRational& a, const GmpRational& b) {
    return cmp(a.value, b.value) <=> 0;
  }

  friend GmpRational abs(const GmpRational& a) { return sgn(a.value) < 0 ? -a : a; }
  friend std::string to_string(const GmpRational& a) { return a.value.get_str(); }
  friend std::ostream& operator<<(std::ostream& out, const GmpRational& a) {
    return out << to_string(a);
  }

 private:
  // GMP's arithmetic keeps canonical operands canonical, so this only evaluates the expression.
  static GmpRational reduced(mpq_class number) {
    GmpRational result;
    result.value = std::move(number);
    return result;
  }
};

/// -1, 0 or +1 as a is below, at or above b.
inline int compare(const GmpRational& a, const GmpRational& b) {
  const int order = cmp(a.value, b.value);
  return order < 0 ? -1 : (order > 0 ? 1 : 0);
}

/// The same against a double, exactly; infinities are beyond every number and NaN throws, as for
/// Rational.
inline int compare(const GmpRational& a, double x) {
  if (!std::isfinite(x)) {
    return compare(Rational(0), x);
  }
  return compare(a, GmpRational::from_double(x));
}

template <>
struct ScalarTraits<GmpRational> : DefaultScalarTraits<GmpRational> {
  static GmpRational from_double(double x) { return GmpRational::from_double(x); }
  static bool is_nan(const GmpRational&) { return false; }
};

}  // namespace fenestra

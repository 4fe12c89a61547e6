// What a definition may ask of a scalar, and the functions that mean the same on every scalar.
//
// A number type of your own is a `Scalar` with copying, construction from int, + - * and ==; `/`
// makes it a `Field`, `<` an `OrderedScalar`, and exp, log, pow beside it `Transcendental`. All
// else follows; where a default is wrong for a type, specialise `ScalarTraits` and inherit the rest
// from `DefaultScalarTraits`. No number type is defined here: see dual, rational and interval.
#pragma once

#include <fenestra/base/error.hpp>

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <type_traits>

namespace fenestra {

/// A commutative ring as far as the compiler can see (- is needed with one and two operands).
/// `T(0)` and `T(1)` are its neutral elements.
template <class T>
concept Scalar = std::copyable<T> && requires(const T& a, const T& b) {
  T(0);
  T(1);
  { a + b } -> std::convertible_to<T>;
  { a - b } -> std::convertible_to<T>;
  { (a * b) } -> std::convertible_to<T>;
  { -a } -> std::convertible_to<T>;
  { a == b } -> std::convertible_to<bool>;
};

/// A scalar that divides. Built-in integers are excluded: their `/` is not the inverse of `*`.
template <class T>
concept Field = Scalar<T> && !std::integral<T> && requires(const T& a, const T& b) {
  { a / b } -> std::convertible_to<T>;
};

template <class T>
concept OrderedScalar = Scalar<T> && requires(const T& a, const T& b) {
  { a < b } -> std::convertible_to<bool>;
};

namespace detail {

// Here the standard functions are in scope and those of T's namespace are found by its arguments,
// once for all callers.
using std::erfc;
using std::exp;
using std::expm1;
using std::log;
using std::log1p;
using std::pow;
using std::sqrt;

template <class T>
constexpr auto call_exp(const T& x) -> decltype(exp(x)) {
  return exp(x);
}
template <class T>
constexpr auto call_log(const T& x) -> decltype(log(x)) {
  return log(x);
}
template <class T>
constexpr auto call_expm1(const T& x) -> decltype(expm1(x)) {
  return expm1(x);
}
template <class T>
constexpr auto call_log1p(const T& x) -> decltype(log1p(x)) {
  return log1p(x);
}
template <class T>
constexpr auto call_sqrt(const T& x) -> decltype(sqrt(x)) {
  return sqrt(x);
}
template <class T>
constexpr auto call_erfc(const T& x) -> decltype(erfc(x)) {
  return erfc(x);
}
template <class T>
constexpr auto call_pow(const T& x, const T& p) -> decltype(pow(x, p)) {
  return pow(x, p);
}

// Integers are excluded because the standard functions take them to double, and the way back would
// round.
template <class T>
concept HasExp = !std::integral<T> && requires(const T& x) {
  { call_exp(x) } -> std::convertible_to<T>;
};
template <class T>
concept HasLog = !std::integral<T> && requires(const T& x) {
  { call_log(x) } -> std::convertible_to<T>;
};
template <class T>
concept HasExpm1 = !std::integral<T> && requires(const T& x) {
  { call_expm1(x) } -> std::convertible_to<T>;
};
template <class T>
concept HasLog1p = !std::integral<T> && requires(const T& x) {
  { call_log1p(x) } -> std::convertible_to<T>;
};
template <class T>
concept HasSqrt = !std::integral<T> && requires(const T& x) {
  { call_sqrt(x) } -> std::convertible_to<T>;
};
template <class T>
concept HasErfc = !std::integral<T> && requires(const T& x) {
  { call_erfc(x) } -> std::convertible_to<T>;
};
template <class T>
concept HasPow = !std::integral<T> && requires(const T& x) {
  { call_pow(x, x) } -> std::convertible_to<T>;
};

/// A finite binary floating-point number taken apart: (-1)^negative * mantissa * 2^exponent,
/// mantissa odd or zero.
struct Dyadic {
  bool negative = false;
  std::uint64_t mantissa = 0;
  int exponent = 0;
};

template <std::floating_point F>
constexpr Dyadic to_dyadic(F x) {
  static_assert(std::numeric_limits<F>::digits <= 64, "the mantissa has to fit 64 bits");
  Dyadic d;
  if constexpr (std::numeric_limits<F>::digits <= 53) {
    const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(x));
    const auto biased = static_cast<int>((bits >> 52) & 0x7ff);
    const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
    d.negative = (bits >> 63) != 0;
    d.mantissa = biased == 0 ? fraction : fraction | (std::uint64_t{1} << 52);
    d.exponent = (biased == 0 ? 1 : biased) - 1075;
  } else {
    int exponent = 0;
    const F fraction = std::frexp(std::fabs(x), &exponent);
    d.negative = std::signbit(x);
    d.mantissa = static_cast<std::uint64_t>(std::ldexp(fraction, 64));
    d.exponent = exponent - 64;
  }
  if (d.mantissa == 0) {
    d.exponent = 0;
    return d;
  }
  const int zeros = std::countr_zero(d.mantissa);
  d.mantissa >>= zeros;
  d.exponent += zeros;
  return d;
}

[[noreturn]] inline void throw_not_representable(double x, const std::string& type) {
  throw Error(ErrorCode::overflow,
              "from_double: " + std::to_string(x) + " is not a value of " + type +
                  "; fix: give a number that it holds exactly");
}

}  // namespace detail

/// A field with exp, log and pow, found beside T or in std.
template <class T>
concept Transcendental = Field<T> && detail::HasExp<T> && detail::HasLog<T> && detail::HasPow<T>;

template <class T>
struct ScalarTraits;

/// The meaning of the functions below for a type that says nothing else.
template <class T>
struct DefaultScalarTraits {
  static constexpr T from_index(Index n) {
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<T>(n);
    } else if constexpr (requires {
                           T{n};
                         }) {  // braces: a constructor that would narrow does not count
      return T(n);
    } else {
      constexpr Index base = Index{1} << 30;
      const T low = T(static_cast<int>(n % base));
      return n / base == 0 ? low : from_index(n / base) * T(static_cast<int>(base)) + low;
    }
  }

  static constexpr T from_double(double x) {
    if constexpr (std::floating_point<T>) {
      return static_cast<T>(x);
    } else if constexpr (std::integral<T>) {
      const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
      const double begin = std::is_signed_v<T> ? -end : 0.0;
      if (!(begin <= x && x < end) || std::trunc(x) != x) {
        detail::throw_not_representable(x, "this integer type");
      }
      return static_cast<T>(x);
    } else if constexpr (requires { T{x}; }) {
      return T(x);
    } else {
      return from_dyadic(x);
    }
  }

  static constexpr T inv_sqrt_pi() {
    if constexpr (std::floating_point<T>) {
      return std::numbers::inv_sqrtpi_v<T>;
    } else {
      return ScalarTraits<T>::from_double(std::numbers::inv_sqrtpi);
    }
  }

  static constexpr bool is_nan(const T& x) { return !(x == x); }

  static constexpr T max(const T& a, const T& b) { return ScalarTraits<T>::beats(b, a) ? b : a; }

  static constexpr bool beats(const T& candidate, const T& best) {
    using Traits = ScalarTraits<T>;
    if (Traits::is_nan(candidate) || Traits::is_nan(best)) {
      return Traits::is_nan(candidate) && !Traits::is_nan(best);
    }
    return best < candidate;
  }

  static constexpr T abs(const T& x) {
    if constexpr (std::floating_point<T>) {
      return std::fabs(x);  // also takes -0 to +0, which no comparison can tell apart
    } else {
      return x < T(0) ? T(-x) : x;
    }
  }

  static constexpr T sign_of(const T& x) {
    if (x < T(0)) {
      return -T(1);
    }
    if (T(0) < x) {
      return T(1);
    }
    return ScalarTraits<T>::is_nan(x) ? x : T(0);
  }

  static constexpr bool identical(const T& a, const T& b) { return a == b; }

  static constexpr bool totally_ordered = OrderedScalar<T>;

  static constexpr T representative(const T& x) { return x; }

 private:
  // Exact by ring operations alone when x is an integer, and by one division when it is not.
  static constexpr T from_dyadic(double x) {
    if (!(x - x == 0)) {
      detail::throw_not_representable(x, "an exact scalar");
    }
    const detail::Dyadic d = detail::to_dyadic(x);
    T scale = T(1);
    for (int i = 0; i < (d.exponent < 0 ? -d.exponent : d.exponent); ++i) {
      scale = scale + scale;
    }
    const T mantissa = ScalarTraits<T>::from_index(static_cast<Index>(d.mantissa));
    const T signed_mantissa = d.negative ? T(-mantissa) : mantissa;
    if (d.exponent >= 0) {
      return signed_mantissa * scale;
    }
    if constexpr (Field<T>) {
      return signed_mantissa / scale;
    } else {
      detail::throw_not_representable(x, "a scalar without division");
    }
  }
};

/// The customisation point: specialise it for a type whose default is wrong, inheriting
/// `DefaultScalarTraits`.
template <class T>
struct ScalarTraits : DefaultScalarTraits<T> {};

/// A count as a scalar. Exact wherever T holds it; a floating-point T rounds, an interval encloses.
template <class T>
constexpr T from_index(Index n) {
  return ScalarTraits<T>::from_index(n);
}

/// A finite double as a scalar. Exact, or `ErrorCode::overflow`; float rounds, an interval
/// encloses.
template <class T>
constexpr T from_double(double x) {
  return ScalarTraits<T>::from_double(x);
}

/// 1/sqrt(pi), the constant of the normal distribution: nearest in a floating-point T, enclosed by
/// an interval, as good as a double elsewhere.
template <class T>
constexpr T inv_sqrt_pi() {
  return ScalarTraits<T>::inv_sqrt_pi();
}

/// Not equal to itself. Asks nothing but == of a user's type.
template <class T>
constexpr bool is_nan(const T& x) {
  return ScalarTraits<T>::is_nan(x);
}

/// Whether a candidate wins against the running best of a maximum: NaN is above every number and
/// the first wins ties. An interval that cannot tell throws `ErrorCode::ambiguous_comparison`.
template <class T>
constexpr bool beats(const T& candidate, const T& best) {
  return ScalarTraits<T>::beats(candidate, best);
}

/// The greater of two by `beats`; for intervals the enclosure of the maximum, which is never
/// ambiguous.
template <class T>
constexpr T scalar_max(const T& a, const T& b) {
  return ScalarTraits<T>::max(a, b);
}

template <class T>
constexpr T scalar_abs(const T& x) {
  return ScalarTraits<T>::abs(x);
}

/// -1, 0 or +1; NaN stays NaN.
template <class T>
constexpr T sign_of(const T& x) {
  return ScalarTraits<T>::sign_of(x);
}

/// Equal in every part. Differs from == only where == looks at less than everything, as it does for
/// duals.
template <class T>
constexpr bool identical(const T& a, const T& b) {
  return ScalarTraits<T>::identical(a, b);
}

/// A scalar whose < always has an answer; for others a maximum is enclosed, not selected.
template <class T>
concept TotallyOrdered = OrderedScalar<T> && ScalarTraits<T>::totally_ordered;

/// A constant near x that can be compared without doubt, for shifts that cancel (the extreme of a
/// logsumexp): an interval's upper bound as a point, a dual's value without its tangent.
template <class T>
constexpr T representative(const T& x) {
  return ScalarTraits<T>::representative(x);
}

template <detail::HasExp T>
constexpr T scalar_exp(const T& x) {
  return detail::call_exp(x);
}

template <detail::HasLog T>
constexpr T scalar_log(const T& x) {
  return detail::call_log(x);
}

/// exp(x) - 1, without cancellation where T has such a function.
template <detail::HasExp T>
constexpr T scalar_expm1(const T& x) {
  if constexpr (detail::HasExpm1<T>) {
    return detail::call_expm1(x);
  } else {
    return detail::call_exp(x) - T(1);
  }
}

/// log(1 + x), without cancellation where T has such a function.
template <detail::HasLog T>
constexpr T scalar_log1p(const T& x) {
  if constexpr (detail::HasLog1p<T>) {
    return detail::call_log1p(x);
  } else {
    return detail::call_log(T(T(1) + x));
  }
}

template <detail::HasSqrt T>
constexpr T scalar_sqrt(const T& x) {
  return detail::call_sqrt(x);
}

template <detail::HasErfc T>
constexpr T scalar_erfc(const T& x) {
  return detail::call_erfc(x);
}

template <detail::HasPow T>
constexpr T scalar_pow(const T& x, const T& p) {
  return detail::call_pow(x, p);
}

}  // namespace fenestra

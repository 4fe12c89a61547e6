// Intervals [lo, hi] that enclose the exact result of every operation, whatever the rounding.
//
// The contract needs IEEE arithmetic in round-to-nearest with subnormals: -ffast-math,
// flush-to-zero, x87 excess precision and other rounding modes are outside it. An infinite bound
// means unbounded. NaN stays NaN through everything and contains nothing. Dependence is not
// tracked: x - x is not zero.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/spec/rational.hpp>
#include <fenestra/spec/scalar.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <numeric>
#include <ostream>
#include <sstream>
#include <string>

namespace fenestra {

namespace detail::outward {

/// Bounds of one real number: down <= number <= up.
template <std::floating_point T>
struct Bounds {
  T down;
  T up;
};

template <std::floating_point T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();

template <std::floating_point T>
T next_down(T x) {
  return std::nextafter(x, -infinity<T>);
}

template <std::floating_point T>
T next_up(T x) {
  return std::nextafter(x, infinity<T>);
}

/// From here on up the rounding error of a product is itself a floating-point number, so "error
/// zero" means exact. A product of size 2^k is a multiple of 2^(k + 1 - 2 digits), and that must
/// not be below the smallest subnormal.
template <std::floating_point T>
inline constexpr T exact_error_from =
    2 * (std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon());

/// The number that was rounded to `nearest`, given the sign of (number - nearest). NaN: sign
/// unknown.
template <std::floating_point T>
Bounds<T> enclose(T nearest, T error) {
  return {error >= 0 ? nearest : next_down(nearest), error <= 0 ? nearest : next_up(nearest)};
}

/// A finite number whose nearest is infinite.
template <std::floating_point T>
Bounds<T> enclose_overflow(T nearest) {
  return enclose(nearest, -nearest);
}

template <std::floating_point T>
Bounds<T> add(T a, T b) {
  const T sum = a + b;
  if (std::isnan(sum)) {
    return {-infinity<T>, infinity<T>};  // inf - inf: unbounded both ways
  }
  if (std::isinf(a) || std::isinf(b)) {
    return {sum, sum};
  }
  if (std::isinf(sum)) {
    return enclose_overflow(sum);
  }
  // Knuth's error-free sum; additions are exact in the subnormal range, only its own overflow can
  // spoil the error.
  const T b_part = sum - a;
  const T error = (a - (sum - b_part)) + (b - b_part);
  return enclose(sum, std::isfinite(error) ? error : std::numeric_limits<T>::quiet_NaN());
}

template <std::floating_point T>
Bounds<T> multiply(T a, T b) {
  if (a == 0 || b == 0) {
    return {T(0), T(0)};  // with an infinite bound too: zero times any real number is zero
  }
  const T product = a * b;
  if (std::isinf(a) || std::isinf(b)) {
    return {product, product};
  }
  if (std::isinf(product)) {
    return enclose_overflow(product);
  }
  if (product == 0) {
    return enclose(product, (a < 0) == (b < 0) ? T(1) : T(-1));
  }
  const T error = std::fma(a, b, -product);
  const bool unknown = error == 0 && std::fabs(product) < exact_error_from<T>;
  return enclose(product, unknown ? std::numeric_limits<T>::quiet_NaN() : error);
}

/// a / b for b != 0.
template <std::floating_point T>
Bounds<T> divide(T a, T b) {
  if (a == 0 || std::isinf(b)) {
    return {T(0), T(0)};  // the limit; for inf / inf the other corners reach the far end
  }
  const T quotient = a / b;
  if (std::isinf(a)) {
    return {quotient, quotient};
  }
  if (std::isinf(quotient)) {
    return enclose_overflow(quotient);
  }
  // The remainder has the sign of the error for b > 0. It is a multiple of ulp(quotient) ulp(b), at
  // least 2^-2 of the corresponding unit of a product of size |a|, hence the factor.
  const T remainder = std::fma(-quotient, b, a);
  const bool unknown = remainder == 0 && std::fabs(a) < 4 * exact_error_from<T>;
  const T error = b > 0 ? remainder : -remainder;
  return enclose(quotient, unknown ? std::numeric_limits<T>::quiet_NaN() : error);
}

/// The root of x >= 0.
template <std::floating_point T>
Bounds<T> square_root(T x) {
  const T root = std::sqrt(x);
  if (x == 0 || std::isinf(x)) {
    return {root, root};
  }
  const T error = std::fma(-root, root, x);
  const bool unknown = error == 0 && x < 4 * exact_error_from<T>;
  return enclose(root, unknown ? std::numeric_limits<T>::quiet_NaN() : error);
}

/// `nearest` widened by two steps for each of `ulps`.
template <std::floating_point T>
Bounds<T> widened_by(T nearest, int ulps) {
  Bounds<T> bounds{nearest, nearest};
  for (int i = 0; i < 2 * ulps; ++i) {
    bounds = {next_down(bounds.down), next_up(bounds.up)};
  }
  return bounds;
}

/// The result of a library function, widened by more than that function can be wrong. glibc states
/// at most 1 ulp for exp, log and pow in float and double and at most 2 in long double. Next to a
/// power of two one step may be half an ulp of the true value, hence two steps per ulp.
template <std::floating_point T>
Bounds<T> widened(T nearest) {
  return widened_by(nearest, std::numeric_limits<T>::digits <= 53 ? 1 : 2);
}

template <std::floating_point T>
Bounds<T> exponential(T x) {
  const T y = std::exp(x);
  if (x == 0 || std::isinf(x)) {
    return {y, y};
  }
  const Bounds<T> bounds = widened(y);
  return {std::max(bounds.down, T(0)), bounds.up};
}

/// log x for x >= 0.
template <std::floating_point T>
Bounds<T> logarithm(T x) {
  const T y = std::log(x);
  return x == 1 || std::isinf(y) ? Bounds<T>{y, y} : widened(y);
}

/// exp(x) - 1. glibc states at most 1 ulp in float and double and at most 4 in long double, as it
/// does for log1p.
template <std::floating_point T>
Bounds<T> exponential_less_one(T x) {
  const T y = std::expm1(x);
  if (x == 0 || std::isinf(x)) {
    return {y, y};
  }
  const Bounds<T> bounds = widened_by(y, std::numeric_limits<T>::digits <= 53 ? 1 : 4);
  return {std::max(bounds.down, T(-1)), bounds.up};
}

/// log(1 + x) for x >= -1.
template <std::floating_point T>
Bounds<T> logarithm_of_one_and(T x) {
  const T y = std::log1p(x);
  if (x == 0 || std::isinf(y)) {
    return {y, y};
  }
  return widened_by(y, std::numeric_limits<T>::digits <= 53 ? 1 : 4);
}

/// erfc x, whose documented error is larger than that of the others: at most 6 ulp on the machines
/// that glibc lists, so two steps for each of 8.
template <std::floating_point T>
Bounds<T> complementary_error(T x) {
  const T y = std::erfc(x);
  if (x == 0 || std::isinf(x)) {
    return {y, y};
  }
  const Bounds<T> bounds = widened_by(y, 8);
  return {std::max(bounds.down, T(0)), std::min(bounds.up, T(2))};
}

/// x^p for x >= 0; infinite arguments stand for their limits, and 0^0 = 1.
template <std::floating_point T>
Bounds<T> power(T x, T p) {
  const T y = std::pow(x, p);
  if (p == 0 || p == 1 || x == 0 || x == 1 || std::isinf(x) || std::isinf(p)) {
    return {y, y};
  }
  const Bounds<T> bounds = widened(y);
  return {std::max(bounds.down, T(0)), bounds.up};
}

}  // namespace detail::outward

/// Invariant: lo <= hi, or both are NaN. Of an argument partly outside the domain of log, sqrt or
/// pow the part inside counts; nothing left gives NaN.
template <std::floating_point T>
class Interval {
 public:
  constexpr Interval() = default;
  /// An integer, enclosed where T does not hold it. A template, so that nothing else is converted
  /// to int.
  template <std::same_as<int> I>
  constexpr Interval(I n) : Interval(ScalarTraits<Interval>::from_index(n)) {}
  /// The point [x, x]. A template, so that no wider number is rounded on its way here; see
  /// `from_double` for those.
  template <std::same_as<T> U>
  constexpr Interval(U point) : lo_(point), hi_(point) {}
  constexpr Interval(T lo, T hi) : lo_(lo), hi_(hi) {
    if (lo != lo || hi != hi) {
      lo_ = hi_ = std::numeric_limits<T>::quiet_NaN();
    } else if (hi < lo) {
      throw_reversed(lo, hi);
    }
  }

  static constexpr Interval whole() {
    return {-detail::outward::infinity<T>, detail::outward::infinity<T>};
  }
  static constexpr Interval nan() { return Interval(std::numeric_limits<T>::quiet_NaN()); }

  constexpr T lo() const { return lo_; }
  constexpr T hi() const { return hi_; }

  constexpr bool contains(T x) const { return lo_ <= x && x <= hi_; }
  /// Exact, without rounding the rational first.
  constexpr bool contains(const Rational& x) const {
    return lo_ <= hi_ && compare(x, lo_) >= 0 && compare(x, hi_) <= 0;
  }

  /// hi - lo, rounded up.
  T width() const { return is_nan(*this) ? lo_ : detail::outward::add(hi_, -lo_).up; }
  /// A finite number inside, near the middle; the bound itself where both are the same.
  T mid() const {
    if (!(lo_ < hi_)) {
      return lo_;
    }
    return std::midpoint(std::max(lo_, std::numeric_limits<T>::lowest()),
                         std::min(hi_, std::numeric_limits<T>::max()));
  }

  /// The smallest interval around both.
  friend Interval hull(const Interval& a, const Interval& b) {
    return either_nan(a, b) ? nan() : Interval(std::min(a.lo_, b.lo_), std::max(a.hi_, b.hi_));
  }
  friend constexpr bool intersects(const Interval& a, const Interval& b) {
    return a.lo_ <= b.hi_ && b.lo_ <= a.hi_;
  }

  friend Interval operator+(const Interval& a, const Interval& b) {
    return either_nan(a, b) ? nan()
                            : Interval(detail::outward::add(a.lo_, b.lo_).down,
                                       detail::outward::add(a.hi_, b.hi_).up);
  }
  friend Interval operator-(const Interval& a, const Interval& b) { return a + (-b); }
  friend constexpr Interval operator-(const Interval& a) { return {-a.hi_, -a.lo_}; }
  friend Interval operator*(const Interval& a, const Interval& b) {
    return either_nan(a, b) ? nan() : corners(a, b, detail::outward::multiply<T>);
  }
  /// A divisor that contains zero gives the whole line, zero at its end included.
  friend Interval operator/(const Interval& a, const Interval& b) {
    if (either_nan(a, b)) {
      return nan();
    }
    return b.contains(T(0)) ? whole() : corners(a, b, detail::outward::divide<T>);
  }

  Interval& operator+=(const Interval& b) { return *this = *this + b; }
  Interval& operator-=(const Interval& b) { return *this = *this - b; }
  Interval& operator*=(const Interval& b) { return *this = *this * b; }
  Interval& operator/=(const Interval& b) { return *this = *this / b; }

  /// The same bounds; says nothing about the numbers inside.
  friend constexpr bool operator==(const Interval& a, const Interval& b) {
    return a.lo_ == b.lo_ && a.hi_ == b.hi_;
  }
  /// True or false only if it is so for every pair of numbers inside; otherwise
  /// `ErrorCode::ambiguous_comparison`. NaN compares false, as everywhere.
  friend constexpr bool operator<(const Interval& a, const Interval& b) {
    if (a.hi_ < b.lo_) {
      return true;
    }
    if (a.lo_ >= b.hi_ || either_nan(a, b)) {
      return false;
    }
    throw_ambiguous(a, b);
  }
  friend constexpr bool operator>(const Interval& a, const Interval& b) { return b < a; }
  friend constexpr bool operator<=(const Interval& a, const Interval& b) {
    return !either_nan(a, b) && !(b < a);
  }
  friend constexpr bool operator>=(const Interval& a, const Interval& b) { return b <= a; }

  friend Interval abs(const Interval& x) { return scalar_abs(x); }
  friend Interval exp(const Interval& x) {
    return is_nan(x) ? x
                     : Interval(detail::outward::exponential(x.lo_).down,
                                detail::outward::exponential(x.hi_).up);
  }
  friend Interval log(const Interval& argument) {
    const Interval x = non_negative_part(argument);
    return is_nan(x) ? x
                     : Interval(detail::outward::logarithm(x.lo_).down,
                                detail::outward::logarithm(x.hi_).up);
  }
  friend Interval expm1(const Interval& x) {
    return is_nan(x) ? x
                     : Interval(detail::outward::exponential_less_one(x.lo_).down,
                                detail::outward::exponential_less_one(x.hi_).up);
  }
  friend Interval log1p(const Interval& x) {
    if (is_nan(x) || x.hi_ < T(-1)) {
      return nan();
    }
    return Interval(detail::outward::logarithm_of_one_and(std::max(x.lo_, T(-1))).down,
                    detail::outward::logarithm_of_one_and(x.hi_).up);
  }
  /// Decreasing, so the bounds change sides.
  friend Interval erfc(const Interval& x) {
    return is_nan(x) ? x
                     : Interval(detail::outward::complementary_error(x.hi_).down,
                                detail::outward::complementary_error(x.lo_).up);
  }
  friend Interval sqrt(const Interval& argument) {
    const Interval x = non_negative_part(argument);
    return is_nan(x) ? x
                     : Interval(detail::outward::square_root(x.lo_).down,
                                detail::outward::square_root(x.hi_).up);
  }
  /// x^p on x >= 0 for any p, with 0^0 = 1 as in std::pow; on negative x too when p is one integer.
  friend Interval pow(const Interval& x, const Interval& p) {
    if (either_nan(x, p)) {
      return nan();
    }
    const bool integer_power = p.lo_ == p.hi_ && std::trunc(p.lo_) == p.lo_ && std::isfinite(p.lo_);
    if (x.lo_ < 0 && integer_power) {
      return integer_pow(x, p.lo_);
    }
    const Interval base = non_negative_part(x);
    // p log x is monotone in each argument, so the extremes are at the corners.
    return is_nan(base) ? base : corners(base, p, detail::outward::power<T>);
  }

  friend std::string to_string(const Interval& x) {
    std::ostringstream text;
    text.precision(std::numeric_limits<T>::max_digits10);
    text << '[' << x.lo_ << ", " << x.hi_ << ']';
    return text.str();
  }
  friend std::ostream& operator<<(std::ostream& out, const Interval& x) {
    return out << to_string(x);
  }

 private:
  static constexpr bool either_nan(const Interval& a, const Interval& b) {
    return !(a == a) || !(b == b);
  }

  static Interval non_negative_part(const Interval& x) {
    return x.hi_ < 0 ? nan() : Interval(x.lo_ < 0 ? T(0) : x.lo_, x.hi_);
  }

  // The range of f over the box a x b, for an f that is monotone in each argument.
  template <class F>
  static Interval corners(const Interval& a, const Interval& b, F f) {
    const detail::outward::Bounds<T> first = f(a.lo_, b.lo_);
    if (a.lo_ == a.hi_ && b.lo_ == b.hi_) {
      return {first.down, first.up};
    }
    const detail::outward::Bounds<T> rest[] = {f(a.lo_, b.hi_), f(a.hi_, b.lo_), f(a.hi_, b.hi_)};
    return {std::min({first.down, rest[0].down, rest[1].down, rest[2].down}),
            std::max({first.up, rest[0].up, rest[1].up, rest[2].up})};
  }

  // x^p for an integer p and an x that reaches below zero: even powers see |x|, odd ones keep the
  // sign.
  static Interval integer_pow(const Interval& x, T p) {
    if (std::fmod(p, T(2)) == 0) {
      return pow(abs(x), Interval(p));
    }
    if (p < 0 && x.contains(T(0))) {
      return whole();
    }
    const auto odd = [p](T base) {
      return base < 0 ? -pow(Interval(-base), Interval(p)) : pow(Interval(base), Interval(p));
    };
    return hull(odd(x.lo_), odd(x.hi_));
  }

  [[noreturn]] static void throw_reversed(T lo, T hi) {
    std::ostringstream text;
    text.precision(std::numeric_limits<T>::max_digits10);
    text << "interval: lower bound " << lo << ", upper bound " << hi
         << "; needed lower <= upper; fix: swap them";
    throw Error(ErrorCode::invalid_option, text.str());
  }
  [[noreturn]] static void throw_ambiguous(const Interval& a, const Interval& b) {
    throw Error(ErrorCode::ambiguous_comparison,
                "interval: whether " + to_string(a) + " < " + to_string(b) +
                    " depends on the numbers inside; fix: narrower inputs, a wider type, or an "
                    "exact scalar");
  }

  T lo_ = 0;
  T hi_ = 0;
};

template <std::floating_point T>
struct ScalarTraits<Interval<T>> : DefaultScalarTraits<Interval<T>> {
  static constexpr Interval<T> from_index(Index n) {
    const T nearest = static_cast<T>(n);
    const int side = compare(Rational(n), nearest);
    return {side < 0 ? detail::outward::next_down(nearest) : nearest,
            side > 0 ? detail::outward::next_up(nearest) : nearest};
  }
  static constexpr Interval<T> from_double(double x) {
    const T nearest = static_cast<T>(x);
    return {nearest > x ? detail::outward::next_down(nearest) : nearest,
            nearest < x ? detail::outward::next_up(nearest) : nearest};
  }
  static constexpr Interval<T> inv_sqrt_pi() {
    constexpr T nearest = std::numbers::inv_sqrtpi_v<T>;
    return {detail::outward::next_down(nearest), detail::outward::next_up(nearest)};
  }
  static Interval<T> max(const Interval<T>& a, const Interval<T>& b) {
    if (fenestra::is_nan(a) || fenestra::is_nan(b)) {
      return Interval<T>::nan();
    }
    return {std::max(a.lo(), b.lo()), std::max(a.hi(), b.hi())};
  }
  static constexpr bool totally_ordered = false;
  static Interval<T> representative(const Interval<T>& x) { return Interval<T>(x.hi()); }
  static Interval<T> abs(const Interval<T>& x) {
    if (x.contains(T(0))) {
      return {T(0), std::max(-x.lo(), x.hi())};
    }
    return x.hi() < 0 ? -x : x;
  }
  /// Encloses the sign, so it is never ambiguous.
  static Interval<T> sign_of(const Interval<T>& x) {
    if (fenestra::is_nan(x)) {
      return x;
    }
    return {fenestra::sign_of(x.lo()), fenestra::sign_of(x.hi())};
  }
};

}  // namespace fenestra

// sin, cos, floor and rint on every scalar: what elementwise functions ask for beside exp, log and
// pow. A number type of your own brings them in its namespace; without them these functions refuse
// it.
//
// floor and rint are constant between their jumps, so a dual's tangent ends there; an interval that
// meets a jump encloses both sides.
#pragma once

#include <fenestra/spec/dual.hpp>
#include <fenestra/spec/interval.hpp>
#include <fenestra/spec/rational.hpp>
#include <fenestra/spec/scalar.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <numbers>

namespace fenestra {

namespace detail {

using std::cos;
using std::floor;
using std::rint;
using std::sin;

template <class T>
auto call_sin(const T& x) -> decltype(sin(x)) {
  return sin(x);
}
template <class T>
auto call_cos(const T& x) -> decltype(cos(x)) {
  return cos(x);
}
template <class T>
auto call_floor(const T& x) -> decltype(floor(x)) {
  return floor(x);
}
template <class T>
auto call_rint(const T& x) -> decltype(rint(x)) {
  return rint(x);
}

template <class T>
concept HasSinAndCos = !std::integral<T> && requires(const T& x) {
  { call_sin(x) } -> std::convertible_to<T>;
  { call_cos(x) } -> std::convertible_to<T>;
};
template <class T>
concept HasFloorAndRint = !std::integral<T> && requires(const T& x) {
  { call_floor(x) } -> std::convertible_to<T>;
  { call_rint(x) } -> std::convertible_to<T>;
};

/// sin(x + quarters * pi/2) for all x inside, `ends` being the function at the ends. Far from zero
/// the enclosure says nothing more than -1 to 1.
template <std::floating_point T>
Interval<T> wave(const Interval<T>& x, int quarters, T (*ends)(T)) {
  constexpr T kFar = 1 << 20;
  if (is_nan(x)) {
    return x;
  }
  if (x.lo() < -kFar || x.hi() > kFar || x.width() > T(7)) {
    return {T(-1), T(1)};
  }
  const auto low = outward::widened(ends(x.lo()));
  const auto high = outward::widened(ends(x.hi()));
  T lo = std::max(std::min(low.down, high.down), T(-1));
  T hi = std::min(std::max(low.up, high.up), T(1));
  // Extremes are where the number of quarter turns is odd. That number is off by less than the
  // slack: 2^20 * 2^-62.
  constexpr long double kSlack = 0x1p-40L;
  const auto turns = [&](T at) {
    return static_cast<long double>(at) / (std::numbers::pi_v<long double> / 2) + quarters;
  };
  const long double last = std::floor(turns(x.hi()) + kSlack);
  for (long double n = std::ceil(turns(x.lo()) - kSlack); n <= last; ++n) {
    const long double within = n - 4 * std::floor(n / 4);
    hi = within == 1 ? T(1) : hi;
    lo = within == 3 ? T(-1) : lo;
  }
  return {lo, hi};
}

}  // namespace detail

template <detail::HasSinAndCos T>
T scalar_sin(const T& x) {
  return detail::call_sin(x);
}
template <detail::HasSinAndCos T>
T scalar_cos(const T& x) {
  return detail::call_cos(x);
}
template <detail::HasFloorAndRint T>
T scalar_floor(const T& x) {
  return detail::call_floor(x);
}
/// The nearest integer, the even one of two.
template <detail::HasFloorAndRint T>
T scalar_rint(const T& x) {
  return detail::call_rint(x);
}

// --- Intervals ------------------------------

template <std::floating_point T>
Interval<T> sin(const Interval<T>& x) {
  return x == Interval<T>(0) ? x : detail::wave<T>(x, 0, [](T at) { return std::sin(at); });
}
template <std::floating_point T>
Interval<T> cos(const Interval<T>& x) {
  return detail::wave<T>(x, 1, [](T at) { return std::cos(at); });
}
template <std::floating_point T>
Interval<T> floor(const Interval<T>& x) {
  return {std::floor(x.lo()), std::floor(x.hi())};
}
template <std::floating_point T>
Interval<T> rint(const Interval<T>& x) {
  return {std::rint(x.lo()), std::rint(x.hi())};
}

// --- Rationals ------------------------------

inline Rational floor(const Rational& x) {
  const Index whole = x.num() / x.den();
  return x.num() % x.den() < 0 ? whole - 1 : whole;
}
inline Rational rint(const Rational& x) {
  const Rational below = floor(x);
  const Rational rest = x - below;
  const Rational half(1, 2);
  const bool up = rest > half || (rest == half && below.num() % 2 != 0);
  return up ? below + Rational(1) : below;
}

// --- Duals ------------------------------

template <class T>
  requires detail::HasSinAndCos<T>
Dual<T> sin(const Dual<T>& x) {
  return {scalar_sin(x.value), scalar_cos(x.value) * x.tangent};
}
template <class T>
  requires detail::HasSinAndCos<T>
Dual<T> cos(const Dual<T>& x) {
  return {scalar_cos(x.value), -(scalar_sin(x.value) * x.tangent)};
}
template <class T>
  requires detail::HasFloorAndRint<T>
Dual<T> floor(const Dual<T>& x) {
  return {scalar_floor(x.value), T(0)};
}
template <class T>
  requires detail::HasFloorAndRint<T>
Dual<T> rint(const Dual<T>& x) {
  return {scalar_rint(x.value), T(0)};
}

}  // namespace fenestra

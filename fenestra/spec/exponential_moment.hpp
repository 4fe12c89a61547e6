// The integrals of s^k exp(s*w) over s from 0 to 1, on every scalar.
//
//   k = 0: (e^w - 1)/w    k = 1: (w e^w - e^w + 1)/w^2    k = 2: (e^w (w^2 - 2w + 2) - 2)/w^3
//
// What is left of differences of exponentials after their leading terms have cancelled: positive,
// increasing in w, and 1/(k + 1) at 0. The derivative of one is the next.
#pragma once

#include <fenestra/spec/dual.hpp>
#include <fenestra/spec/interval.hpp>
#include <fenestra/spec/scalar.hpp>

#include <algorithm>
#include <concepts>

namespace fenestra {

namespace detail {

inline constexpr int kMomentTerms = 25;

/// The first terms of the sum over j of w^j/(j! (j + k + 1)). For |w| < 1 the rest is below
/// 2/25! |w| < 2^-80 |w|.
template <class T>
T moment_series(const T& w, int k) {
  T sum(0);
  for (int j = kMomentTerms - 1; j >= 0; --j) {
    T factorial(1);
    for (int i = 2; i <= j; ++i) {
      factorial = factorial * T(i);
    }
    sum = T(1) / (factorial * T(j + k + 1)) + w * sum;
  }
  return sum;
}

/// By parts, from k = 0 up; each step loses at most a few bits where |w| >= 1 and k is small.
template <class T>
T moment_by_parts(const T& w, int k) {
  T moment = scalar_expm1(w) / w;
  for (int i = 1; i <= k; ++i) {
    moment = (scalar_exp(w) - T(i) * moment) / w;
  }
  return moment;
}

}  // namespace detail

template <Transcendental T>
T exponential_moment(const T& w, int k) {
  return w < T(1) && T(-1) < w ? detail::moment_series(w, k) : detail::moment_by_parts(w, k);
}

template <class T>
Dual<T> exponential_moment(const Dual<T>& w, int k) {
  return {exponential_moment(w.value, k),
          identical(w.tangent, T(0)) ? T(0) : T(exponential_moment(w.value, k + 1) * w.tangent)};
}

/// Increasing, so the ends tell. What the series leaves out is enclosed too.
template <std::floating_point T>
Interval<T> exponential_moment(const Interval<T>& w, int k) {
  if (is_nan(w)) {
    return w;
  }
  const auto at = [k](T point) {
    const Interval<T> x(point);
    if (!(point < 1 && point > -1)) {
      return std::isinf(point) && point < 0 ? Interval<T>(0) : detail::moment_by_parts(x, k);
    }
    const T rest = std::ldexp(std::fabs(point), -80);
    return detail::moment_series(x, k) + Interval<T>(-rest, rest);
  };
  const Interval<T> low = at(w.lo());
  return {std::max(low.lo(), T(0)), w.lo() == w.hi() ? low.hi() : at(w.hi()).hi()};
}

}  // namespace fenestra

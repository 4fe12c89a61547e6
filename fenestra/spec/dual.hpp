// Dual numbers: a value and its tangent through any arithmetic. Forward-mode derivatives.
//
// Levels nest by type, Dual<Dual<T>> being second order, and tangents of two levels cannot be mixed
// up because their types differ. One type must therefore be one level: an inner derivative is taken
// at a point of the outer variable's type X (`derivative(f, X(1))`), never at a bare T.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/spec/scalar.hpp>

#include <concepts>
#include <functional>
#include <ostream>
#include <type_traits>
#include <utility>

namespace fenestra {

/// value + tangent * eps with eps * eps = 0.
///
/// == and < look at values only. Branches must follow the primal computation: a tangent says how
/// the result moves along the path taken, it has no say in which path that is. To compare tangents
/// as well use `identical`.
template <class T>
struct Dual {
  T value = T(0);
  T tangent = T(0);

  constexpr Dual() = default;
  constexpr Dual(T v, T v_dot) : value(std::move(v)), tangent(std::move(v_dot)) {}
  /// An integer constant. A template, so that nothing else is converted to int on the way.
  template <std::same_as<int> I>
  constexpr Dual(I constant) : value(T(constant)) {}
  /// A constant of an inner level, or of what converts to one. Built-in numbers do not change their
  /// type silently.
  template <class U>
    requires(!std::same_as<U, Dual> && !std::same_as<U, int> && std::convertible_to<U, T> &&
             (std::same_as<U, T> || !std::is_arithmetic_v<T>))
  constexpr Dual(const U& constant) : value(constant) {}

  friend constexpr Dual operator+(const Dual& a, const Dual& b) {
    return {a.value + b.value, a.tangent + b.tangent};
  }
  friend constexpr Dual operator-(const Dual& a, const Dual& b) {
    return {a.value - b.value, a.tangent - b.tangent};
  }
  friend constexpr Dual operator-(const Dual& a) { return {-a.value, -a.tangent}; }
  friend constexpr Dual operator*(const Dual& a, const Dual& b) {
    return {a.value * b.value, a.tangent * b.value + a.value * b.tangent};
  }
  friend constexpr Dual operator/(const Dual& a, const Dual& b)
    requires Field<T>
  {
    const T quotient = a.value / b.value;
    return {quotient, (a.tangent - quotient * b.tangent) / b.value};
  }

  constexpr Dual& operator+=(const Dual& b) { return *this = *this + b; }
  constexpr Dual& operator-=(const Dual& b) { return *this = *this - b; }
  constexpr Dual& operator*=(const Dual& b) { return *this = *this * b; }
  constexpr Dual& operator/=(const Dual& b)
    requires Field<T>
  {
    return *this = *this / b;
  }

  friend constexpr bool operator==(const Dual& a, const Dual& b) { return a.value == b.value; }
  friend constexpr bool operator<(const Dual& a, const Dual& b)
    requires OrderedScalar<T>
  {
    return a.value < b.value;
  }
  friend constexpr bool operator>(const Dual& a, const Dual& b)
    requires OrderedScalar<T>
  {
    return b.value < a.value;
  }
  friend constexpr bool operator<=(const Dual& a, const Dual& b)
    requires requires { a.value <= b.value; }
  {
    return a.value <= b.value;
  }
  friend constexpr bool operator>=(const Dual& a, const Dual& b)
    requires requires { a.value <= b.value; }
  {
    return b.value <= a.value;
  }

  friend constexpr Dual exp(const Dual& x)
    requires detail::HasExp<T>
  {
    const T y = scalar_exp(x.value);
    return {y, along(x.tangent, [&] { return y; })};
  }
  friend constexpr Dual log(const Dual& x)
    requires(detail::HasLog<T> && Field<T>)
  {
    return {scalar_log(x.value), along(x.tangent, [&] { return T(1) / x.value; })};
  }
  friend constexpr Dual expm1(const Dual& x)
    requires detail::HasExp<T>
  {
    return {scalar_expm1(x.value), along(x.tangent, [&] { return scalar_exp(x.value); })};
  }
  friend constexpr Dual log1p(const Dual& x)
    requires(detail::HasLog<T> && Field<T>)
  {
    return {scalar_log1p(x.value), along(x.tangent, [&] { return T(1) / (T(1) + x.value); })};
  }
  friend constexpr Dual sqrt(const Dual& x)
    requires(detail::HasSqrt<T> && Field<T>)
  {
    const T y = scalar_sqrt(x.value);
    return {y, along(x.tangent, [&] { return T(1) / (y + y); })};
  }
  /// The derivative of erfc is -2/sqrt(pi) exp(-x^2).
  friend constexpr Dual erfc(const Dual& x)
    requires(detail::HasErfc<T> && detail::HasExp<T>)
  {
    return {
        scalar_erfc(x.value), along(x.tangent, [&] {
          return T(-(inv_sqrt_pi<T>() + inv_sqrt_pi<T>()) * scalar_exp(T(-(x.value * x.value))));
        })};
  }
  /// x^p for any two duals, constants included. Where only the base moves no logarithm is taken, so
  /// a base of zero or below is fine; d/dx x^0 = 0 everywhere, which keeps all derivatives of x^n
  /// right at x = 0. A base that passes through zero while the exponent moves too, differentiated
  /// twice, has no finite answer in general and gives NaN.
  friend constexpr Dual pow(const Dual& x, const Dual& p)
    requires Transcendental<T>
  {
    const T y = scalar_pow(x.value, p.value);
    const T by_base = along(x.tangent, [&] {
      return identical(p.value, T(0)) ? T(0) : T(p.value * scalar_pow(x.value, T(p.value - T(1))));
    });
    const T by_exponent = along(p.tangent, [&] {
      // 0^p stays 0 while p > 0 moves; the product below would be 0 * -inf.
      const bool stuck_at_zero = identical(x.value, T(0)) && identical(y, T(0));
      return stuck_at_zero ? T(0) : T(y * scalar_log(x.value));
    });
    return {y, by_base + by_exponent};
  }
  /// |x|, with derivative 0 at 0.
  friend constexpr Dual abs(const Dual& x)
    requires OrderedScalar<T>
  {
    return scalar_abs(x);
  }

  friend std::ostream& operator<<(std::ostream& out, const Dual& x) {
    return out << "dual(" << x.value << ", " << x.tangent << ")";
  }

 private:
  // The chain rule. What does not move contributes exactly nothing, even where the slope is
  // infinite: without this a constant 0 under a root would poison its neighbours. `identical`, not
  // ==: an inner level may still be moving.
  template <class Slope>
  static constexpr T along(const T& x_dot, Slope slope) {
    return identical(x_dot, T(0)) ? T(0) : T(slope() * x_dot);
  }
};

template <class T>
struct ScalarTraits<Dual<T>> : DefaultScalarTraits<Dual<T>> {
  static constexpr Dual<T> from_index(Index n) { return {fenestra::from_index<T>(n), T(0)}; }
  static constexpr Dual<T> from_double(double x) { return {fenestra::from_double<T>(x), T(0)}; }
  static constexpr Dual<T> inv_sqrt_pi() { return {fenestra::inv_sqrt_pi<T>(), T(0)}; }
  static constexpr bool is_nan(const Dual<T>& x) { return fenestra::is_nan(x.value); }
  static constexpr Dual<T> abs(const Dual<T>& x) {
    return {fenestra::scalar_abs(x.value), fenestra::sign_of(x.value) * x.tangent};
  }
  static constexpr Dual<T> sign_of(const Dual<T>& x) { return {fenestra::sign_of(x.value), T(0)}; }
  static constexpr bool totally_ordered = ScalarTraits<T>::totally_ordered;
  static constexpr Dual<T> representative(const Dual<T>& x) {
    return Dual<T>(fenestra::representative(x.value));
  }
  static constexpr bool identical(const Dual<T>& a, const Dual<T>& b) {
    return fenestra::identical(a.value, b.value) && fenestra::identical(a.tangent, b.tangent);
  }
};

/// f'(x). Nests: inside f, a further derivative is taken at a point of the type that f receives.
template <class F, class T>
constexpr T derivative(F&& f, const T& x) {
  const Dual<T> y = std::invoke(std::forward<F>(f), Dual<T>(x, T(1)));
  return y.tangent;
}

}  // namespace fenestra

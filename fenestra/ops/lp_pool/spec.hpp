// Lp pooling, executable specification.
//
//   y = (sum over the real cells of the window of |x|^p)^(1/p)
//   dy/dx = sign(x) * (|x|/y)^(p-1), 0 at x = 0 and at an all-zero window
//
// p = 1 needs no power and so runs on every ordered field; other exponents need a scalar with
// `pow`.
#pragma once

#include <fenestra/ops/lp_pool/geometry.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/ops/windows.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/tensor.hpp>

namespace fenestra::spec {

/// base^exponent, exactly base or 1 for the exponents 1 and 0.
template <Field T>
T power(const T& base, const T& exponent) {
  if (exponent == T(1)) {
    return base;
  }
  if (exponent == T(0)) {
    return T(1);
  }
  if constexpr (Transcendental<T>) {
    return scalar_pow(base, exponent);
  } else {
    throw Error(ErrorCode::invalid_exponent,
                "lp_pool: this scalar has no powers\n  fix: p = 1, or a scalar with pow");
  }
}

template <Field T>
T lp_window(const Tensor<T>& x, const LpPoolGeometry& g, Index n, Index c, Index o) {
  const T p = from_double<T>(g.p);
  T sum(0);
  for_each_tap(g.pool.windows, o, Visit::real, [&](const Tap& tap) {
    sum = sum + power(scalar_abs(x[g.pool.x_map().at(n, c, tap.cell)]), p);
  });
  return sum == T(0) ? sum : power(sum, T(1) / p);
}

/// dy/dx of one cell of a window with the value y.
template <Field T>
T lp_slope(const T& x, const T& y, const T& p) {
  if (x == T(0) || y == T(0)) {
    return T(0);
  }
  return sign_of(x) * power(scalar_abs(x) / y, p - T(1));
}

template <Field T>
Tensor<T> lp_pool(const Tensor<T>& x, const LpPoolGeometry& g) {
  require_shape("lp_pool", "x", x, g.pool.x_shape());
  Tensor<T> y(g.pool.y_shape());
  T* out = y.mutable_data();
  for_each_window(g.pool, [&](Index n, Index c, Index o) {
    out[g.pool.y_map().at(n, c, o)] = lp_window(x, g, n, c, o);
  });
  return y;
}

template <Field T>
Tensor<T> lp_pool_vjp(const Tensor<T>& x, const Tensor<T>& y_bar, const LpPoolGeometry& g) {
  require_shape("lp_pool_vjp", "x", x, g.pool.x_shape());
  require_shape("lp_pool_vjp", "y_bar", y_bar, g.pool.y_shape());
  const T p = from_double<T>(g.p);
  Tensor<T> x_bar(x.shape());
  T* out = x_bar.mutable_data();
  for_each_window(g.pool, [&](Index n, Index c, Index o) {
    const T y = lp_window(x, g, n, c, o);
    const T& seed = y_bar[g.pool.y_map().at(n, c, o)];
    for_each_tap(g.pool.windows, o, Visit::real, [&](const Tap& tap) {
      const Index i = g.pool.x_map().at(n, c, tap.cell);
      out[i] = out[i] + seed * lp_slope(x[i], y, p);
    });
  });
  return x_bar;
}

template <Field T>
Tensor<T> lp_pool_jvp(const Tensor<T>& x, const Tensor<T>& x_dot, const LpPoolGeometry& g) {
  require_shape("lp_pool_jvp", "x", x, g.pool.x_shape());
  require_shape("lp_pool_jvp", "x_dot", x_dot, x.shape());
  const T p = from_double<T>(g.p);
  Tensor<T> y_dot(g.pool.y_shape());
  T* out = y_dot.mutable_data();
  for_each_window(g.pool, [&](Index n, Index c, Index o) {
    const T y = lp_window(x, g, n, c, o);
    T sum(0);
    for_each_tap(g.pool.windows, o, Visit::real, [&](const Tap& tap) {
      const Index i = g.pool.x_map().at(n, c, tap.cell);
      sum = sum + lp_slope(x[i], y, p) * x_dot[i];
    });
    out[g.pool.y_map().at(n, c, o)] = sum;
  });
  return y_dot;
}

template <Field T>
Tensor<T> lp_pool(const Tensor<T>& x, const LpPoolOptions& options) {
  return lp_pool(x, lp_pool_geometry(x.shape(), options));
}

}  // namespace fenestra::spec

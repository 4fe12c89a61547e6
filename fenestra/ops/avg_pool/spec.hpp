// Average pooling, executable specification, for fixed windows and adaptive bins alike.
//
//   y[n,c,o] = (sum over the real cells of window o of x[n,c,.]) / divisor(o)
//
// Sum first, then one division. Linear in x, so its JVP is itself; a window with divisor 0 (no real
// cell) is 0.
#pragma once

#include <fenestra/ops/avg_pool/geometry.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/ops/windows.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/tensor.hpp>

namespace fenestra::spec {

template <Field T>
Tensor<T> avg_pool(const Tensor<T>& x, const AvgPoolGeometry& g) {
  require_shape("avg_pool", "x", x, g.pool.x_shape());
  Tensor<T> y(g.pool.y_shape());
  T* out = y.mutable_data();
  for_each_window(g.pool, [&](Index n, Index c, Index o) {
    T sum(0);
    for_each_tap(g.pool.windows, o, Visit::real, [&](const Tap& tap) {
      sum = sum + x[g.pool.x_map().at(n, c, tap.cell)];
    });
    const Index divisor = g.divisor(o);
    if (divisor != 0) {
      out[g.pool.y_map().at(n, c, o)] = sum / from_index<T>(divisor);
    }
  });
  return y;
}

/// x_bar: y_bar / divisor(o), added to every real cell of window o.
template <Field T>
Tensor<T> avg_pool_vjp(const Tensor<T>& y_bar, const AvgPoolGeometry& g) {
  require_shape("avg_pool_vjp", "y_bar", y_bar, g.pool.y_shape());
  Tensor<T> x_bar(g.pool.x_shape());
  T* out = x_bar.mutable_data();
  for_each_window(g.pool, [&](Index n, Index c, Index o) {
    const Index divisor = g.divisor(o);
    if (divisor == 0) {
      return;
    }
    const T share = y_bar[g.pool.y_map().at(n, c, o)] / from_index<T>(divisor);
    for_each_tap(g.pool.windows, o, Visit::real, [&](const Tap& tap) {
      T& cell = out[g.pool.x_map().at(n, c, tap.cell)];
      cell = cell + share;
    });
  });
  return x_bar;
}

template <Field T>
Tensor<T> avg_pool(const Tensor<T>& x, const AvgPoolOptions& options) {
  return avg_pool(x, avg_pool_geometry(x.shape(), options));
}

}  // namespace fenestra::spec

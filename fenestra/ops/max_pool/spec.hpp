// Max pooling, executable specification, for fixed windows and adaptive bins alike.
//
//   y[n,c,o] = max over the cells of window o of x[n,c,.]
//
// The first cell in row-major order that no later cell beats wins; NaN beats every number. Value,
// index, VJP and JVP all follow that one winner. A window without a real cell has value 0, index -1
// and no gradient; so has a window that a padded zero wins (`pad_cells = zero`).
#pragma once

#include <fenestra/ops/max_pool/geometry.hpp>
#include <fenestra/ops/placement.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/ops/windows.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/tensor.hpp>

namespace fenestra::spec {

/// The winning cell of every window, flat over the spatial extents of one sample and channel;
/// `kNowhere` for none.
template <OrderedScalar T>
void max_pool_indices(const T* x, const MaxPoolGeometry& g, Index* out) {
  const T zero(0);
  for_each_window(g.pool, [&](Index n, Index c, Index o) {
    const T* best = nullptr;
    Index winner = kNowhere;
    for_each_tap(g.pool.windows, o, g.visit(), [&](const Tap& tap) {
      const bool real = tap.cell >= 0;
      const T* candidate = real ? x + g.pool.x_map().at(n, c, tap.cell) : &zero;
      if (best != nullptr && !beats(*candidate, *best)) {
        return;
      }
      best = candidate;
      winner = tap.cell;
    });
    out[g.pool.y_map().at(n, c, o)] = winner;
  });
}
template <OrderedScalar T>
Tensor<Index> max_pool_indices(const Tensor<T>& x, const MaxPoolGeometry& g) {
  require_shape("max_pool", "x", x, g.pool.x_shape());
  auto indices = Tensor<Index>::uninitialised(g.pool.y_shape());
  max_pool_indices(x.data(), g, indices.mutable_data());
  return indices;
}

/// Values only. A scalar without a total order (intervals) is folded with `scalar_max`, which
/// encloses every possible winner; the others read the winner itself.
template <Scalar T>
Tensor<T> max_pool(const Tensor<T>& x, const MaxPoolGeometry& g) {
  if constexpr (TotallyOrdered<T>) {
    return gather(x, max_pool_indices(x, g), g.pool.x_map(), g.pool.y_map());
  } else {
    require_shape("max_pool", "x", x, g.pool.x_shape());
    Tensor<T> y(g.pool.y_shape());
    T* out = y.mutable_data();
    for_each_window(g.pool, [&](Index n, Index c, Index o) {
      bool any = false;
      T best(0);
      for_each_tap(g.pool.windows, o, g.visit(), [&](const Tap& tap) {
        const bool real = tap.cell >= 0;
        const T candidate = real ? x[g.pool.x_map().at(n, c, tap.cell)] : T(0);
        best = any ? scalar_max(best, candidate) : candidate;
        any = true;
      });
      out[g.pool.y_map().at(n, c, o)] = best;
    });
    return y;
  }
}

/// x_bar: y_bar added to the winner of each window.
template <Scalar T>
Tensor<T> max_pool_vjp(const Tensor<Index>& indices,
                       const Tensor<T>& y_bar,
                       const MaxPoolGeometry& g) {
  require_shape("max_pool_vjp", "indices", indices, g.pool.y_shape());
  require_shape("max_pool_vjp", "y_bar", y_bar, g.pool.y_shape());
  return scatter(y_bar, indices, g.pool.x_map(), g.pool.y_map(), g.pool.x_shape());
}

/// y_dot: x_dot read at the winner of each window.
template <Scalar T>
Tensor<T> max_pool_jvp(const Tensor<Index>& indices,
                       const Tensor<T>& x_dot,
                       const MaxPoolGeometry& g) {
  require_shape("max_pool_jvp", "indices", indices, g.pool.y_shape());
  require_shape("max_pool_jvp", "x_dot", x_dot, g.pool.x_shape());
  return gather(x_dot, indices, g.pool.x_map(), g.pool.y_map());
}

template <Scalar T>
Tensor<T> max_pool(const Tensor<T>& x, const MaxPoolOptions& options) {
  return max_pool(x, max_pool_geometry(x.shape(), options));
}

template <OrderedScalar T>
Tensor<Index> max_pool_indices(const Tensor<T>& x, const MaxPoolOptions& options) {
  return max_pool_indices(x, max_pool_geometry(x.shape(), options));
}

}  // namespace fenestra::spec

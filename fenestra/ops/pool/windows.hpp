// The loop over all windows of a pool, on which the specifications of all pools stand.
#pragma once

#include <fenestra/ops/pool/geometry.hpp>
#include <fenestra/tensor/tensor.hpp>

namespace fenestra::spec {

/// Calls f(n, c, o) for every window of a pool.
template <class F>
void for_each_window(const PoolGeometry& g, F&& f) {
  const Index windows = g.windows.out_cells();
  for (Index n = 0; n < (g.channels > 0 ? g.batch : 0); ++n) {
    for (Index c = 0; c < g.channels; ++c) {
      for (Index o = 0; o < windows; ++o) {
        f(n, c, o);
      }
    }
  }
}

/// y[n,c,o] = value(n, c, o)
template <class T, class F>
Tensor<T> tensor_of_windows(const PoolGeometry& g, const F& value) {
  Tensor<T> y(g.y_shape());
  T* out = y.mutable_data();
  for_each_window(g,
                  [&](Index n, Index c, Index o) { out[g.y_map().at(n, c, o)] = value(n, c, o); });
  return y;
}

/// Calls f(offset) for the taps of a window that take part, in row-major order: where the cell is
/// in x, -1 for declared padding.
template <class F>
void for_each_cell(const PoolGeometry& g, Index n, Index c, Index o, Visit visit, const F& f) {
  for_each_tap(g.windows, o, visit, [&](const Tap& tap) {
    f(tap.cell >= 0 ? g.x_map().at(n, c, tap.cell) : Index{-1});
  });
}

}  // namespace fenestra::spec

// The loop over all windows of a pool, shared by the pools' specifications.
#pragma once

#include <fenestra/ops/pool_geometry.hpp>

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

}  // namespace fenestra::spec

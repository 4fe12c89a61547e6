// How the dense convolution sees the axes of a problem: the phases whose cells see the same taps,
// and axes that are one. Part of dense.cpp, which includes it. Internal: not installed.
#pragma once

#include <fenestra/ops/conv/kernels/direct_axes.hpp>
#include <fenestra/spec/window_walk.hpp>

namespace fenestra::detail {

/// Taps that the cells of a row phase and a column phase see.
struct DensePhase {
  Index row = 0;
  Index column = 0;
  Index begin = 0;  // of its taps, in the list of all
  Index taps = 0;
};

/// Windows of one cell that move by one and leave no cell out: all cells are one row.
inline bool is_plain(const ConvGeometry& g) {
  for (int a = 0; a < g.rank(); ++a) {
    if (!window_series(g.windows[a]).is_identity()) {
      return false;
    }
  }
  return true;
}

inline Windows joined(const ConvGeometry& g) {
  if (!is_plain(g)) {
    return g.windows;
  }
  WindowAxis all;
  all.in = all.out = g.windows.in_cells();
  Windows windows;
  windows.push_back(all);
  return windows;
}

}  // namespace fenestra::detail

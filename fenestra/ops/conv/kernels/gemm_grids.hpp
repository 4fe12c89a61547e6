// What a convolution as a matrix product walks over: the cells and taps of one group as grids of
// patches, forward and, phase by phase of the stride, for the input gradient. Internal: not
// installed.
#pragma once

#include <fenestra/ops/conv/candidates.hpp>
#include <fenestra/ops/conv/kernels/patches.hpp>

#include <algorithm>

namespace fenestra::detail {

/// Element strides of an activation: of a sample, of a cell along each axis, of a channel.
struct ActivationStrides {
  Index sample = 0;
  Index axis[kMaxSpatialRank] = {};
  Index channel = 0;

  ActivationStrides(const ActivationMap& map, const Shape& spatial) {
    const bool last = map.layout == Layout::channels_last;
    sample = map.channels * map.cells;
    channel = last ? 1 : map.cells;
    Index stride = last ? map.channels : 1;
    for (int a = spatial.rank() - 1; a >= 0; --a) {
      axis[a] = stride;
      stride *= spatial[a];
    }
  }
};

/// What one group of a convolution works on.
template <class T>
struct Group {
  const ConvGeometry& g;
  const ConvArguments<T>& arguments;
  Index group = 0;
  ActivationStrides x;
  ActivationStrides y;
};

/// Joins neighbouring axes that together are one plain axis, as in a 1x1 convolution.
inline void collapse(PatchGrid& grid) {
  for (int a = grid.rank - 1; a > 0; --a) {
    GridAxis& outer = grid.axes[a - 1];
    const GridAxis& inner = grid.axes[a];
    if (!outer.is_identity() || !inner.is_identity() ||
        outer.source_stride != inner.extent * inner.source_stride ||
        outer.target_stride != inner.count * inner.target_stride) {
      continue;
    }
    outer.count *= inner.count;
    outer.extent = outer.count;
    outer.source_stride = inner.source_stride;
    outer.target_stride = inner.target_stride;
    std::copy(grid.axes + a + 1, grid.axes + grid.rank, grid.axes + a);
    --grid.rank;
  }
}

inline PatchGrid batch_grid(const ConvGeometry& g, Index source_sample, Index target_sample) {
  PatchGrid grid;
  grid.channels_last = g.layout == Layout::channels_last;
  grid.axes[0] = {{.count = g.batch, .extent = g.batch}, source_sample, target_sample};
  grid.rank = 1;
  return grid;
}

/// The windows over x; results at the cells of y.
template <class T>
PatchGrid plain_window_grid(const Group<T>& s) {
  PatchGrid grid = batch_grid(s.g, s.x.sample, s.y.sample);
  grid.channels = s.g.group_in();
  grid.channel_stride = s.x.channel;
  for (int a = 0; a < s.g.rank(); ++a) {
    grid.axes[grid.rank++] = {window_series(s.g.windows[a]), s.x.axis[a], s.y.axis[a]};
  }
  return grid;
}

template <class T>
PatchGrid window_grid(const Group<T>& s) {
  PatchGrid grid = plain_window_grid(s);
  collapse(grid);
  return grid;
}

/// True where the target cells of all axes from `first` on are adjacent, `unit` elements apart.
inline bool is_dense_target(const PatchGrid& grid, int first, Index unit) {
  for (int a = grid.rank - 1; a >= first; --a) {
    if (grid.axes[a].count != 1 && grid.axes[a].target_stride != unit) {
      return false;
    }
    unit *= grid.axes[a].count;
  }
  return true;
}

}  // namespace fenestra::detail

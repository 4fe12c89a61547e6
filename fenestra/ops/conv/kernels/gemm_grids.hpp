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
  const auto plain = [](const GridAxis& a) {
    return a.taps == 1 && a.step == 1 && a.base == 0 && a.count == a.extent;
  };
  for (int a = grid.rank - 1; a > 0; --a) {
    GridAxis& outer = grid.axes[a - 1];
    const GridAxis& inner = grid.axes[a];
    if (!plain(outer) || !plain(inner) ||
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
  grid.axes[0] = {.count = g.batch,
                  .extent = g.batch,
                  .source_stride = source_sample,
                  .target_stride = target_sample};
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
    const WindowAxis& axis = s.g.windows[a];
    grid.axes[grid.rank++] = {.count = axis.out,
                              .step = axis.stride,
                              .extent = axis.in,
                              .base = axis.window(0).first,
                              .taps = axis.kernel,
                              .tap_step = axis.dilation,
                              .source_stride = s.x.axis[a],
                              .target_stride = s.y.axis[a]};
  }
  return grid;
}

template <class T>
PatchGrid window_grid(const Group<T>& s) {
  PatchGrid grid = plain_window_grid(s);
  collapse(grid);
  return grid;
}

/// One axis of a stride phase: its cells of x and the taps that see them.
struct PhaseAxis {
  Index first_cell = 0;
  Index first_tap = 0;
  Index tap_stride = 1;
  GridAxis grid;
};

inline PhaseAxis phase_axis(const WindowAxis& axis, Index phase) {
  const Progression cells = axis.phase_cells(phase);
  const Progression taps = axis.phase_taps(phase);
  PhaseAxis result;
  result.first_cell = cells.first;
  result.first_tap = taps.first;
  result.tap_stride = taps.step;
  result.grid.count = cells.count;
  result.grid.extent = axis.out;
  result.grid.taps = taps.count;
  result.grid.base = taps.count > 0 ? axis.window_through(taps.first, cells.first).value_or(0) : 0;
  result.grid.tap_step = -axis.windows_apart();
  return result;
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

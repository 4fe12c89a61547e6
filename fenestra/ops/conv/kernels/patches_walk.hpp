// How the cells of a patch grid are walked: runs of cells, clipped to the source under a tap, and
// the plan by which source rows are staged. The part of patches.cpp that no instruction set
// changes. Internal: not installed.
#pragma once

#include <fenestra/kernels/gemm.hpp>
#include <fenestra/ops/conv/kernels/patches.hpp>

#include <algorithm>

namespace fenestra::detail {

/// Positions on all axes, counted row-major.
struct Odometer {
  Index at[kMaxGridRank] = {};

  template <class Extent>
  void set(const PatchGrid& g, Index flat, Extent extent) {
    for (int a = g.rank - 1; a >= 0; --a) {
      const Index n = extent(g.axes[a]);
      at[a] = flat % n;
      flat /= n;
    }
  }
  /// Steps axis `a`, and those outside it as it wraps.
  template <class Extent>
  void step(const PatchGrid& g, int a, Extent extent) {
    for (; a >= 0 && ++at[a] == extent(g.axes[a]); --a) {
      at[a] = 0;
    }
  }
};

inline Index count_of(const GridAxis& axis) { return axis.count; }
inline Index taps_of(const GridAxis& axis) { return axis.taps; }

/// Cells that follow each other on the innermost axis: `length` lines from `line` on, and the
/// source coordinates that tap 0 of the first one looks at.
struct Run {
  Index line;
  Index length;
  Index origin[kMaxGridRank];
};

/// Walks the cells [first, first + count) run by run.
class Runs {
 public:
  Runs(const PatchGrid& grid, Index first, Index count) : grid_(grid), left_(count) {
    cell_.set(grid, first, count_of);
  }
  bool next(Run& run) {
    if (left_ == 0) {
      return false;
    }
    const int inner = grid_.rank - 1;
    run.line = line_;
    run.length = std::min(left_, grid_.axes[inner].count - cell_.at[inner]);
    for (int a = 0; a <= inner; ++a) {
      run.origin[a] = grid_.axes[a].window(cell_.at[a]).first;
    }
    line_ += run.length;
    left_ -= run.length;
    cell_.at[inner] += run.length - 1;
    cell_.step(grid_, inner, count_of);
    return true;
  }
  const Odometer& cell() const { return cell_; }

 private:
  const PatchGrid& grid_;
  Odometer cell_;
  Index line_ = 0;
  Index left_;
};

/// The shift of a tap on every axis.
inline void tap_shift(const PatchGrid& g, const Odometer& tap, Index* shift) {
  for (int a = 0; a < g.rank; ++a) {
    shift[a] = g.axes[a].shift(tap.at[a]);
  }
}

/// The lines of a run that look at the source: `length` from `line` on, the first at `offset`.
struct Piece {
  Index line;
  Index length;
  Index offset;
};

inline bool clip(const PatchGrid& g, const Run& run, const Index* shift, Piece& piece) {
  const int inner = g.rank - 1;
  Index offset = 0;
  for (int a = 0; a < inner; ++a) {
    const Index c = run.origin[a] + shift[a];
    if (!g.axes[a].has(c)) {
      return false;
    }
    offset += c * g.axes[a].source_stride;
  }
  const GridAxis& axis = g.axes[inner];
  const Index c = run.origin[inner] + shift[inner];
  const TapRange seeing = axis.seeing(c, run.length);
  if (seeing.count() == 0) {
    return false;
  }
  piece = {run.line + seeing.begin,
           seeing.count(),
           offset + (c + seeing.begin * axis.step) * axis.source_stride};
  return true;
}

/// The widest panel: 4 vectors of 16 floats.
inline constexpr Index kMaxWidth = 64;

/// How the source rows behind a block of cells are staged: for each channel, each tap of the outer
/// axes and each row of cells, `step` phases of `length` elements. Element i of phase p is what
/// cell i looks at under a shift of least_shift + p.
struct StagePlan {
  Index channel0 = 0;
  Index channels = 0;
  Index outer_taps = 1;
  Index row0 = 0;
  Index rows = 0;
  Index least_shift = 0;
  Index length = 0;
  Index pitch = 0;
  Index plane = 0;  ///< elements from one (channel, outer tap) to the next
  static constexpr Index kLine = 16;

  StagePlan(const PatchGrid& g, const kernels::PanelRange& range) {
    const GridAxis& inner = g.axes[g.rank - 1];
    const Index taps = g.taps();
    outer_taps = taps / inner.taps;
    channel0 = range.k0 / taps;
    channels = (range.k1 - 1) / taps + 1 - channel0;
    row0 = range.first / inner.count;
    rows = (range.first + range.count - 1) / inner.count + 1 - row0;
    least_shift = inner.least_shift();
    length = row_length(inner);
    pitch = length * inner.step;
    // An odd number of cache lines: planes a power of two apart would fall into few sets.
    plane = ((rows * pitch + kLine - 1) / kLine | 1) * kLine;
  }
  /// A vector may be loaded from the last cell on.
  Index elements() const { return channels * outer_taps * plane + kMaxWidth; }
  /// Where tap j of the innermost axis finds its first cell in a staged row.
  Index place(const GridAxis& inner, Index j) const {
    return Dealing{inner.step}.offset(inner.shift(j) - least_shift, length);
  }
  static Index row_length(const GridAxis& inner) {
    return inner.count + Dealing{inner.step}.place(inner.reach());
  }
  /// Staged rows serve as they are where most panels lie within one row of cells; else they save
  /// little but the clipping of each tap, which many channels share anyway. Measured: rows of 14
  /// cells with 256 channels lose a tenth, rows of 128 with 16 channels gain a third.
  static bool pays(const PatchGrid& g) {
    const GridAxis& inner = g.axes[g.rank - 1];
    return inner.taps > 1 && inner.count >= 8 && (inner.count >= 32 || g.channels < 16) &&
           inner.step <= 4 && inner.source_stride == 1 &&
           row_length(inner) * inner.step <= inner.count * inner.taps;
  }
};

/// Staged rows.
template <class T>
struct Stage {
  StagePlan plan;
  Index row_cells;
  const T* rows;
  const Index* offsets;  ///< of depth k0, k0 + 1, ...: where cell 0 of row 0 finds its element

  /// The first element of a panel, null where it does not lie within one row of cells.
  const T* find(const kernels::PanelRange& panel) const {
    const Index column = panel.first % row_cells;
    const Index row = panel.first / row_cells - plan.row0;
    return column + panel.count <= row_cells ? rows + row * plan.pitch + column : nullptr;
  }
};

}  // namespace fenestra::detail

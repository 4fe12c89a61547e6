// How the kernels of all pools see windows: which cells a window sees, and which windows see a
// cell. Plain code; the vectors are in vectors-inl.hpp. Internal: not installed.
//
// A tensor is seen as planes of rows: channels first, a plane is one channel of one sample and a
// row holds one number per cell; channels last, a plane is one sample and a row holds `inner`
// channels per cell. A pool turns source rows into destination rows: cells into windows (forward)
// or windows into cells (adjoint).
#pragma once

#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/pool/geometry.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace fenestra::pooling {

using kernels::ScratchFrame;

/// The windows of one call with at least one axis above the rows.
class Plan {
 public:
  Windows windows;
  Index planes = 0;
  Index inner = 1;  ///< numbers per cell
  bool to_cells = false;
  bool padded_links = false;  ///< forward: declared padding is linked too, as source -1

  explicit Plan(const PoolGeometry& g, bool adjoint, bool link_padding = false)
      : to_cells(adjoint), padded_links(link_padding) {
    const bool first = g.layout == Layout::channels_first;
    planes = first ? g.batch * g.channels : g.batch;
    inner = first ? 1 : g.channels;
    if (g.rank() == 1) {
      windows.push_back(WindowAxis{});  // one row
    }
    for (int axis = 0; axis < g.rank(); ++axis) {
      windows.push_back(g.windows[axis].simplified());
    }
    for (int axis = 0; axis < outer_axes(); ++axis) {
      dest_rows_ *= dest(axis);
      source_rows_ *= source(axis);
    }
    dest_row_size_ = dest(outer_axes()) * inner;
    source_row_size_ = source(outer_axes()) * inner;
  }

  const WindowAxis& last() const { return windows[windows.rank() - 1]; }
  int outer_axes() const { return windows.rank() - 1; }
  /// Why rows cannot be walked by phases and steps, or null where they can. What is kept for them
  /// follows the extent that windows span, which padding, strides and dilations can make far larger
  /// than the row.
  const char* refuse_rows() const;
  Index dest(int axis) const { return to_cells ? windows[axis].in : windows[axis].out; }
  Index source(int axis) const { return to_cells ? windows[axis].out : windows[axis].in; }
  /// Rows of a plane; numbers of a row and of a plane.
  Index dest_rows() const { return dest_rows_; }
  Index source_rows() const { return source_rows_; }
  Index dest_row_size() const { return dest_row_size_; }
  Index source_row_size() const { return source_row_size_; }
  Index dest_plane_size() const { return dest_rows_ * dest_row_size_; }
  Index source_plane_size() const { return source_rows_ * source_row_size_; }

 private:
  Index dest_rows_ = 1;
  Index source_rows_ = 1;
  Index dest_row_size_ = 0;
  Index source_row_size_ = 0;
};

/// Calls f(source, tap, taps of the window) for what is linked to `dest` on one axis, in ascending
/// order of the source. Forward with `padded`: a declared padded cell is the source -1.
template <class F>
constexpr void for_each_link(
    const WindowAxis& a, bool to_cells, Index dest, bool padded, const F& f) {
  if (to_cells) {
    const Progression windows = a.windows_of_cell(dest);
    for (Index i = 0, o = windows.first; i < windows.count; ++i, o += windows.step) {
      const Window window = a.window(o);
      f(o, window.tap(dest), window.taps);
    }
    return;
  }
  const Window window = a.window(dest);
  const TapRange taps = a.taps(window, padded ? Visit::declared : Visit::real);
  for (Index t = taps.begin; t < taps.end; ++t) {
    const Index cell = window.cell(t);
    f(a.is_real(cell) ? cell : Index{-1}, t, window.taps);
  }
}

/// One window over one cell of a row.
struct CellLink {
  Index cell = 0;
  Index window = 0;
  Index tap = 0;
};

/// Lists the windows over the cells of the steps [begin, end), ascending; returns their number.
inline Index list_cell_links(const WindowAxis& a, Index begin, Index end, CellLink* links) {
  const IndexRange cells = a.step_cells({begin, end});
  Index count = 0;
  for (Index cell = cells.begin; cell < cells.end; ++cell) {
    for_each_link(a, true, cell, false, [&](Index o, Index tap, Index) {
      links[count++] = {cell, o, tap};
    });
  }
  return count;
}

/// Windows along the last axis that a block of cells may be computed from: those of its steps that
/// exist, and how many there would be before them.
struct StepWindows {
  IndexRange windows;
  Index missing = 0;

  StepWindows() = default;
  StepWindows(const WindowAxis& a, const IndexRange& steps) {
    const IndexRange all = a.windows_of_steps(steps);
    const TapRange existing = taps_within({all.begin, 1, all.count()}, 0, a.out);
    windows = {all.begin + existing.begin, all.begin + existing.end};
    missing = existing.begin;
  }
};

/// Calls f(t, steps) for the taps of a phase, by which the windows over a cell ascend: tap t is
/// that of the window so many steps behind the first that any tap could see the cell from.
template <class F>
void for_each_phase_tap(const WindowAxis& a, Index phase, const F& f) {
  const Progression taps = a.phase_taps(phase);
  for (Index i = taps.count - 1; i >= 0; --i) {
    f(taps.at(i), a.last_step() - a.tap_step(taps.at(i)));
  }
}

/// No `dest` on this axis has more links.
constexpr Index most_links(const WindowAxis& a, bool to_cells, bool padded) {
  return to_cells ? a.most_windows() : a.most_taps(padded ? Visit::declared : Visit::real);
}

/// A source row of a destination row, and the number of the tap on the axes above the rows.
struct RowLink {
  Index source = 0;  ///< flat over the axes above the rows; -1: padding
  Index tap = 0;
};

inline Index most_row_links(const Plan& plan) {
  Index most = 1;
  for (int axis = 0; axis < plan.outer_axes(); ++axis) {
    most *= most_links(plan.windows[axis], plan.to_cells, plan.padded_links);
  }
  return most;
}

/// The links of destination row `dest` (flat), row-major, into `links`; `spare` is as large.
/// Returns their number; the result is always in `links`.
inline Index row_links(const Plan& plan, Index dest, RowLink* links, RowLink* spare) {
  Index position[kMaxSpatialRank] = {};
  for (int axis = plan.outer_axes() - 1; axis >= 0; --axis) {
    position[axis] = dest % plan.dest(axis);
    dest /= plan.dest(axis);
  }
  RowLink* from = plan.outer_axes() % 2 == 0 ? links : spare;
  RowLink* to = plan.outer_axes() % 2 == 0 ? spare : links;
  from[0] = {};
  Index count = 1;
  for (int axis = 0; axis < plan.outer_axes(); ++axis) {
    Index next = 0;
    for (Index i = 0; i < count; ++i) {
      const RowLink base = from[i];
      const auto append = [&](Index source, Index tap, Index taps) {
        const bool padding = base.source < 0 || source < 0;
        to[next++] = {padding ? -1 : base.source * plan.source(axis) + source,
                      base.tap * taps + tap};
      };
      for_each_link(plan.windows[axis], plan.to_cells, position[axis], plan.padded_links, append);
    }
    count = next;
    std::swap(from, to);
  }
  return count;
}

/// Columns of one tile on the last axis: windows, or the steps of the stride that cells have. Every
/// tap of a row of windows is a run of consecutive steps of its phase, whatever the stride and the
/// dilation.
using Columns = IndexRange;

/// A vector may read this many numbers past the end of a run in a tile.
inline constexpr Index kSlack = 16;

inline const char* Plan::refuse_rows() const {
  const WindowAxis& a = last();
  if (a.rule == ExtentRule::adaptive) {
    return "bins of unequal size along the last axis";
  }
  constexpr Index kFactor = 32;  // 16 numbers of slack for each of as many phases as cells, twice
  constexpr Index kFree = 4096;  // numbers: half of an L1 cache
  const Checked kept = Checked(a.stride) * (Checked(a.out) + a.last_step() + kSlack);
  const Checked row = Checked(kFactor) * (Checked(a.in) + a.out) + kFree;
  return kept.ok() && kept.value() <= row.value() ? nullptr : "windows span far more than the row";
}

/// Items one thread takes at a time: half a million bytes of floats, so that taking them and
/// setting up their tile costs nothing, but never more than an eighth of all.
inline Index grain_of(Index items, Index numbers_per_item) {
  constexpr Index kAlone = 16384;  // numbers that cost less than to wake another thread
  if (items <= kAlone / std::max<Index>(numbers_per_item, 1)) {
    return std::max<Index>(items, 1);
  }
  const Index wanted = 131072 / std::max<Index>(numbers_per_item, 1);
  return std::max<Index>(std::min(wanted, items / 8), 1);
}

/// True where each plane is one window over all its cells, which are beside each other.
inline bool is_whole(const PoolGeometry& g) {
  if (g.layout != Layout::channels_first) {
    return false;
  }
  const Plan plan(g, false);
  for (int axis = 0; axis < plan.windows.rank(); ++axis) {
    const WindowAxis& a = plan.windows[axis];
    if (a.out != 1 || a.kernel != a.in || a.span() != a.in || a.pad_low != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace fenestra::pooling

// How the direct convolution sees a problem: axes split into outer ones, rows and columns, and the
// planes of a tensor. Shared by its three directions. Internal: not installed.
#pragma once

#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/conv/candidates.hpp>

namespace fenestra::detail {

// A strip leaves room for weights and targets in a first-level cache of 32 KiB.
inline constexpr Index kStripBytes = 24 * 1024;
// Multiply-adds below which waking threads (some 5 us) costs more than they save.
inline constexpr Index kSerialWork = 200'000;

constexpr Index ceil_of(Index a, Index b) { return (a + b - 1) / b; }
constexpr Index round_up(Index a, Index b) { return ceil_of(a, b) * b; }

/// The axes of a problem as the loops see them: outer ones, rows, columns.
struct Axes {
  WindowAxis outer[kMaxSpatialRank];
  int outer_rank = 0;
  WindowAxis row;
  WindowAxis column;

  explicit Axes(const Windows& windows) : column(windows[windows.rank() - 1]) {
    if (windows.rank() >= 2) {
      row = windows[windows.rank() - 2];
    }
    for (int a = 0; a + 2 < windows.rank(); ++a) {
      outer[outer_rank++] = windows[a];
    }
  }
  Index outer_product(Index WindowAxis::*member) const {
    Index n = 1;
    for (int a = 0; a < outer_rank; ++a) {
      n *= outer[a].*member;
    }
    return n;
  }
};

/// Calls f(tap, source cell) for the taps through which target cell `q` sees a cell of the source.
template <class F>
void for_each_source(const WindowAxis& axis, bool transposed, Index q, F&& f) {
  if (!transposed) {
    const Window window = axis.window(q);
    const TapRange taps = axis.taps(window, Visit::real);
    for (Index t = taps.begin; t < taps.end; ++t) {
      f(t, window.cell(t));
    }
    return;
  }
  for (Index t = 0; t < axis.kernel; ++t) {
    const std::optional<Index> window = axis.window_through(t, q);
    if (window && *window >= 0 && *window < axis.out) {
      f(t, *window);
    }
  }
}

/// Calls f(outer tap, source cell) over all outer axes for the flat outer target cell `q`.
template <class F>
void for_each_outer(const Axes& axes, bool transposed, Index q, F&& f) {
  Index cell[kMaxSpatialRank] = {};
  for (int a = axes.outer_rank - 1; a >= 0; --a) {
    const Index extent = transposed ? axes.outer[a].in : axes.outer[a].out;
    cell[a] = q % extent;
    q /= extent;
  }
  const auto visit = [&](auto&& self, int a, Index tap, Index source) -> void {
    if (a == axes.outer_rank) {
      f(tap, source);
      return;
    }
    for_each_source(axes.outer[a], transposed, cell[a], [&](Index t, Index c) {
      self(self,
           a + 1,
           tap * axes.outer[a].kernel + t,
           source * (transposed ? axes.outer[a].out : axes.outer[a].in) + c);
    });
  };
  visit(visit, 0, 0, 0);
}

/// Planes of one job: where they lie and their numbers in the weights.
template <class T>
struct PlaneList {
  const T** data = nullptr;
  Index* weight_plane = nullptr;
  Index count = 0;

  void take(kernels::ScratchFrame& frame, Index most) {
    data = frame.take<const T*>(most);
    weight_plane = frame.take<Index>(most);
  }
  /// The planes of `channels` channels from `base` on that outer target cell `q` sees.
  void fill(const Axes& axes,
            bool transposed,
            Index q,
            const T* base,
            Index channels,
            Index channel_stride,
            Index plane_cells) {
    count = 0;
    if (axes.outer_rank == 0) {
      for (; count < channels; ++count) {
        data[count] = base + count * channel_stride;
        weight_plane[count] = count;
      }
      return;
    }
    const Index outer_taps = axes.outer_product(&WindowAxis::kernel);
    for (Index c = 0; c < channels; ++c) {
      for_each_outer(axes, transposed, q, [&](Index tap, Index cell) {
        data[count] = base + c * channel_stride + cell * plane_cells;
        weight_plane[count++] = c * outer_taps + tap;
      });
    }
  }
};

}  // namespace fenestra::detail

// What reads and stores cells without vectors of its own; see patches.hpp.
#include <fenestra/ops/conv/kernels/patches.hpp>
#include <fenestra/ops/conv/kernels/patches_walk.hpp>

#include <fenestra/kernels/scratch.hpp>

#include <algorithm>

namespace fenestra::detail {

template <class T>
void CellPanels<T>::pack(const kernels::PanelRange& range, Index width, T* dst) const {
  const PatchGrid& g = patches_.grid;
  const Index depth = range.k1 - range.k0;
  const GridAxis& inner = g.axes[g.rank - 1];
  const Index step = inner.step * inner.source_stride;
  Index shift[kMaxGridRank];
  for (Index line = 0; line < range.count; line += width, dst += width * depth) {
    std::fill(dst, dst + width * depth, T(0));
    for (Index k = range.k0; k < range.k1;) {
      const Index channel = k % g.channels;
      const Index length = std::min(range.k1 - k, g.channels - channel);
      Odometer tap;
      tap.set(g, k / g.channels, taps_of);
      tap_shift(g, tap, shift);
      Runs walk(g, range.first + line, std::min(width, range.count - line));
      Run run;
      Piece piece;
      while (walk.next(run)) {
        if (!clip(g, run, shift, piece)) {
          continue;
        }
        for (Index l = 0; l < piece.length; ++l) {
          const T* src = patches_.data + piece.offset + l * step + channel;
          T* out = dst + (k - range.k0) * width + piece.line + l;
          for (Index c = 0; c < length; ++c) {
            out[c * width] = src[c];
          }
        }
      }
      k += length;
    }
  }
}

template <class T>
void CellRows<T>::starts(Index first, Index count, Index s0, Index s1, const T** table) const {
  const PatchGrid& g = patches_.grid;
  const GridAxis& inner = g.axes[g.rank - 1];
  const Index step = inner.step * inner.source_stride;
  Index shift[kMaxGridRank];
  Odometer tap;
  tap.set(g, s0, taps_of);
  for (Index s = s0; s < s1; ++s, table += count, tap.step(g, g.rank - 1, taps_of)) {
    tap_shift(g, tap, shift);
    Runs walk(g, first, count);
    Run run;
    while (walk.next(run)) {
      Piece piece{run.line, 0, 0};
      clip(g, run, shift, piece);
      for (Index l = run.line; l < run.line + run.length; ++l) {
        const bool real = l >= piece.line && l < piece.line + piece.length;
        table[l] = real ? patches_.data + piece.offset + (l - piece.line) * step : patches_.zeros;
      }
    }
  }
}

namespace {

/// Calls f(column, length, offset) for the runs of cells [first, last) of a target.
template <class F>
void for_each_target_run(const PatchGrid& g, Index first, Index last, F&& f) {
  Odometer cell;
  cell.set(g, first, count_of);
  const int inner = g.rank - 1;
  for (Index j = first; j < last;) {
    const Index length = std::min(last - j, g.axes[inner].count - cell.at[inner]);
    Index offset = 0;
    for (int a = 0; a <= inner; ++a) {
      offset += cell.at[a] * g.axes[a].target_stride;
    }
    f(j - first, length, offset);
    j += length;
    cell.at[inner] += length - 1;
    cell.step(g, inner, count_of);
  }
}

}  // namespace

template <class T>
void CellSink<T>::store(const kernels::TileRange& range, const T* tile, Index ld) const {
  const GridTarget<T>& t = target_;
  const Index step = t.grid->axes[t.grid->rank - 1].target_stride;
  for_each_target_run(*t.grid, range.j0, range.j1, [&](Index column, Index length, Index offset) {
    for (Index i = range.i0; i < range.i1; ++i) {
      T* out = t.data + offset + i * t.channel_stride;
      const T* from = tile + (i - range.i0) * ld + column;
      for (Index l = 0; l < length; ++l) {
        out[l * step] = from[l];
      }
    }
  });
}

template <class T>
void ChannelSink<T>::store(const kernels::TileRange& range, const T* tile, Index ld) const {
  const GridTarget<T>& t = target_;
  const Index step = t.grid->axes[t.grid->rank - 1].target_stride;
  for_each_target_run(*t.grid, range.i0, range.i1, [&](Index row, Index length, Index offset) {
    for (Index l = 0; l < length; ++l) {
      const T* from = tile + (row + l) * ld;
      std::copy(from, from + (range.j1 - range.j0), t.data + offset + l * step + range.j0);
    }
  });
}

template <class T>
void restore_rows(T* x, Index rows, Index length, Index step) {
  if (step == 1) {
    return;
  }
  kernels::ScratchFrame frame;
  T* row = frame.take<T>(length);
  for (Index r = 0; r < rows; ++r, x += length) {
    std::copy(x, x + length, row);
    const T* from = row;
    const Dealing dealing{step};
    for (Index phase = 0; phase < std::min(step, length); ++phase) {
      const Index places = dealing.places(phase, length);
      for (Index place = 0; place < places; ++place) {
        x[dealing.position(phase, place)] = *from++;
      }
    }
  }
}

#define FENESTRA_INSTANTIATE_CELLS(T) \
  template class CellPanels<T>;       \
  template class CellRows<T>;         \
  template class CellSink<T>;         \
  template class ChannelSink<T>;      \
  template void restore_rows(T*, Index, Index, Index)

FENESTRA_INSTANTIATE_CELLS(float);
FENESTRA_INSTANTIATE_CELLS(double);
#undef FENESTRA_INSTANTIATE_CELLS

}  // namespace fenestra::detail

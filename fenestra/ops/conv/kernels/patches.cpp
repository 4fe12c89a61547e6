// Cutting panels from a tensor; see patches.hpp.
//
// All of it works on runs: consecutive cells of the innermost axis. A run under one tap is a piece
// of a source row, clipped to the source, and what is clipped away is zero.
#include <fenestra/kernels/simd.hpp>
#include <fenestra/ops/conv/kernels/patches.hpp>
#include <fenestra/ops/conv/kernels/patches_walk.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/conv/kernels/patches.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <fenestra/kernels/scratch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace fenestra::detail {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::ScalableTag<T>;

/// The same pieces of `count` channels: panel rows `dst_stride` apart from planes `src_stride`
/// apart.
template <class T>
struct Planes {
  const T* src;
  Index src_stride;
  T* dst;
  Index dst_stride;
  Index count;
};

template <class T>
void copy_whole(const Planes<T>& p, Index width) {
  const Tag<T> d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  const T* HWY_RESTRICT src = p.src;
  T* HWY_RESTRICT dst = p.dst;
  if (width == 2 * lanes) {
    for (Index c = 0; c < p.count; ++c, src += p.src_stride, dst += p.dst_stride) {
      // Planes are pages apart, so nothing else brings the next panel's line; its last element may
      // lie a line further than its first.
      hwy::Prefetch(src + 2 * width - 1);
      const auto low = hn::LoadU(d, src);
      const auto high = hn::LoadU(d, src + lanes);
      hn::Store(low, d, dst);
      hn::Store(high, d, dst + lanes);
    }
    return;
  }
  for (Index c = 0; c < p.count; ++c, src += p.src_stride, dst += p.dst_stride) {
    for (Index l = 0; l < width; l += lanes) {
      hn::Store(hn::LoadU(d, src + l), d, dst + l);
    }
  }
}

template <class T>
void copy_pieces(const Planes<T>& p, Index width, Index step, const Piece* pieces, int count) {
  const T* src = p.src;
  T* dst = p.dst;
  for (Index c = 0; c < p.count; ++c, src += p.src_stride, dst += p.dst_stride) {
    std::fill(dst, dst + width, T(0));
    for (int i = 0; i < count; ++i) {
      const T* from = src + pieces[i].offset;
      T* to = dst + pieces[i].line;
      for (Index l = 0; l < pieces[i].length; ++l) {
        to[l] = from[l * step];
      }
    }
  }
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
// Loads under a mask touch no memory outside it, so pieces of any length are vector loads.

template <class T>
hn::Vec<Tag<T>> lane_mask(Index begin, Index end) {
  const Tag<T> d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  const auto below_end = hn::FirstN(d, static_cast<std::size_t>(std::clamp<Index>(end, 0, lanes)));
  const auto below_begin =
      hn::FirstN(d, static_cast<std::size_t>(std::clamp<Index>(begin, 0, lanes)));
  return hn::VecFromMask(d, hn::AndNot(below_begin, below_end));
}

/// Step 1 or 2. With 2, a vector is the even elements of two loads.
template <class T, int kStep>
void copy_masked(const Planes<T>& p, Index width, const Piece* pieces, int count) {
  const Tag<T> d;
  constexpr auto kLanes = static_cast<Index>(hn::MaxLanes(Tag<T>()));
  // One entry per piece and vector it reaches into; a panel has at most as many as lanes + vectors.
  HWY_ALIGN T masks[(kMaxWidth + 4) * kStep * kLanes];
  Index offsets[kMaxWidth + 4];
  int first[kMaxWidth + 1];
  int entries = 0;
  int vectors = 0;
  int piece = 0;
  for (Index v = 0; v < width; v += kLanes, ++vectors) {
    first[vectors] = entries;
    while (piece < count && pieces[piece].line + pieces[piece].length <= v) {
      ++piece;
    }
    for (int i = piece; i < count && pieces[i].line < v + kLanes; ++i) {
      const Index begin = pieces[i].line - v;
      const Index end = begin + pieces[i].length;
      offsets[entries] = pieces[i].offset - begin * kStep;
      if constexpr (kStep == 1) {
        hn::Store(lane_mask<T>(begin, end), d, masks + entries * kLanes);
      } else {
        // Lane l is element 2 l of the pair; the last one loaded is the last one wanted.
        const auto even = hn::OddEven(hn::Zero(d), hn::VecFromMask(d, hn::FirstN(d, kLanes)));
        hn::Store(hn::And(even, lane_mask<T>(2 * begin, 2 * end)), d, masks + 2 * entries * kLanes);
        hn::Store(hn::And(even, lane_mask<T>(2 * begin - kLanes, 2 * end - kLanes)),
                  d,
                  masks + (2 * entries + 1) * kLanes);
      }
      ++entries;
    }
  }
  first[vectors] = entries;
  const T* HWY_RESTRICT src = p.src;
  T* HWY_RESTRICT dst = p.dst;
  for (Index c = 0; c < p.count; ++c, src += p.src_stride, dst += p.dst_stride) {
    for (int v = 0; v < vectors; ++v) {
      auto value = hn::Zero(d);
      for (int e = first[v]; e < first[v + 1]; ++e) {
        const T* from = src + offsets[e];
        const T* mask = masks + e * kStep * kLanes;
        if constexpr (kStep == 1) {
          value = hn::Or(value, hn::MaskedLoad(hn::MaskFromVec(hn::Load(d, mask)), d, from));
        } else {
          const auto low = hn::MaskedLoad(hn::MaskFromVec(hn::Load(d, mask)), d, from);
          const auto high =
              hn::MaskedLoad(hn::MaskFromVec(hn::Load(d, mask + kLanes)), d, from + kLanes);
          value = hn::Or(value, hn::ConcatEven(d, high, low));
        }
      }
      hn::Store(value, d, dst + v * kLanes);
    }
  }
}
#endif

template <class T>
void copy_planes(const Planes<T>& p, Index width, Index step, const Piece* pieces, int count) {
  if (count == 1 && pieces[0].length == width && step == 1) {
    Planes<T> moved = p;
    moved.src += pieces[0].offset;
    copy_whole(moved, width);
    return;
  }
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if (step == 1 && width % static_cast<Index>(hn::Lanes(Tag<T>())) == 0) {
    copy_masked<T, 1>(p, width, pieces, count);
    return;
  }
  if (step == 2 && width % static_cast<Index>(hn::Lanes(Tag<T>())) == 0) {
    copy_masked<T, 2>(p, width, pieces, count);
    return;
  }
#endif
  copy_pieces(p, width, step, pieces, count);
}

template <class T>
void strided_into_panels(const Patches<T>& patches,
                         const kernels::PanelRange& range,
                         Index width,
                         T* dst) {
  const PatchGrid& g = patches.grid;
  const Index taps = g.taps();
  const Index depth = range.k1 - range.k0;
  const GridAxis& inner = g.axes[g.rank - 1];
  const Index step = inner.step * inner.source_stride;
  Run runs[kMaxWidth];
  Piece pieces[kMaxWidth];
  Index shift[kMaxGridRank];
  for (Index line = 0; line < range.count; line += width, dst += width * depth) {
    int run_count = 0;
    Runs walk(g, range.first + line, std::min(width, range.count - line));
    while (walk.next(runs[run_count])) {
      ++run_count;
    }
    Odometer tap;
    for (Index j = 0; j < taps; ++j, tap.step(g, g.rank - 1, taps_of)) {
      const Index c0 = (range.k0 - j + taps - 1) / taps;
      const Index c1 = (range.k1 - j + taps - 1) / taps;
      if (c0 >= c1) {
        continue;
      }
      tap_shift(g, tap, shift);
      int piece_count = 0;
      for (int r = 0; r < run_count; ++r) {
        piece_count += clip(g, runs[r], shift, pieces[piece_count]) ? 1 : 0;
      }
      copy_planes<T>({patches.data + c0 * g.channel_stride,
                      g.channel_stride,
                      dst + (c0 * taps + j - range.k0) * width,
                      taps * width,
                      c1 - c0},
                     width,
                     step,
                     pieces,
                     piece_count);
    }
  }
}

/// Copies where step is 1: whole vectors, the last one overlapping. Shorter rows go one by one.
template <class T>
void copy_run(const T* from, Index length, T* to) {
  const Tag<T> d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  if (length < lanes) {
    for (Index i = 0; i < length; ++i) {
      to[i] = from[i];
    }
    return;
  }
  for (Index i = 0; i < length - lanes; i += lanes) {
    hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  }
  hn::StoreU(hn::LoadU(d, from + length - lanes), d, to + length - lanes);
}

/// What `length` windows look at, the first at element c of a source row; zero where there is no
/// such element.
template <class T>
void stage_row(const T* row, const WindowSeries& axis, Index c, Index length, T* dst) {
  const Index step = axis.step;
  const auto [low, high] = axis.seeing(c, length);
  for (Index i = 0; i < low; ++i) {
    dst[i] = T(0);
  }
  if (step == 1) {
    copy_run(row + c + low, high - low, dst + low);
  } else {
    for (Index i = low; i < high; ++i) {
      dst[i] = row[c + i * step];
    }
  }
  for (Index i = high; i < length; ++i) {
    dst[i] = T(0);
  }
}

template <class T>
Stage<T> stage_cells(const Patches<T>& patches,
                     const kernels::PanelRange& range,
                     kernels::ScratchFrame& frame) {
  const PatchGrid& g = patches.grid;
  const StagePlan plan(g, range);
  T* stage = frame.take<T>(plan.elements());
  auto* offsets = frame.take<Index>(range.k1 - range.k0);
  const GridAxis& innermost = g.axes[g.rank - 1];
  const Stage<T> result{plan, innermost.count, stage, offsets};
  for (Index k = range.k0; k < range.k1; ++k) {
    const Index plane = k / innermost.taps - plan.channel0 * plan.outer_taps;
    *offsets++ = plane * plan.plane + plan.place(innermost, k % innermost.taps);
  }
  const int inner = g.rank - 1;
  const GridAxis& axis = g.axes[inner];
  const Index step = axis.step;
  Odometer tap;
  for (Index ot = 0; ot < plan.outer_taps; ++ot, tap.step(g, inner - 1, taps_of)) {
    Index shift[kMaxGridRank];
    tap_shift(g, tap, shift);
    Odometer cell;
    cell.set(g, plan.row0 * axis.count, count_of);
    for (Index r = 0; r < plan.rows; ++r, cell.step(g, inner - 1, count_of)) {
      Index offset = 0;
      bool real = true;
      for (int a = 0; a < inner; ++a) {
        const Index c = g.axes[a].window(cell.at[a]).first + shift[a];
        real = real && g.axes[a].has(c);
        offset += c * g.axes[a].source_stride;
      }
      for (Index c = 0; c < plan.channels; ++c) {
        T* dst = stage + (c * plan.outer_taps + ot) * plan.plane + r * plan.pitch;
        if (!real) {
          std::fill(dst, dst + plan.pitch, T(0));
          continue;
        }
        const T* row = patches.data + (plan.channel0 + c) * g.channel_stride + offset;
        for (Index phase = 0; phase < step; ++phase) {
          stage_row(row,
                    axis,
                    axis.base + plan.least_shift + phase,
                    plan.length,
                    dst + phase * plan.length);
        }
      }
    }
  }
  return result;
}

/// Panels from staged rows: the same few loads for every depth, from another place each.
template <class T>
void staged_into_panel(const Stage<T>& stage,
                       const kernels::PanelRange& range,
                       Index width,
                       T* dst) {
  const Tag<T> d;
  constexpr auto kLanes = static_cast<Index>(hn::MaxLanes(Tag<T>()));
  const StagePlan& plan = stage.plan;
  const Index row_cells = stage.row_cells;

  // Which staged runs make up each vector: all but the first replace the lanes from `begin` on.
  Index offsets[2 * kMaxWidth];
  Index begins[2 * kMaxWidth];
  int first[kMaxWidth + 1];
  int entries = 0;
  int vectors = 0;
  for (Index v = 0; v < width; v += kLanes, ++vectors) {
    first[vectors] = entries;
    for (Index l = 0; l < kLanes && (v + l < range.count || l == 0);) {
      const Index cell = range.first + std::min(v + l, range.count - 1);
      const Index column = cell % row_cells;
      offsets[entries] = (cell / row_cells - plan.row0) * plan.pitch + column - l;
      begins[entries] = l;
      ++entries;
      l += row_cells - column;
    }
  }
  first[vectors] = entries;

  const T* rows = stage.rows;
  const Index* starts = stage.offsets;
  const bool plain = entries == vectors;
  for (Index k = range.k0; k < range.k1; ++k, dst += width) {
    const T* HWY_RESTRICT from = rows + starts[k - range.k0];
    if (plain) {
      for (int v = 0; v < vectors; ++v) {
        hn::Store(hn::LoadU(d, from + offsets[v]), d, dst + v * kLanes);
      }
    } else {
      for (int v = 0; v < vectors; ++v) {
        int e = first[v];
        auto value = hn::LoadU(d, from + offsets[e]);
        for (++e; e < first[v + 1]; ++e) {
          const auto kept = hn::FirstN(d, static_cast<std::size_t>(begins[e]));
          value = hn::IfThenElse(kept, value, hn::LoadU(d, from + offsets[e]));
        }
        hn::Store(value, d, dst + v * kLanes);
      }
    }
  }
}

/// One source row under one tap: cells [first, first + count) of channel plane `src`.
template <class T>
void gather_cells(
    const PatchGrid& g, const T* src, const Index* shift, Index first, Index count, T* dst) {
  const GridAxis& inner = g.axes[g.rank - 1];
  const Index step = inner.step * inner.source_stride;
  Runs walk(g, first, count);
  Run run;
  while (walk.next(run)) {
    Piece piece;
    T* out = dst + run.line;
    if (!clip(g, run, shift, piece)) {
      std::fill(out, out + run.length, T(0));
      continue;
    }
    const Index before = piece.line - run.line;
    std::fill(out, out + before, T(0));
    out += before;
    const T* from = src + piece.offset;
    if (step == 1) {
      std::copy(from, from + piece.length, out);
    } else {
      for (Index l = 0; l < piece.length; ++l) {
        out[l] = from[l * step];
      }
    }
    std::fill(out + piece.length, out + run.length - before, T(0));
  }
}

/// Channels first: a row of cells per line, then transposed.
template <class T>
void taps_into_panels(const Patches<T>& patches,
                      const kernels::PanelRange& range,
                      Index width,
                      T* dst) {
  const PatchGrid& g = patches.grid;
  const Index taps = g.taps();
  const Index depth = range.k1 - range.k0;
  kernels::ScratchFrame frame;
  T* rows = frame.take<T>(width * depth);
  Index shift[kMaxGridRank];
  for (Index line = 0; line < range.count; line += width, dst += width * depth) {
    const Index count = std::min(width, range.count - line);
    for (Index l = 0; l < count; ++l) {
      const Index at = range.first + line + l;
      Odometer tap;
      tap.set(g, at % taps, taps_of);
      tap_shift(g, tap, shift);
      gather_cells(
          g, patches.data + at / taps * g.channel_stride, shift, range.k0, depth, rows + l * depth);
    }
    std::fill(rows + count * depth, rows + width * depth, T(0));
    kernels::transpose(rows, depth, width, depth, dst, width);
  }
}

/// Channels last: for every cell and tap, adjacent channels.
template <class T>
void taps_into_panels_last(const Patches<T>& patches,
                           const kernels::PanelRange& range,
                           Index width,
                           T* dst) {
  const PatchGrid& g = patches.grid;
  const Tag<T> d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  const Index depth = range.k1 - range.k0;
  const GridAxis& inner = g.axes[g.rank - 1];
  const Index step = inner.step * inner.source_stride;
  Index shift[kMaxGridRank];
  for (Index line = 0; line < range.count; line += width, dst += width * depth) {
    const Index count = std::min(width, range.count - line);
    if (count < width) {
      std::fill(dst, dst + width * depth, T(0));
    }
    for (Index l = 0; l < count;) {
      const Index at = range.first + line + l;
      const Index channel = at % g.channels;
      const Index length = std::min(count - l, g.channels - channel);
      Odometer tap;
      tap.set(g, at / g.channels, taps_of);
      tap_shift(g, tap, shift);
      Runs walk(g, range.k0, depth);
      Run run;
      while (walk.next(run)) {
        Piece piece{run.line + run.length, 0, 0};
        clip(g, run, shift, piece);
        const T* src = patches.data + piece.offset + channel;
        for (Index k = run.line; k < run.line + run.length; ++k) {
          T* HWY_RESTRICT out = dst + k * width + l;
          if (k < piece.line || k >= piece.line + piece.length) {
            std::fill(out, out + length, T(0));
            continue;
          }
          Index i = 0;
          for (; i + lanes <= length; i += lanes) {
            hn::StoreU(hn::LoadU(d, src + i), d, out + i);
          }
          for (; i < length; ++i) {
            out[i] = src[i];
          }
          src += step;
        }
      }
      l += length;
    }
  }
}

template <class T>
void add_run(T* HWY_RESTRICT to, const T* HWY_RESTRICT from, Index length) {
  const Tag<T> d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  Index i = 0;
  for (; i + lanes <= length; i += lanes) {
    hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
  }
  for (; i < length; ++i) {
    to[i] += from[i];
  }
}

template <class T>
void patches_into_source(
    const PatchGrid& g, Index first, Index count, const T* tile, Index ld, T* x) {
  const Index taps = g.taps();
  const GridAxis& inner = g.axes[g.rank - 1];
  const Index s = inner.step;
  Index shift[kMaxGridRank];
  Odometer tap;
  // The last tap of a window meets the cell that a tap before it meets from a later window: so
  // every cell of the source gets its terms in the order of the windows, however they are cut into
  // tiles.
  for (Index j = taps - 1; j >= 0; --j) {
    tap.set(g, j, taps_of);
    tap_shift(g, tap, shift);
    Runs walk(g, first, count);
    Run run;
    Piece piece;
    while (walk.next(run)) {
      if (!clip(g, run, shift, piece)) {
        continue;
      }
      if (g.channels_last) {
        const Index step = s * inner.source_stride;
        for (Index c = 0; c < g.channels; ++c) {
          const T* from = tile + (j * g.channels + c) * ld + piece.line;
          T* to = x + piece.offset + c;
          for (Index l = 0; l < piece.length; ++l) {
            to[l * step] += from[l];
          }
        }
        continue;
      }
      // The first cell in the order of the sample, then its place in a row in phase order.
      const Index cell = run.origin[g.rank - 1] + shift[g.rank - 1] + (piece.line - run.line) * s;
      const Index place = piece.offset - cell + Dealing{s}.packed(cell, inner.extent);
      for (Index c = 0; c < g.channels; ++c) {
        add_run(x + c * g.channel_stride + place,
                tile + (c * taps + j) * ld + piece.line,
                piece.length);
      }
    }
  }
}

void add_f32(const PatchGrid& g, Index first, Index count, const float* tile, Index ld, float* x) {
  patches_into_source(g, first, count, tile, ld, x);
}
void add_f64(
    const PatchGrid& g, Index first, Index count, const double* tile, Index ld, double* x) {
  patches_into_source(g, first, count, tile, ld, x);
}
template <class T>
void staged_into_panels(const Stage<T>& stage,
                        const kernels::PanelRange& range,
                        Index width,
                        T* dst) {
  const Index depth = range.k1 - range.k0;
  for (Index line = 0; line < range.count; line += width, dst += width * depth) {
    staged_into_panel(stage,
                      {range.first + line, std::min(width, range.count - line), range.k0, range.k1},
                      width,
                      dst);
  }
}

Stage<float> stage_f32(const Patches<float>& p,
                       const kernels::PanelRange& range,
                       kernels::ScratchFrame& frame) {
  return stage_cells(p, range, frame);
}
Stage<double> stage_f64(const Patches<double>& p,
                        const kernels::PanelRange& range,
                        kernels::ScratchFrame& frame) {
  return stage_cells(p, range, frame);
}
void staged_f32(const Stage<float>& stage,
                const kernels::PanelRange& range,
                Index width,
                float* dst) {
  staged_into_panels(stage, range, width, dst);
}
void staged_f64(const Stage<double>& stage,
                const kernels::PanelRange& range,
                Index width,
                double* dst) {
  staged_into_panels(stage, range, width, dst);
}
void cells_f32(const Patches<float>& p, const kernels::PanelRange& range, Index width, float* dst) {
  strided_into_panels(p, range, width, dst);
}
void cells_f64(const Patches<double>& p,
               const kernels::PanelRange& range,
               Index width,
               double* dst) {
  strided_into_panels(p, range, width, dst);
}
void taps_f32(const Patches<float>& p, const kernels::PanelRange& range, Index width, float* dst) {
  p.grid.channels_last ? taps_into_panels_last(p, range, width, dst)
                       : taps_into_panels(p, range, width, dst);
}
void taps_f64(const Patches<double>& p,
              const kernels::PanelRange& range,
              Index width,
              double* dst) {
  p.grid.channels_last ? taps_into_panels_last(p, range, width, dst)
                       : taps_into_panels(p, range, width, dst);
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::detail
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::detail {

HWY_EXPORT(stage_f32);
HWY_EXPORT(stage_f64);
HWY_EXPORT(staged_f32);
HWY_EXPORT(staged_f64);
HWY_EXPORT(cells_f32);
HWY_EXPORT(cells_f64);
HWY_EXPORT(taps_f32);
HWY_EXPORT(taps_f64);
HWY_EXPORT(add_f32);
HWY_EXPORT(add_f64);

namespace {

template <class T>
Stage<T> stage_rows(const Patches<T>& patches,
                    const kernels::PanelRange& block,
                    kernels::ScratchFrame& frame) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return HWY_DYNAMIC_DISPATCH(stage_f32)(patches, block, frame);
  } else {
    return HWY_DYNAMIC_DISPATCH(stage_f64)(patches, block, frame);
  }
}

/// Columns of a block whose source rows are staged.
template <class T>
class StagedColumns final : public kernels::ColumnSource<T> {
 public:
  explicit StagedColumns(const Stage<T>& stage) : stage_(stage) {}

  void pack(const kernels::PanelRange& range, Index width, T* dst) const override {
    if constexpr (sizeof(T) == sizeof(float)) {
      HWY_DYNAMIC_DISPATCH(staged_f32)(stage_, range, width, dst);
    } else {
      HWY_DYNAMIC_DISPATCH(staged_f64)(stage_, range, width, dst);
    }
  }
  const T* find(const kernels::PanelRange& panel, const Index** offsets) const override {
    *offsets = stage_.offsets;
    return stage_.find(panel);
  }

 private:
  Stage<T> stage_;
};

}  // namespace

template <class T>
const kernels::ColumnSource<T>& CellColumns<T>::open(const kernels::PanelRange& block,
                                                     kernels::ScratchFrame& frame) const {
  if (!StagePlan::pays(patches_.grid)) {
    return *this;
  }
  return *frame.make<StagedColumns<T>>(stage_rows(patches_, block, frame));
}

template <class T>
void CellColumns<T>::pack(const kernels::PanelRange& range, Index width, T* dst) const {
  if constexpr (sizeof(T) == sizeof(float)) {
    HWY_DYNAMIC_DISPATCH(cells_f32)(patches_, range, width, dst);
  } else {
    HWY_DYNAMIC_DISPATCH(cells_f64)(patches_, range, width, dst);
  }
}

template <class T>
void TapColumns<T>::pack(const kernels::PanelRange& range, Index width, T* dst) const {
  if constexpr (sizeof(T) == sizeof(float)) {
    HWY_DYNAMIC_DISPATCH(taps_f32)(patches_, range, width, dst);
  } else {
    HWY_DYNAMIC_DISPATCH(taps_f64)(patches_, range, width, dst);
  }
}

template <class T>
void add_patches(const PatchGrid& grid, Index first, Index count, const T* tile, Index ld, T* x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    HWY_DYNAMIC_DISPATCH(add_f32)(grid, first, count, tile, ld, x);
  } else {
    HWY_DYNAMIC_DISPATCH(add_f64)(grid, first, count, tile, ld, x);
  }
}

#define FENESTRA_INSTANTIATE_PATCHES(T) \
  template class CellColumns<T>;        \
  template class TapColumns<T>;         \
  template void add_patches(const PatchGrid&, Index, Index, const T*, Index, T*)

FENESTRA_INSTANTIATE_PATCHES(float);
FENESTRA_INSTANTIATE_PATCHES(double);
#undef FENESTRA_INSTANTIATE_PATCHES

}  // namespace fenestra::detail
#endif  // HWY_ONCE

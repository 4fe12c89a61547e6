// How a matrix product is cut: blocks of depth, panels of rows, blocks for threads, and what a
// micro-kernel is given.
// The part of kernels/gemm.cpp that no instruction set changes. Internal: not installed.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/gemm.hpp>

#include <algorithm>
#include <utility>

namespace fenestra::kernels::detail {

// Depth of a block: a panel of B, 320 x 16 floats = 20 KiB, and a panel of A, 320 x 6 = 7.5 KiB,
// share a first-level cache of 32 KiB.
inline constexpr Index kDepth = 320;
// Columns of a block: 320 x 256 floats = 320 KiB of a second-level cache of 512 KiB.
inline constexpr Index kColumnBytes = 1024;
// Rows between two passes over the column panels: 96 x 320 floats = 120 KiB beside it.
inline constexpr Index kRowChunk = 96;
// Rows of a block of C: as many as make packing B for it again cheap, fewer where C is a tile in
// scratch.
inline constexpr Index kBlockRows = 768;
inline constexpr Index kTileRows = 192;
// Row starts kept for one pass over the columns: 64 KiB of them.
inline constexpr Index kMostStarts = 8192;
// Multiply-adds below which waking threads costs more than they save: some microseconds of work.
inline constexpr Index kSerialWork = 200'000;

constexpr Index ceil_of(Index a, Index b) { return (a + b - 1) / b; }

/// What a micro-kernel works on. A: `segments` x `length` depths, rows by table or lines in place.
/// B: row k at b + k * b_stride, or at b + b_offsets[k].
template <class T>
struct Tile {
  const T* const* rows = nullptr;
  Index row_offset = 0;
  Index segments = 1;
  Index length = 0;
  const T* a = nullptr;
  Index a_stride = 0;
  const T* b = nullptr;
  Index b_stride = 0;
  const Index* b_offsets = nullptr;
  T* c = nullptr;
  Index c_stride = 0;
  Index columns = 0;
  bool accumulate = false;
  const T* row_bias = nullptr;
  const T* column_bias = nullptr;
};

/// The cuts of depth: `count` blocks of `size` depths, the last may be shorter. Within segments: a
/// block is whole segments, or a piece of one.
struct DepthCuts {
  Index total = 0;
  Index segment = 0;
  Index size = 0;         // depths of a block
  Index per_segment = 0;  // blocks per segment, where a segment is longer than a block

  DepthCuts(Index depth, Index segment_length) : total(depth), segment(segment_length) {
    if (segment <= 0 || segment >= total) {
      segment = std::max<Index>(total, 1);
    }
    if (segment > kDepth) {
      per_segment = ceil_of(segment, kDepth);
      size = ceil_of(segment, per_segment);
    } else {
      const Index segments = total / segment;
      const Index most = std::max<Index>(kDepth / segment, 1);
      size = ceil_of(segments, std::max<Index>(ceil_of(segments, most), 1)) * segment;
    }
  }
  Index count() const {
    return per_segment > 0 ? per_segment * (total / segment)
                           : ceil_of(total, std::max<Index>(size, 1));
  }
  std::pair<Index, Index> block(Index i) const {
    if (per_segment > 0) {
      const Index base = i / per_segment * segment;
      const Index k0 = i % per_segment * size;
      return {base + k0, base + std::min(k0 + size, segment)};
    }
    return {std::min(i * size, total), std::min((i + 1) * size, total)};
  }
};

/// Rows are cut into panels of nearly equal height: 13 rows are 5 + 4 + 4, never 6 + 6 + 1.
struct RowPanels {
  Index rows = 0;
  Index count = 0;
  Index begin(Index panel) const { return panel * rows / count; }
};

template <class T>
struct Job {
  GemmSize size;
  LeftOperand<T> a;
  RightOperand<T> b;
  Product<T> c;
  DepthCuts cuts;
  RowPanels panels;
  const T* shared_a = nullptr;
};

/// As high as the accumulators of the instruction set in use allow.
RowPanels row_panels(Index rows) noexcept;

template <class T>
DepthCuts depth_cuts(const GemmSize& size, const LeftOperand<T>& a) {
  return {size.depth, a.rows != nullptr ? a.segment : 0};
}

/// Row panels [begin, end) of A, whole depth: [block of depth][row panel][depth][row].
template <class T>
void pack_rows(const PanelSource<T>& a,
               const RowPanels& panels,
               const DepthCuts& cuts,
               Index begin,
               Index end,
               T* dst) {
  for (Index p = begin; p < end; ++p) {
    const Index i0 = panels.begin(p);
    const Index height = panels.begin(p + 1) - i0;
    for (Index block = 0; block < cuts.count(); ++block) {
      const auto [k0, k1] = cuts.block(block);
      a.pack({i0, height, k0, k1}, height, dst + k0 * panels.rows + i0 * (k1 - k0));
    }
  }
}

/// Blocks of C, one task each.
struct BlockGrid {
  Index columns;     // of a block
  Index per_period;  // blocks in a period of columns
  Index period;
  Index periods;
  Index row_blocks;
  Index total() const { return row_blocks * per_period * periods; }
};

/// What bringing an element of an operand costs, in multiply-adds of the inner loop (some 16 to 32
/// in a cycle).
struct PackCost {
  Index left;
  Index right;
};

template <class T>
PackCost pack_cost(const Job<T>& job) {
  constexpr Index kCopied = 4;
  constexpr Index kTransposed = 16;
  constexpr Index kGathered = 32;
  const Index right = job.b.packed != nullptr    ? 0
                      : job.b.columns != nullptr ? kGathered
                      : job.b.line_stride == 1   ? kCopied
                                                 : kTransposed;
  return {job.a.access == LeftAccess::packed_block ? kTransposed : 0, right};
}

inline void cut_columns(BlockGrid& grid, Index blocks, Index width) {
  grid.columns = std::min(ceil_of(ceil_of(grid.period, blocks), width) * width, grid.period);
  grid.per_period = ceil_of(grid.period, grid.columns);
}

/// Cuts C so that the threads end early. Each block brings its rows of A and its columns of B by
/// itself: cutting rows packs B once more for each part, and cutting columns A, which is why more
/// blocks than threads are not better as such. No bit depends on it.
template <class T>
BlockGrid divide(const Job<T>& job) {
  const auto bytes = static_cast<Index>(sizeof(T));
  const Index width = panel_width<T>(job.size.rows);
  BlockGrid grid{};
  grid.period = job.c.period > 0 && job.c.sink == nullptr ? job.c.period : job.size.columns;
  grid.periods = job.size.columns / grid.period;
  const Index most = job.size.rows < 24 ? 2 * kColumnBytes / bytes : kColumnBytes / bytes;
  const Index fewest_rows = std::min(
      ceil_of(job.size.rows, job.c.sink != nullptr ? kTileRows : kBlockRows), job.panels.count);
  const Index fewest_columns = ceil_of(grid.period, most);
  grid.row_blocks = fewest_rows;
  cut_columns(grid, fewest_columns, width);
  const Index team = threads();
  if (team == 1 ||
      job.size.rows * job.size.columns * std::max<Index>(job.size.depth, 1) < kSerialWork) {
    return grid;
  }
  const PackCost pack = pack_cost(job);
  const auto cost = [&](const BlockGrid& g) {
    const Index rows = ceil_of(job.panels.count, g.row_blocks) * job.panels.rows / job.panels.count;
    const Index task = rows * g.columns + pack.left * rows + pack.right * g.columns;
    // Threads are not equally fast: an eighth of a task is waited for at the end.
    return ceil_of(g.total(), team) * task + task / 8;
  };
  BlockGrid best = grid;
  Index best_cost = cost(best);
  for (Index rows = fewest_rows; rows <= job.panels.count; rows *= 2) {
    for (Index columns = fewest_columns;; columns *= 2) {
      BlockGrid cut = grid;
      cut.row_blocks = rows;
      cut_columns(cut, columns, width);
      if (const Index cut_cost = cost(cut); cut_cost < best_cost) {
        best = cut;
        best_cost = cut_cost;
      }
      if (cut.columns <= width || cut.total() >= 4 * team) {
        break;
      }
    }
  }
  return best;
}

}  // namespace fenestra::kernels::detail

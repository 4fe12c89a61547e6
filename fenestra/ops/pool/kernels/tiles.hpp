// The loop over tiles: source rows are prepared once, destination rows are made of prepared ones,
// whatever the reduction and the direction. Plain code. Internal: not installed.
#pragma once

#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/pool/kernels/links.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace fenestra::pooling {

/// The tiles of one call: blocks of destination rows along the first axis, and of columns. They
/// follow from the geometry without the batch.
struct Tiling {
  Index rows_per_block = 1;  ///< along the first axis
  Index row_blocks = 1;
  Index columns_per_block = 1;
  Index column_blocks = 1;
  Index columns_begin = 0;
  Index columns_end = 0;
  Index sources = 1;  ///< source rows a tile can need
  Index slots = 1;    ///< source rows that are kept: what one step along the first axis can need

  constexpr Index tiles() const { return row_blocks * column_blocks; }
};

/// Source rows along the first axis that destination rows [begin, end) are linked to.
inline IndexRange source_range(const Plan& plan, Index begin, Index end) {
  const WindowAxis& a = plan.windows[0];
  return plan.to_cells ? a.needed_windows({begin, end}) : a.needed_cells({begin, end});
}

/// Numbers of a column block. Rows up to this length are whole: 4096 floats are half of the L1
/// cache of the smallest machine considered, and the set-up of a block is below 1 % of its work.
inline constexpr Index kColumnNumbers = 4096;
/// Bytes of the source rows of one tile, which bounds how much of a large plane one thread takes.
/// 32 KiB to 256 KiB measured the same within the noise, below that the rows shared by neighbouring
/// blocks are prepared twice too often.
inline constexpr Index kTileBytes = 128 * 1024;

/// `slot_bytes(columns)` is what one prepared source row takes.
template <class SlotBytes>
Tiling make_tiling(const Plan& plan, const SlotBytes& slot_bytes) {
  Tiling t;
  const WindowAxis& a = plan.last();
  if (plan.to_cells) {
    t.columns_begin = a.steps().begin;
    t.columns_end = a.steps().end;
  } else {
    t.columns_end = a.out;
  }
  const Index columns = t.columns_end - t.columns_begin;
  const Index phases = plan.to_cells ? a.stride : 1;
  t.columns_per_block =
      std::clamp<Index>(kColumnNumbers / std::max<Index>(plan.inner * phases, 1), 1, columns);
  t.column_blocks = ceil_div(columns, t.columns_per_block);
  const Index dest = plan.dest(0);
  const Index source_mid = plan.source_rows() / plan.source(0);
  const auto slots_of = [&](Index rows) {
    Index most = 0;
    for (Index begin = 0; begin < dest; begin += rows) {
      most = std::max(most, source_range(plan, begin, std::min(begin + rows, dest)).count());
    }
    return most * source_mid;
  };
  const Index row_bytes = slot_bytes(t.columns_per_block);
  t.rows_per_block = dest;
  t.sources = slots_of(dest);
  while (t.rows_per_block > 1 && t.sources * row_bytes > kTileBytes) {
    t.rows_per_block = (t.rows_per_block + 1) / 2;
    t.sources = slots_of(t.rows_per_block);
  }
  t.slots = slots_of(1);
  t.row_blocks = ceil_div(dest, t.rows_per_block);
  return t;
}

/// A link whose source row is a slot of the tile.
struct SlotLink {
  Index slot = 0;
  Index tap = 0;
  Index source_row = -1;  ///< -1: padding
  bool waits = false;     ///< to be prepared before this link is used
};

/// Runs tiles [begin, end) of a call, item i being tile i / planes of plane i % planes: what
/// follows from the tile alone is then worked out once for many planes. `op` has
///   Index slot_size()                  numbers of a prepared source row
///   void take(ScratchFrame&)           takes what it wants for itself
///   void start(Columns)                a column block begins
///   void prepare(T* slot, Index plane, Index source_row)
///   void pad(T* slot)                  the slot of padding, where links have it
///   void emit(const SlotLink*, Index count, const T* slots, Index plane, Index dest_row)
/// Source rows are prepared when the first destination row asks for them, in the slot of one that
/// no later row does.
template <class T, class Op>
void run_tiles(const Plan& plan, const Tiling& tiling, Op& op, Index begin, Index end) {
  const Index slot_size = op.slot_size();
  const Index most = most_row_links(plan);
  const Index dest_mid = plan.dest_rows() / plan.dest(0);
  const Index source_mid = plan.source_rows() / plan.source(0);
  ScratchFrame frame;
  T* slots = frame.take<T>((tiling.slots + 1) * slot_size);
  op.take(frame);
  auto* links = frame.take<RowLink>(most);
  auto* spare = frame.take<RowLink>(most);
  auto* table = frame.take<SlotLink>(tiling.rows_per_block * dest_mid * most);
  auto* counts = frame.take<Index>(tiling.rows_per_block * dest_mid);
  auto* ready = frame.take<std::uint8_t>(tiling.sources);
  Index started = -1;
  Index row_begin = 0;
  Index rows = 0;
  for (Index i = begin; i < end; ++i) {
    const Index tile = i / plan.planes;
    const Index plane = i % plan.planes;
    if (tile != started) {
      started = tile;
      const Index first =
          tiling.columns_begin + tile % tiling.column_blocks * tiling.columns_per_block;
      op.start({first, std::min(first + tiling.columns_per_block, tiling.columns_end)});
      op.pad(slots + tiling.slots * slot_size);
      const Index block_begin = tile / tiling.column_blocks * tiling.rows_per_block;
      const Index block_end = std::min(block_begin + tiling.rows_per_block, plan.dest(0));
      const Index first_source = source_range(plan, block_begin, block_end).begin * source_mid;
      row_begin = block_begin * dest_mid;
      rows = (block_end - block_begin) * dest_mid;
      std::memset(ready, 0, static_cast<std::size_t>(tiling.sources));
      for (Index row = 0; row < rows; ++row) {
        counts[row] = row_links(plan, row_begin + row, links, spare);
        for (Index l = 0; l < counts[row]; ++l) {
          const Index source = links[l].source;
          const Index at = source - first_source;
          const bool waits = source >= 0 && ready[at] == 0;
          const Index slot = source < 0 ? tiling.slots : at % tiling.slots;
          table[row * most + l] = {slot, links[l].tap, source, waits};
          if (source >= 0) {
            ready[at] = 1;
          }
        }
      }
    }
    for (Index row = 0; row < rows; ++row) {
      const SlotLink* of_row = table + row * most;
      for (Index l = 0; l < counts[row]; ++l) {
        if (of_row[l].waits) {
          op.prepare(slots + of_row[l].slot * slot_size, plane, of_row[l].source_row);
        }
      }
      op.emit(of_row, counts[row], slots, plane, row_begin + row);
    }
  }
}

/// Calls run(begin, end) over the tiles of all planes, on all threads.
template <class Run>
void for_tiles(const Plan& plan, const Tiling& tiling, const Run& run) {
  if (plan.dest_plane_size() == 0) {
    return;
  }
  const Index plane_size = std::max(plan.dest_plane_size(), plan.source_plane_size());
  const Index items = plan.planes * tiling.tiles();
  parallel_for(items, grain_of(items, plane_size / tiling.tiles()), run);
}

}  // namespace fenestra::pooling

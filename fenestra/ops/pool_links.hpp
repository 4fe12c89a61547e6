// How the kernels of all pools walk windows: which cells a window sees, which windows see a cell,
// and the loop over tiles that both directions share. Plain code; the vectors are in
// pool_vectors-inl.hpp. Internal: not installed.
//
// A tensor is seen as planes of rows: channels first, a plane is one channel of one sample and a
// row holds one number per cell; channels last, a plane is one sample and a row holds `inner`
// channels per cell. A pool turns source rows into destination rows: cells into windows (forward)
// or windows into cells (adjoint).
#pragma once

#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/pool_geometry.hpp>
#include <fenestra/ops/pool_operator.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>

namespace fenestra::pooling {

/// Bins that all have the same size are windows that slide by it. One window slides nowhere: a
/// stride past the padded input is as good as any larger one.
constexpr WindowAxis as_sliding(WindowAxis a) {
  if (a.rule == ExtentRule::adaptive && a.in % a.out == 0) {
    a.kernel = a.stride = a.in / a.out;
    a.rule = ExtentRule::floor;
  }
  if (a.rule != ExtentRule::adaptive && a.out == 1) {
    a.stride = std::min(a.stride, a.in + a.pad_low + a.pad_high);
  }
  return a;
}

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
      windows.push_back(as_sliding(g.windows[axis]));
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

/// The first and last window that could see cell `i`; first > last where none does.
struct WindowRange {
  Index first = 0;
  Index last = -1;
};
constexpr WindowRange windows_over(const WindowAxis& a, Index i) {
  if (a.rule == ExtentRule::adaptive) {
    return {floor_div(i * a.out, a.in), ceil_div((i + 1) * a.out, a.in) - 1};
  }
  const Index lowest = i + a.pad_low - (a.span() - 1);
  return {lowest > 0 ? ceil_div(lowest, a.stride) : 0,
          std::min((i + a.pad_low) / a.stride, a.out - 1)};
}

/// The windows that see cell `i` are first, first + step, ...: those whose distance from the cell
/// is a multiple of the dilation. `first` is at least `from`, and -1 where there is none.
struct WindowSteps {
  Index first = -1;
  Index step = 1;
};
constexpr WindowSteps windows_in_step(const WindowAxis& a, Index i, Index from) {
  if (a.dilation == 1) {
    return {from, 1};
  }
  const Index common = std::gcd(a.stride, a.dilation);
  const Index target = i + a.pad_low;
  if (target % common != 0) {
    return {};
  }
  // The inverse of stride/common modulo dilation/common, by Euclid.
  const Index modulus = a.dilation / common;
  Index r = modulus;
  Index next_r = a.stride / common % modulus;
  Index t = 0;
  Index next_t = 1;
  while (next_r != 0) {
    const Index q = r / next_r;
    const Index r_left = r - q * next_r;
    const Index t_left = t - q * next_t;
    r = next_r;
    t = next_t;
    next_r = r_left;
    next_t = t_left;
  }
  __extension__ using Wide = __int128;
  const Index inverse = t < 0 ? t + modulus : t;
  const auto residue =
      static_cast<Index>(static_cast<Wide>(target / common % modulus) * inverse % modulus);
  const Index ahead = (residue - from % modulus + modulus) % modulus;
  return {from + ahead, modulus};
}

/// Calls f(source, tap, taps of the window) for what is linked to `dest` on one axis, in ascending
/// order of the source. Forward with `padded`: a declared padded cell is the source -1.
template <class F>
constexpr void for_each_link(
    const WindowAxis& a, bool to_cells, Index dest, bool padded, const F& f) {
  if (to_cells) {
    const WindowRange range = windows_over(a, dest);
    if (range.first > range.last) {
      return;
    }
    const WindowSteps steps = windows_in_step(a, dest, range.first);
    for (Index o = steps.first; o >= 0 && o <= range.last; o += steps.step) {
      const Window window = a.window(o);
      f(o, (dest - window.first) / window.step, window.taps);
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
  const Index first = std::max<Index>(begin * a.stride - a.pad_low, 0);
  const Index last = std::min(end * a.stride - a.pad_low, a.in);
  Index count = 0;
  for (Index cell = first; cell < last; ++cell) {
    for_each_link(a, true, cell, false, [&](Index o, Index tap, Index) {
      links[count++] = {cell, o, tap};
    });
  }
  return count;
}

/// No `dest` on this axis has more links.
constexpr Index most_links(const WindowAxis& a, bool to_cells, bool padded) {
  if (a.rule == ExtentRule::adaptive) {
    return to_cells ? ceil_div(a.out, a.in) + 1 : ceil_div(a.in, a.out) + 1;
  }
  if (to_cells) {
    // The taps that can meet a cell are stride / gcd(stride, dilation) apart.
    const Index apart = a.stride / std::gcd(a.stride, a.dilation);
    return std::min({(a.span() - 1) / a.stride + 1, ceil_div(a.kernel, apart), a.out});
  }
  const Index cells = padded ? a.in + a.pad_low + a.pad_high : a.in;
  return std::min(a.kernel, ceil_div(cells, a.dilation));
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

/// Takes aligned arrays from one scratch buffer; run once without memory it measures the sum.
class Carver {
 public:
  explicit Carver(void* memory = nullptr) : base_(static_cast<std::byte*>(memory)) {}
  template <class T>
  T* take(Index count) {
    std::byte* start = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(start);
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

/// Columns of one tile on the last axis, in steps of the stride: a phase r of step j is the cell
/// j*stride + r - pad_low, and tap t of window j looks at step j + t*dilation/stride of the phase
/// t*dilation % stride. So every tap of a row of windows is a run of consecutive steps, whatever
/// the stride and the dilation.
struct Columns {
  Index begin = 0;
  Index end = 0;
  constexpr Index count() const { return end - begin; }
};

constexpr Index tap_phase(const WindowAxis& a, Index tap) { return tap * a.dilation % a.stride; }
constexpr Index tap_step(const WindowAxis& a, Index tap) { return tap * a.dilation / a.stride; }
constexpr Index last_step(const WindowAxis& a) { return tap_step(a, a.kernel - 1); }

/// A vector may read this many numbers past the end of a run in a tile.
inline constexpr Index kSlack = 16;

inline const char* Plan::refuse_rows() const {
  const WindowAxis& a = last();
  if (a.rule == ExtentRule::adaptive) {
    return "bins of unequal size along the last axis";
  }
  constexpr Index kFactor = 32;  // 16 numbers of slack for each of as many phases as cells, twice
  constexpr Index kFree = 4096;  // numbers: half of an L1 cache
  const Checked kept = Checked(a.stride) * (Checked(a.out) + last_step(a) + kSlack);
  const Checked row = Checked(kFactor) * (Checked(a.in) + a.out) + kFree;
  return kept.ok() && kept.value() <= row.value() ? nullptr : "windows span far more than the row";
}

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
inline Columns source_range(const Plan& plan, Index begin, Index end) {
  const WindowAxis& a = plan.windows[0];
  if (plan.to_cells) {
    // Consecutive cells never see fewer windows at either end.
    return {windows_over(a, begin).first,
            std::max(windows_over(a, end - 1).last, windows_over(a, begin).first - 1) + 1};
  }
  const Window first = a.window(begin);
  const Window last = a.window(end - 1);
  const Index low = std::clamp<Index>(first.first, 0, a.in);
  return {low, std::clamp<Index>(last.cell(last.taps - 1) + 1, low, a.in)};
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
    t.columns_begin = a.pad_low / a.stride;
    t.columns_end = (a.in - 1 + a.pad_low) / a.stride + 1;
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
///   void carve(Carver&)                takes what it wants for itself
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
  T* slots = nullptr;
  RowLink* links = nullptr;
  RowLink* spare = nullptr;
  SlotLink* table = nullptr;
  Index* counts = nullptr;
  std::uint8_t* ready = nullptr;
  const auto carve = [&](Carver carver) {
    slots = carver.take<T>((tiling.slots + 1) * slot_size);
    op.carve(carver);
    links = carver.take<RowLink>(most);
    spare = carver.take<RowLink>(most);
    table = carver.take<SlotLink>(tiling.rows_per_block * dest_mid * most);
    counts = carver.take<Index>(tiling.rows_per_block * dest_mid);
    ready = carver.take<std::uint8_t>(tiling.sources);
    return carver.used();
  };
  carve(Carver(kernels::scratch_bytes(kernels::scratch_caller, carve(Carver()))));
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

/// One source of one destination position: its place in the source plane, and its tap.
struct Entry {
  Index offset = 0;  ///< in numbers; -1: padding
  Index tap = 0;
  Index row = 0;  ///< flat source row, column: for the divisor of an average
  Index column = 0;
};

/// Planes per visit of a position where lanes are single: enough to pay for the list of its taps.
inline constexpr Index kGenericPlanes = 16;
/// Channels below which a list of taps per position costs more than it saves over rows.
inline constexpr Index kFewChannels = 32;

/// Visits destination rows [begin, end) of all planes (row i % dest_rows() of plane block
/// i / dest_rows()), position by position:
///   f(const Entry*, Index count, first plane, last plane, offset of the position in the plane)
/// No tables, no copies: for geometries without regular rows, and for many numbers per cell.
template <class F>
void run_positions(const Plan& plan, Index planes_per_block, Index begin, Index end, const F& f) {
  struct ColumnLink {
    Index source;
    Index tap;
    Index taps;
  };
  const int last = plan.outer_axes();
  const Index columns = plan.dest(last);
  const Index most_rows = most_row_links(plan);
  const Index most_columns = most_links(plan.last(), plan.to_cells, plan.padded_links);
  // The links of all columns are kept while they fit half of an L2 cache, else made as they come.
  constexpr Index kKept = 8192;
  const bool kept = columns <= kKept / std::max<Index>(most_columns, 1);
  RowLink* links = nullptr;
  RowLink* spare = nullptr;
  Entry* entries = nullptr;
  ColumnLink* column_links = nullptr;
  Index* counts = nullptr;
  const auto carve = [&](Carver carver) {
    links = carver.take<RowLink>(most_rows);
    spare = carver.take<RowLink>(most_rows);
    entries = carver.take<Entry>(most_rows * most_columns);
    column_links = carver.take<ColumnLink>(most_columns * (kept ? columns : 1));
    counts = carver.take<Index>(kept ? columns : 1);
    return carver.used();
  };
  carve(Carver(kernels::scratch_bytes(kernels::scratch_caller, carve(Carver()))));
  const auto link_column = [&](Index column, Index at) {
    Index count = 0;
    ColumnLink* to = column_links + at * most_columns;
    for_each_link(plan.last(),
                  plan.to_cells,
                  column,
                  plan.padded_links,
                  [&](Index source, Index tap, Index taps) {
                    to[count++] = {source, tap, taps};
                  });
    counts[at] = count;
  };
  for (Index column = 0; kept && column < columns; ++column) {
    link_column(column, column);
  }
  for (Index i = begin; i < end; ++i) {
    const Index row = i % plan.dest_rows();
    const Index first_plane = i / plan.dest_rows() * planes_per_block;
    const Index end_plane = std::min(first_plane + planes_per_block, plan.planes);
    const Index link_count = row_links(plan, row, links, spare);
    for (Index column = 0; column < columns; ++column) {
      const Index at = kept ? column : 0;
      if (!kept) {
        link_column(column, 0);
      }
      const ColumnLink* of_column = column_links + at * most_columns;
      Index count = 0;
      for (Index l = 0; l < link_count; ++l) {
        const RowLink& link = links[l];
        for (Index k = 0; k < counts[at]; ++k) {
          const ColumnLink& c = of_column[k];
          const bool padding = link.source < 0 || c.source < 0;
          entries[count++] = {
              padding ? -1 : (link.source * plan.source(last) + c.source) * plan.inner,
              link.tap * c.taps + c.tap,
              link.source,
              c.source};
        }
      }
      f(entries, count, first_plane, end_plane, (row * columns + column) * plan.inner);
    }
  }
}

/// Calls run(begin, end) over the rows of positions of all plane blocks, on all threads.
template <class Run>
void for_positions(const Plan& plan, Index planes_per_block, const Run& run) {
  if (plan.dest_plane_size() == 0) {
    return;
  }
  const Index rows = plan.dest_rows();
  const Index size = std::max(plan.dest_plane_size(), plan.source_plane_size());
  const Index items = ceil_div(plan.planes, planes_per_block) * rows;
  parallel_for(items, grain_of(items, size / rows * planes_per_block), run);
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

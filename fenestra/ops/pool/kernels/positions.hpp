// The loop over positions: each destination with the list of its sources, whatever the reduction
// and the direction. Plain code. Internal: not installed.
#pragma once

#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/pool/kernels/links.hpp>

#include <algorithm>
#include <cstdint>

namespace fenestra::pooling {

/// One source of one destination position: its place in the source plane, and its tap.
struct Entry {
  Index offset = 0;  ///< in numbers; -1: padding
  Index tap = 0;
  Index row = 0;  ///< flat source row, column: for the divisor of an average
  Index column = 0;
};

/// How far the sources of a position lie behind those that are listed: windows beside each other
/// have the same list, a stride apart, as have cells that are a stride apart.
struct Moved {
  Index columns = 0;
  Index numbers = 0;
};

/// Planes per visit of a position where lanes are single: enough to pay for the list of its taps.
inline constexpr Index kGenericPlanes = 16;
/// Channels below which a list of taps per position costs more than it saves over rows.
inline constexpr Index kFewChannels = 32;

/// Visits destination rows [begin, end) of all planes (row i % dest_rows() of plane block
/// i / dest_rows()), position by position:
///   f(const Entry*, Index count, first plane, last plane, offset of the position in the plane,
///     Moved)
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
  // Lists of entries are made once for all columns that have the same, one for each class of them.
  constexpr Index kMostClasses = 4;
  const WindowAxis& a = plan.last();
  const bool regular = a.rule != ExtentRule::adaptive;
  const Index period = plan.to_cells && regular ? a.stride : 1;
  const Index classes = kept && period <= kMostClasses ? period : 1;
  const Index step = plan.to_cells || !regular ? 1 : a.stride;
  Index listed[kMostClasses] = {};
  Moved moved[kMostClasses] = {};
  ScratchFrame frame;
  auto* links = frame.take<RowLink>(most_rows);
  auto* spare = frame.take<RowLink>(most_rows);
  auto* entries = frame.take<Entry>(most_rows * most_columns * classes);
  auto* column_links = frame.take<ColumnLink>(most_columns * (kept ? columns : 1));
  auto* counts = frame.take<Index>(kept ? columns : 1);
  auto* repeats = frame.take<std::uint8_t>(kept ? columns : 1);
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
  // Whether a column has the links of the one a period before it, moved by a step.
  const auto is_repeated = [&](Index column) {
    if (period > kMostClasses || column < period || counts[column] != counts[column - period]) {
      return false;
    }
    const ColumnLink* now = column_links + column * most_columns;
    const ColumnLink* before = now - period * most_columns;
    for (Index k = 0; k < counts[column]; ++k) {
      if (before[k].source < 0 || now[k].source != before[k].source + step ||
          now[k].tap != before[k].tap || now[k].taps != before[k].taps) {
        return false;
      }
    }
    return true;
  };
  for (Index column = 0; kept && column < columns; ++column) {
    link_column(column, column);
    repeats[column] = is_repeated(column) ? 1 : 0;
  }
  const auto list_entries = [&](const RowLink* rows,
                                Index row_count,
                                const ColumnLink* of_column,
                                Index column_count,
                                Entry* to) {
    Index count = 0;
    for (Index l = 0; l < row_count; ++l) {
      for (Index k = 0; k < column_count; ++k) {
        const RowLink& link = rows[l];
        const ColumnLink& c = of_column[k];
        const bool padding = link.source < 0 || c.source < 0;
        to[count++] = {padding ? -1 : (link.source * plan.source(last) + c.source) * plan.inner,
                       link.tap * c.taps + c.tap,
                       link.source,
                       c.source};
      }
    }
    return count;
  };
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
      const Index column_class = column % classes;
      Entry* of_class = entries + column_class * most_rows * most_columns;
      Moved& by = moved[column_class];
      if (kept && repeats[column] != 0) {
        by = {by.columns + step, by.numbers + step * plan.inner};
      } else {
        by = {};
        listed[column_class] =
            list_entries(links, link_count, column_links + at * most_columns, counts[at], of_class);
      }
      f(of_class,
        listed[column_class],
        first_plane,
        end_plane,
        (row * columns + column) * plan.inner,
        by);
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

}  // namespace fenestra::pooling

// How the algorithm "sweep" cuts rows with channels last into blocks. Plain code. Internal: not
// installed.
#pragma once

#include <fenestra/ops/pool/kernels/links.hpp>

namespace fenestra::pooling {

/// Destination columns of a block, and the source columns that one can need.
struct SweepBlocks {
  /// A block's sums of rows: half of the nearest cache, in which they are written and read again.
  static constexpr Index kNumbers = 2048;
  /// What one column may need beyond that.
  static constexpr Index kMostNumbers = 32768;

  Index columns = 1;
  Index sources = 0;

  explicit SweepBlocks(const Plan& plan) : columns(plan.dest(plan.outer_axes())) {
    sources = most_sources(plan);
    while (columns > 1 && sources > kNumbers / plan.inner) {
      columns = (columns + 1) / 2;
      sources = most_sources(plan);
    }
  }

  static Columns sources_of(const Plan& plan, Index begin, Index end) {
    const IndexRange range = plan.to_cells ? plan.last().needed_windows({begin, end})
                                           : plan.last().needed_cells({begin, end});
    return {range.begin, std::max(range.begin, range.end)};
  }

 private:
  Index most_sources(const Plan& plan) const {
    const Index all = plan.dest(plan.outer_axes());
    Index most = 0;
    for (Index begin = 0; begin < all; begin += columns) {
      most = std::max(most, sources_of(plan, begin, std::min(begin + columns, all)).count());
    }
    return most;
  }
};

/// Why rows cannot be swept, or null where they can.
inline const char* refuse_sweep(const Plan& plan) {
  return SweepBlocks(plan).sources > SweepBlocks::kMostNumbers / std::max<Index>(plan.inner, 1)
             ? "a window takes too much of a row"
             : nullptr;
}

}  // namespace fenestra::pooling

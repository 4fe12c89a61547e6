// Planes stored by phase, on vectors: the copy, and the stores of windows and of cells. Included
// inside foreach_target only; see planes.hpp. Not installed.
// An include guard that opens again for every instruction set.
#if defined(FENESTRA_POOL_PLANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef FENESTRA_POOL_PLANES_INL
#undef FENESTRA_POOL_PLANES_INL
#else
#define FENESTRA_POOL_PLANES_INL
#endif

#include <fenestra/kernels/scratch.hpp>
#include <fenestra/ops/pool/kernels/planes.hpp>
#include <fenestra/ops/pool/kernels/vectors-inl.hpp>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {

/// Loads numbers as they are.
template <class T>
struct PlainLoad {
  HWY_INLINE hn::Vec<Wide<T>> operator()(const T* from) const { return hn::LoadU(Wide<T>(), from); }
  HWY_INLINE T number(const T* from) const { return *from; }
};

/// Stores rows by phase. The last vector of a run is filled up with `outside` and reaches into what
/// comes after: padding, which is the same, and rows that are stored later. With kSums the numbers
/// are also summed, which tells whether a NaN may be among them.
template <class T, class S, class Load, bool kSums>
class PlaneCopy {
 public:
  /// `end` is the end of the source tensor, `edge` has room for `edge_size` numbers.
  PlaneCopy(const PlaneLayout& layout, const PlaneTables& tables, const S* end, T outside, S* edge)
      : l_(layout), t_(tables), end_(end), outside_(outside), edge_(edge) {
    const Index classes = l_.last().source_classes();
    for (Index r = 0; r < t_.run_count; ++r) {
      const PlaneTables::SourceRun& run = t_.source_runs[r];
      reads_ = std::max(reads_, run.from + (run.count + lanes(Wide<T>())) * classes);
    }
  }

  static Index edge_size(const PlaneLayout& layout) {
    return layout.last().source() + 2 * kSlack * layout.last().source_classes();
  }

  /// `planes` planes from `source`; `stored` was filled with `outside` before the first. False
  /// where the sum is NaN.
  bool operator()(const S* source, Index plane_size, Index planes, T* stored) const {
    const Index classes = l_.last().source_classes();
    if (t_.run_count == 0) {
      return true;
    }
    if (classes == 1) {
      return each_row<1>(source, plane_size, planes, stored);
    }
    if constexpr (std::is_same_v<T, S>) {  // winners have one class
      if (classes == 2 && t_.run_count == 2) {
        return each_row<2>(source, plane_size, planes, stored);
      }
    }
    return each_row<0>(source, plane_size, planes, stored);
  }

 private:
  using V = hn::Vec<Wide<T>>;
  using Run = PlaneTables::SourceRun;

  /// kClasses 0: any number, one number at a time.
  template <int kClasses>
  HWY_INLINE bool each_row(const S* source, Index plane_size, Index planes, T* stored) const {
    const Wide<T> d;
    // Copies, so that nothing is read again after a store.
    const Run first = t_.source_runs[0];
    const Run second = t_.source_runs[t_.run_count - 1];
    const PlaneTables::SourceRow* rows = t_.source_rows;
    const Index row_count = t_.source_row_count;
    const Index block_size = l_.block_size;
    const S* end = end_;
    const Index reads = reads_;
    const V outside = hn::Set(d, outside_);
    // What does not come from a cache: the next planes are fetched while these are computed, the
    // prefetcher has lost track by then.
    constexpr Index kLine = 64 / Index{sizeof(S)};
    constexpr Index kCached = Index{512} * 1024 / Index{sizeof(S)};
    const Index ahead = planes * plane_size;
    const bool fetches = end - source >= std::max(2 * ahead, kCached);
    const Index row_lines = fetches ? ceil_div(l_.last().source(), kLine) : 0;
    V sum = hn::Zero(d);
    T rest = T(0);
    for (Index plane = 0; plane < planes; ++plane) {
      for (Index r = 0; r < row_count; ++r) {
        const S* from = source + plane * plane_size + rows[r].from;
        T* to = stored + plane * block_size + rows[r].to;
        for (Index line = 0; line < row_lines; ++line) {
          hwy::Prefetch(from + ahead + line * kLine);
        }
        if (HWY_UNLIKELY(end - from < reads)) {
          from = edge_of(from);
        }
        if constexpr (kClasses == 1) {
          copy_ones(first, from, to, outside, sum);
        } else if constexpr (kClasses == 2) {
          copy_pairs(first, second, from, to, outside, sum);
        } else {
          copy_numbers(from, to, rest);
        }
      }
    }
    return rest == rest && hn::AllFalse(d, hn::IsNaN(sum));
  }
  /// The row in a place where vectors may read beyond its end.
  HWY_NOINLINE const S* edge_of(const S* row) const {
    const Index n = l_.last().source();
    std::copy(row, row + n, edge_);
    fill(edge_ + n, edge_size(l_) - n, S(0));
    return edge_;
  }
  static HWY_INLINE void copy_ones(const Run& run, const S* row, T* to, V outside, V& sum) {
    const Wide<T> d;
    const Load load;
    const S* from = row + run.from;
    T* at = to + run.to;
    Index k = 0;
    for (; k + lanes(d) <= run.count; k += lanes(d)) {
      const V v = load(from + k);
      see(v, sum);
      hn::StoreU(v, d, at + k);
    }
    if (k < run.count) {
      const V v = load(from + k);
      see(v, sum);
      hn::StoreU(hn::IfThenElse(first_lanes(run.count - k), v, outside), d, at + k);
    }
  }
  /// Runs of both classes start at the first two numbers, and differ by one in length at most.
  static HWY_INLINE void copy_pairs(
      const Run& even_run, const Run& odd_run, const S* row, T* to, V outside, V& sum) {
    const Wide<T> d;
    T* even_to = to + even_run.to;
    T* odd_to = to + odd_run.to;
    const Index both = std::min(even_run.count, odd_run.count);
    V even, odd;
    Index k = 0;
    for (; k + lanes(d) <= both; k += lanes(d)) {
      hn::LoadInterleaved2(d, row + 2 * k, even, odd);
      see(hn::Add(even, odd), sum);
      hn::StoreU(even, d, even_to + k);
      hn::StoreU(odd, d, odd_to + k);
    }
    if (k < std::max(even_run.count, odd_run.count)) {
      hn::LoadInterleaved2(d, row + 2 * k, even, odd);
      see(hn::Add(even, odd), sum);
      hn::StoreU(hn::IfThenElse(first_lanes(even_run.count - k), even, outside), d, even_to + k);
      hn::StoreU(hn::IfThenElse(first_lanes(odd_run.count - k), odd, outside), d, odd_to + k);
    }
  }
  HWY_INLINE void copy_numbers(const S* row, T* to, T& rest) const {
    const Load load;
    const Index classes = l_.last().source_classes();
    for (Index r = 0; r < t_.run_count; ++r) {
      const Run& run = t_.source_runs[r];
      for (Index k = 0; k < run.count; ++k) {
        const T number = load.number(row + run.from + k * classes);
        rest = kSums ? rest + number : rest;
        to[run.to + k] = number;
      }
    }
  }
  static HWY_INLINE void see(V v, V& sum) {
    if constexpr (kSums) {
      sum = hn::Add(sum, v);
    }
  }
  static HWY_INLINE auto first_lanes(Index count) {
    return hn::FirstN(Wide<T>(), static_cast<std::size_t>(count));
  }

  const PlaneLayout& l_;
  const PlaneTables& t_;
  const S* end_;
  const T outside_;
  S* edge_;
  Index reads_ = 0;
};

/// Calls value(at) for the vectors of all windows of a group, `at` its place in a stored phase, and
/// store(vector, to, part) for its place in the block's destination. The last vector of a row
/// reaches into the next row, which is stored later; the last of all is cut short.
template <class T, class F>
HWY_INLINE void for_windows(const PlaneLayout& l, const PlaneTables& t, Index planes, const F& f) {
  constexpr Index kLanes = lanes(Wide<T>());
  const Index all = planes * t.dest_numbers;
  // Dense numbers are one row.
  const Index n = l.dense ? all : l.last().dest();
  const Index row_count = l.dense ? 1 : t.dest_row_count;
  const PlaneTables::DestRow* rows = t.dest_rows;
  Index to = 0;
  for (Index first = 0; to < all; first += l.block_size) {
    for (Index row = 0; row < row_count; ++row, to += n) {
      const Index at = first + rows[row].at;
      for (Index i = 0; i < n; i += kLanes) {
        f(at + i, to + i, all - to - i);
      }
    }
  }
}

/// Calls f(row_class, at, to, left) for the rows of cells of a group: the class of the row, its
/// first step in the stored windows, its place in the block's destination, and the numbers from
/// there to the end. Rows ascend, so vectors may reach into the next one.
template <class F>
HWY_INLINE void for_cell_rows(const PlaneLayout& l,
                              const PlaneTables& t,
                              Index planes,
                              const F& f) {
  const Index n = l.last().dest();
  const PlaneTables::DestRow* rows = t.dest_rows;
  const Index row_count = t.dest_row_count;
  Index to = 0;
  Index left = planes * t.dest_numbers;
  for (Index plane = 0; plane < planes; ++plane) {
    for (Index row = 0; row < row_count; ++row, to += n, left -= n) {
      f(rows[row].row_class, plane * l.block_size + rows[row].at, to, left);
    }
  }
}

/// A row of n cells of one class: value(i) is the vector of cells i and on.
template <class T, class Value>
HWY_INLINE void store_ones(Index n, T* to, Index left, const Value& value) {
  const Wide<T> d;
  for (Index i = 0; i < n; i += lanes(d)) {
    store_part(d, value(i), to + i, left - i);
  }
}

/// A row of n cells of two classes by turns.
template <class T, class Even, class Odd>
HWY_INLINE void store_pairs(Index n, T* to, Index left, const Even& even, const Odd& odd) {
  const Wide<T> d;
  for (Index i = 0; 2 * i < n; i += lanes(d)) {
    if (HWY_LIKELY(left - 2 * i >= 2 * lanes(d))) {
      hn::StoreInterleaved2(even(i), odd(i), d, to + 2 * i);
    } else {
      HWY_ALIGN T buffer[2 * hn::MaxLanes(Wide<T>())];
      hn::StoreInterleaved2(even(i), odd(i), d, buffer);
      std::memcpy(to + 2 * i, buffer, static_cast<std::size_t>(left - 2 * i) * sizeof(T));
    }
  }
}

/// The numbers of one class, to their places in the row.
template <class T, class Value>
HWY_INLINE void store_class(Index n, Index cell_class, Index classes, T* to, const Value& value) {
  const Wide<T> d;
  const Dealing dealing{classes};
  const Index places = dealing.places(cell_class, n);
  for (Index i = 0; i < places; i += lanes(d)) {
    HWY_ALIGN T buffer[hn::MaxLanes(Wide<T>())];
    hn::Store(value(i), d, buffer);
    const Index count = std::min(lanes(d), places - i);
    T* at = to + dealing.position(cell_class, i);
    for (Index k = 0; k < count; ++k) {
      at[k * classes] = buffer[k];
    }
  }
}

/// Runs groups [begin, end) of all blocks: op.start() once, op.start_block(block) where one begins,
/// op.run(first plane, planes).
template <class Op>
HWY_INLINE void run_plane_groups(
    const Plan& plan, const PlaneLayout& layout, Op& op, Index begin, Index end) {
  ScratchFrame frame;
  op.take(frame);
  op.start();
  const Index groups = layout.groups(plan);
  Index started = -1;
  for (Index i = begin; i < end; ++i) {
    if (i / groups != started) {
      started = i / groups;
      op.start_block(started);
    }
    const Index first = i % groups * layout.planes_per_group;
    op.run(first, std::min(layout.planes_per_group, plan.planes - first));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#endif  // FENESTRA_POOL_PLANES_INL

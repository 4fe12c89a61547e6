// The algorithm "rows" for average and Lp pooling: each source row is mapped and summed over its
// own taps once, then the summed rows of a window are, then the sum is finished. The adjoint of the
// average is the same with windows and cells exchanged: y_bar is summed over the windows of each
// cell along the row, then across rows; where all windows have one divisor the sum is divided, else
// every share is.
#include <fenestra/kernels/simd.hpp>

#include <fenestra/ops/pool/kernels/call.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/pool/kernels/rows_sum.cpp"
#include <hwy/foreach_target.h>
//
#include <fenestra/ops/pool/kernels/rows-inl.hpp>
#include <fenestra/ops/pool/kernels/sums-inl.hpp>
#include <hwy/highway.h>

#ifndef FENESTRA_POOL_ROWS_SUM
#define FENESTRA_POOL_ROWS_SUM
namespace fenestra::pooling {

/// Numbers of a prepared row: of windows, or of the cells of as many steps.
inline Index sum_run(const Plan& plan, Index columns) {
  return columns * (plan.to_cells ? plan.last().stride : 1) * plan.inner + kSlack;
}

}  // namespace fenestra::pooling
#endif  // FENESTRA_POOL_ROWS_SUM

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {

/// One row over its own taps. kTaps 0: as many as there are.
template <class T, int kTaps, class Map>
struct SumReducer {
  Index taps;
  T* sums;
  const Map& map;

  template <int kStride, class Load>
  HWY_INLINE void vector(const Load& load, Index step, Index to, Index) const {
    const Wide<T> d;
    auto sum = hn::Zero(d);
    for_taps<kStride, kTaps>(
        d, load, taps, step, [&](hn::Vec<Wide<T>> v, Index t) FENESTRA_INLINE_LAMBDA {
          sum = t == 0 ? map(d, v) : hn::Add(sum, map(d, v));
        });
    hn::StoreU(sum, d, sums + to);
  }
  HWY_INLINE void split(const T* phases, const Index* offsets, Index to, Index i) const {
    const Wide<T> d;
    auto sum = map(d, hn::LoadU(d, phases + offsets[0] + i));
    for (Index t = 1; t < taps; ++t) {
      sum = hn::Add(sum, map(d, hn::LoadU(d, phases + offsets[t] + i)));
    }
    hn::StoreU(sum, d, sums + to);
  }
};

/// The tiles of a sum over windows. `finish` has take(ScratchFrame&, columns), start(Columns),
/// row(dest_row) and operator()(d, sum, i), i the number in the row of the block.
template <class T, class Map, class Finish>
class SumForward {
 public:
  SumForward(const Plan& plan, const Tiling& tiling, const T* x, T* y, Map map, Finish finish)
      : plan_(plan),
        a_(plan.last()),
        inner_(plan.inner),
        columns_per_block_(tiling.columns_per_block),
        x_(x),
        y_(y),
        map_(map),
        finish_(finish) {}

  Index slot_size() const { return sum_run(plan_, columns_per_block_); }
  void take(ScratchFrame& frame) {
    reader_.take(frame, a_, inner_, columns_per_block_);
    finish_.take(frame, columns_per_block_);
    rows_ = frame.take<const T*>(most_row_links(plan_));
  }
  void start(Columns columns) {
    columns_ = columns;
    reader_.start(a_,
                  inner_,
                  columns,
                  Outside<T>{T(0), T(0)},
                  true,
                  x_,
                  x_ + plan_.planes * plan_.source_plane_size());
    finish_.start(columns);
  }
  void prepare(T* slot, Index plane, Index source_row) {
    const T* row = x_ + plane * plan_.source_plane_size() + source_row * plan_.source_row_size();
    if (!reader_.is_direct()) {
      SumReducer<T, 0, Map> reducer{a_.kernel, slot, map_};
      reader_.reduce_split(row, reducer);
      return;
    }
    switch (a_.dilation == 1 ? a_.kernel : 0) {
      case 2: reduce<2>(row, slot); break;
      case 3: reduce<3>(row, slot); break;
      default: reduce<0>(row, slot);
    }
  }
  void pad(T*) const {}
  void emit(const SlotLink* links, Index count, const T* slots, Index plane, Index dest_row) {
    T* y = y_ + plane * plan_.dest_plane_size() + dest_row * plan_.dest_row_size() +
           columns_.begin * inner_;
    const Index n = columns_.count() * inner_;
    if (count == 0) {
      fill(y, n, T(0));
      return;
    }
    for (Index l = 0; l < count; ++l) {
      rows_[l] = slots + links[l].slot * slot_size();
    }
    finish_.row(dest_row);
    switch (count) {
      case 1: combine<1>(1, n, y); break;
      case 2: combine<2>(2, n, y); break;
      case 3: combine<3>(3, n, y); break;
      default: combine<0>(count, n, y);
    }
  }

 private:
  template <int kTaps>
  HWY_INLINE void reduce(const T* row, T* slot) const {
    SumReducer<T, kTaps, Map> reducer{a_.kernel, slot, map_};
    reader_.reduce(row, reducer);
  }
  template <int kRows>
  HWY_INLINE void combine(Index rows, Index n, T* y) const {
    const Wide<T> d;
    const T* const* from = rows_;
    const Finish finish = finish_;  // a copy, which no store can change
    const bool reordered = reader_.is_reordered();
    const Index vectors = reader_.vectors();
    const Index last = reader_.position(vectors - 1);
    for (Index k = 0; k < vectors; ++k) {
      const Index from_i = k * lanes(d);
      const Index i = std::min(from_i, last);
      auto sum = hn::LoadU(d, from[0] + from_i);
      for (Index l = 1; l < (kRows > 0 ? kRows : rows); ++l) {
        sum = hn::Add(sum, hn::LoadU(d, from[l] + from_i));
      }
      sum = reordered ? reorder(d, sum) : sum;
      store_part(d, finish(d, sum, i), y + i, n);
    }
  }

  const Plan& plan_;
  const WindowAxis a_;
  const Index inner_;
  const Index columns_per_block_;
  const T* x_;
  T* y_;
  const Map map_;
  Finish finish_;
  Columns columns_;
  RowReader<T> reader_;
  const T** rows_ = nullptr;
};

/// The tiles of the adjoint: a prepared row is a row of y_bar spread over the cells of the block.
template <class T>
class AvgSpread {
 public:
  explicit AvgSpread(const Call<T, AverageReduction>& call)
      : call_(call),
        plan_(call.plan),
        a_(call.plan.last()),
        inner_(call.plan.inner),
        run_(sum_run(call.plan, call.tiling.columns_per_block)),
        uniform_(call.divisors.uniform != 0) {}

  Index slot_size() const { return run_; }
  void take(ScratchFrame& frame) {
    shares_ = frame.take<T>(uniform_ ? 0 : a_.out * inner_ + kSlack);
    divisors_ = frame.take<T>(uniform_ ? 0 : a_.out);
    rows_ = frame.take<const T*>(most_row_links(plan_));
    const Index cells = call_.tiling.columns_per_block * a_.stride;
    cell_links_ = frame.take<CellLink>(cells * most_links(a_, true, false));
    offsets_ = frame.take<Index>(a_.kernel);
  }
  void start(Columns columns) {
    columns_ = columns;
    cells_ = a_.step_cells(columns);
    inside_ = inside_cells(a_, columns);
    direct_ = (a_.stride == 1 || (a_.stride == 2 && inner_ == 1 && a_.kernel > 1)) &&
              inside_.count() * inner_ >= lanes(Wide<T>());
    cell_link_count_ = 0;
    if (direct_) {
      Index next = 0;
      for (Index phase = 0; phase < a_.stride; ++phase) {
        for_each_phase_tap(
            a_, phase, [&](Index, Index steps) { offsets_[next++] = steps * inner_; });
        phase_end_[phase] = next;
      }
      cell_link_count_ =
          list_cell_links(a_, columns.begin, columns.begin + inside_.begin, cell_links_);
      cell_link_count_ += list_cell_links(
          a_, columns.begin + inside_.end, columns.end, cell_links_ + cell_link_count_);
    }
    for (Index o = 0; !uniform_ && o < a_.out; ++o) {
      divisors_[o] = static_cast<T>(call_.divisors.of_column(plan_, o));
    }
  }
  void prepare(T* slot, Index plane, Index source_row) {
    const T* y_bar =
        call_.args.in + plane * plan_.source_plane_size() + source_row * plan_.source_row_size();
    if (!uniform_) {
      const T outer = static_cast<T>(call_.divisors.of_row(plan_, source_row));
      for (Index o = 0; o < a_.out; ++o) {
        for (Index c = 0; c < inner_; ++c) {
          shares_[o * inner_ + c] = y_bar[o * inner_ + c] / (outer * divisors_[o]);
        }
      }
      y_bar = shares_;
    }
    if (!direct_) {
      spread(y_bar, slot);
      return;
    }
    // The cell of phase 0 at the first step of the block, in the slot.
    T* to = slot + (a_.cell_at(columns_.begin, 0) - cells_.begin) * inner_;
    const Wide<T> d;
    const Index from = inside_.begin * inner_;
    const T* at = y_bar + a_.windows_of_steps(columns_).begin * inner_ + from;
    if (a_.stride == 1) {
      for_exact(d, inside_.count() * inner_, [&](Index i, Index) HWY_ATTR {
        hn::StoreU(windows(d, at + i, 0), d, to + from + i);
      });
    } else {
      for_exact(d, inside_.count(), [&](Index i, Index) HWY_ATTR {
        hn::StoreInterleaved2(windows(d, at + i, 0), windows(d, at + i, 1), d, to + 2 * (from + i));
      });
    }
    ends(y_bar, slot);
  }
  void pad(T*) const {}
  void emit(const SlotLink* links, Index count, const T* slots, Index plane, Index dest_row) const {
    T* x_bar = call_.args.out + plane * plan_.dest_plane_size() + dest_row * plan_.dest_row_size() +
               cells_.begin * inner_;
    const Index n = cells_.count() * inner_;
    if (count == 0) {
      fill(x_bar, n, T(0));
      return;
    }
    for (Index l = 0; l < count; ++l) {
      rows_[l] = slots + links[l].slot * run_;
    }
    switch (count) {
      case 1: combine<1>(1, n, x_bar); break;
      case 2: combine<2>(2, n, x_bar); break;
      case 3: combine<3>(3, n, x_bar); break;
      default: combine<0>(count, n, x_bar);
    }
  }

 private:
  /// The sum over the windows of cells of one phase; `at` is the window of the last tap's step.
  template <class D>
  HWY_INLINE hn::Vec<D> windows(D d, const T* at, Index phase) const {
    auto sum = hn::Zero(d);
    for (Index t = phase == 0 ? 0 : phase_end_[phase - 1]; t < phase_end_[phase]; ++t) {
      sum = hn::Add(sum, hn::LoadU(d, at + offsets_[t]));
    }
    return sum;
  }

  /// The cells at the ends of the block, each from the windows that see it.
  void ends(const T* y_bar, T* slot) const {
    clear(slot, columns_.begin, columns_.begin + inside_.begin);
    clear(slot, columns_.begin + inside_.end, columns_.end);
    for (Index k = 0; k < cell_link_count_; ++k) {
      const CellLink& link = cell_links_[k];
      T* to = slot + (link.cell - cells_.begin) * inner_;
      for (Index c = 0; c < inner_; ++c) {
        to[c] += y_bar[link.window * inner_ + c];
      }
    }
  }
  void clear(T* slot, Index begin, Index end) const {
    const IndexRange cells = a_.step_cells({begin, end});
    if (!cells.empty()) {
      fill(slot + (cells.begin - cells_.begin) * inner_, cells.count() * inner_, T(0));
    }
  }
  /// All cells of the block, from window to window.
  void spread(const T* y_bar, T* slot) const {
    fill(slot, cells_.count() * inner_, T(0));
    const IndexRange needed = a_.needed_windows(cells_);
    for (Index o = needed.begin; o < needed.end; ++o) {
      const Window window = a_.window(o);
      const TapRange taps = taps_within(window, cells_.begin, cells_.end);
      for (Index t = taps.begin; t < taps.end; ++t) {
        T* to = slot + (window.cell(t) - cells_.begin) * inner_;
        for (Index c = 0; c < inner_; ++c) {
          to[c] += y_bar[o * inner_ + c];
        }
      }
    }
  }
  template <int kRows>
  HWY_INLINE void combine(Index rows, Index n, T* x_bar) const {
    const Wide<T> d;
    const T* const* from = rows_;
    const Division<T> divide(uniform_ ? call_.divisors.uniform : 1);
    for_padded(d, n, [&](Index i, Index part) HWY_ATTR {
      auto sum = hn::LoadU(d, from[0] + i);
      for (Index l = 1; l < (kRows > 0 ? kRows : rows); ++l) {
        sum = hn::Add(sum, hn::LoadU(d, from[l] + i));
      }
      store_part(d, divide(sum), x_bar + i, part);
    });
  }

  const Call<T, AverageReduction>& call_;
  const Plan& plan_;
  const WindowAxis a_;
  const Index inner_;
  const Index run_;
  const bool uniform_;
  Columns columns_;
  Columns cells_;
  Columns inside_;
  bool direct_ = false;
  T* shares_ = nullptr;
  T* divisors_ = nullptr;
  const T** rows_ = nullptr;
  CellLink* cell_links_ = nullptr;
  Index cell_link_count_ = 0;
  Index* offsets_ = nullptr;  // of the taps, phase by phase
  Index phase_end_[2] = {};   // of the two phases that are read directly
};

template <class T, class R>
void rows(const Call<T, R>& call, Index begin, Index end) {
  if constexpr (std::is_same_v<R, AverageReduction>) {
    if (call.plan.to_cells) {
      AvgSpread<T> op(call);
      return run_tiles<T>(call.plan, call.tiling, op, begin, end);
    }
  }
  as_sum(call, [&](const auto& map, const auto& finish) {
    using Map = std::remove_cvref_t<decltype(map)>;
    using Finish = std::remove_cvref_t<decltype(finish)>;
    SumForward<T, Map, Finish> op(call.plan, call.tiling, call.args.in, call.args.out, map, finish);
    run_tiles<T>(call.plan, call.tiling, op, begin, end);
  });
}

void rows_any(const CallOf<AverageReduction, LpReduction>& call, Index begin, Index end) {
  std::visit([&](const auto* c) HWY_ATTR { rows(*c, begin, end); }, call);
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::pooling {

HWY_EXPORT(rows_any);

void run_rows_on(const CallOf<AverageReduction, LpReduction>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(rows_any)(call, begin, end);
}
Index slot_numbers(const CallOf<AverageReduction, LpReduction>& call, Index columns) {
  return std::visit([&](const auto* c) { return sum_run(c->plan, columns); }, call);
}

}  // namespace fenestra::pooling
#endif  // HWY_ONCE

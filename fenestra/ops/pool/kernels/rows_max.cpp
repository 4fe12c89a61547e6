// The algorithm "rows" for max pooling: along the width, each source row is reduced over its own
// taps once, then the reduced rows of a window are. The scatter asks every cell which of its
// windows it won, so nothing is filled with zeros first and no two threads write one cell.
#include <fenestra/kernels/simd.hpp>

#include <fenestra/ops/pool/kernels/call.hpp>

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/pool/kernels/rows_max.cpp"
#include <hwy/foreach_target.h>
//
#include <fenestra/ops/pool/kernels/rows-inl.hpp>
#include <fenestra/ops/pool/kernels/winners-inl.hpp>
#include <hwy/highway.h>

#ifndef FENESTRA_POOL_ROWS_MAX
#define FENESTRA_POOL_ROWS_MAX
namespace fenestra::pooling {

/// The winner of a tile while it is still a number: padding that counts as zero, below every tap.
template <class T>
inline constexpr T kPaddingWon = T(-65536);

/// Rows as long as whole columns in a tile.
inline Index max_run(const Plan& plan, Index columns) {
  const Index steps = columns + (plan.to_cells ? plan.last().last_step() : 0);
  return steps * plan.inner + kSlack;
}

}  // namespace fenestra::pooling
#endif  // FENESTRA_POOL_ROWS_MAX

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {

/// One row over its own taps, into values and, where asked for, the tap that won, as a number.
/// kTaps 0: as many as there are.
template <class T, bool kIds, int kTaps, Order kOrder>
struct MaxReducer {
  using V = hn::Vec<Wide<T>>;

  Index taps;
  T* values;
  T* ids;
  const T* first;  ///< the first real tap per window
  const T* table;  ///< of phases, where padding counts: the number of each tap per window
  Index table_pitch;
  bool reordered;               ///< what is stored from phases
  V sum = hn::Zero(Wide<T>());  ///< of all that was read

  template <int kStride, class Load>
  HWY_INLINE void vector(const Load& load, Index step, Index to, Index i) {
    const Wide<T> d;
    V best = hn::Zero(d);
    V id = hn::Zero(d);
    V seen = hn::Zero(d);
    if constexpr (kIds && Load::kCut) {  // it wins where nothing beats -infinity
      id = hn::LoadU(d, first + i);
      id = kStride == 2 ? reorder(d, id) : id;
    }
    for_taps<kStride, kTaps>(d, load, taps, step, [&](V candidate, Index t) FENESTRA_INLINE_LAMBDA {
      if (t == 0) {
        best = seen = candidate;
        return;
      }
      seen = hn::Add(seen, candidate);
      take_winner(best, id, candidate, hn::Set(d, static_cast<T>(t)));
    });
    sum = hn::Add(sum, seen);
    store(best, id, to);
  }
  HWY_INLINE void split(const T* phases, const Index* offsets, Index to, Index i) {
    const Wide<T> d;
    V best = hn::LoadU(d, phases + offsets[0] + i);
    V id = hn::Zero(d);
    sum = hn::Add(sum, best);
    if constexpr (kIds) {
      id = hn::LoadU(d, first + i);
    }
    for (Index t = 1; t < taps; ++t) {
      const V candidate = hn::LoadU(d, phases + offsets[t] + i);
      sum = hn::Add(sum, candidate);
      take_winner(best,
                  id,
                  candidate,
                  table == nullptr ? hn::Set(d, static_cast<T>(t))
                                   : hn::LoadU(d, table + t * table_pitch + i));
    }
    store(reordered ? reorder(d, best) : best, reordered ? reorder(d, id) : id, to);
  }
  bool saw_numbers() const { return hn::AllFalse(Wide<T>(), hn::IsNaN(sum)); }

 private:
  static HWY_INLINE void take_winner(V& best,
                                     [[maybe_unused]] V& id,
                                     V candidate,
                                     [[maybe_unused]] V tap) {
    const auto wins = wins_over<kOrder>(candidate, best);
    best = winner_of<kOrder>(wins, candidate, best);
    if constexpr (kIds) {
      id = hn::IfThenElse(wins, tap, id);
    }
  }
  HWY_INLINE void store(V best, [[maybe_unused]] V id, Index to) const {
    const Wide<T> d;
    hn::StoreU(best, d, values + to);
    if constexpr (kIds) {
      hn::StoreU(id, d, ids + to);
    }
  }
};

template <class T, bool kIds>
class MaxForward {
 public:
  explicit MaxForward(const Call<T, MaxReduction>& call)
      : call_(call),
        a_(call.plan.last()),
        inner_(call.plan.inner),
        run_(max_run(call.plan, call.tiling.columns_per_block)) {}

  /// Values, winners, and one number that says whether a NaN may be among the values.
  Index slot_size() const { return run_ * (kIds ? 2 : 1) + kSlack; }
  void take(ScratchFrame& frame) {
    reader_.take(frame, a_, inner_, call_.tiling.columns_per_block);
    first_ = frame.take<T>(run_);
    table_ = frame.take<T>(kIds && call_.pad_zero ? a_.kernel * run_ : 0);
    empty_ = frame.take<Index>(call_.tiling.columns_per_block);
    sources_ = frame.take<Source>(most_row_links(call_.plan));
  }
  void start(Columns columns) {
    columns_ = columns;
    const T lowest = -std::numeric_limits<T>::infinity();
    reader_.start(a_,
                  inner_,
                  columns,
                  Outside<T>{call_.pad_zero ? T(0) : lowest, lowest},
                  !call_.pad_zero,
                  call_.args.in,
                  call_.args.in + call_.plan.planes * call_.plan.source_plane_size());
    empties_ = 0;
    for (Index o = columns.begin; o < columns.end; ++o) {
      const Index at = (o - columns.begin) * inner_;
      const Window window = a_.window(o);
      Index first = -1;
      for (Index t = 0; t < a_.kernel; ++t) {
        const bool real = a_.is_real(window.cell(t));
        first = first < 0 && real ? t : first;
        if (kIds && call_.pad_zero) {
          fill(table_ + t * run_ + at, inner_, real ? static_cast<T>(t) : kPaddingWon<T>);
        } else if (first >= 0) {
          break;
        }
      }
      if (first < 0 && !call_.pad_zero) {
        empty_[empties_++] = o - columns.begin;
      }
      fill(first_ + at, inner_, static_cast<T>(std::max<Index>(first, 0)));
    }
  }
  void prepare(T* slot, Index plane, Index source_row) {
    const T* row = call_.args.in + plane * call_.plan.source_plane_size() +
                   source_row * call_.plan.source_row_size();
    bool numbers = false;
    if (!reader_.is_direct()) {
      numbers = reduce_split<Order::numbers>(row, slot);
    } else {
      switch (a_.dilation == 1 ? a_.kernel : 0) {
        case 2: numbers = reduce<2>(row, slot); break;
        case 3: numbers = reduce<3>(row, slot); break;
        default: numbers = reduce<0>(row, slot);
      }
    }
    slot[slot_size() - kSlack] = numbers ? T(0) : T(1);
    if (HWY_UNLIKELY(!numbers)) {
      reduce_split<Order::exact>(row, slot);
    }
  }
  void pad(T* slot) const {
    fill(slot, slot_size(), T(0));
    if constexpr (kIds) {
      fill(slot + run_, run_, kPaddingWon<T>);
    }
  }
  void emit(const SlotLink* links, Index count, const T* slots, Index plane, Index dest_row) const {
    const Index at = plane * call_.plan.dest_plane_size() + dest_row * call_.plan.dest_row_size() +
                     columns_.begin * inner_;
    T* y = call_.args.out + at;
    WinnerTap* winners = kIds ? call_.args.winners_out + at : nullptr;
    if (count == 0) {
      clear(y, winners, columns_.count() * inner_);
      return;
    }
    bool numbers = true;
    for (Index l = 0; l < count; ++l) {
      sources_[l] = {slots + links[l].slot * slot_size(), static_cast<T>(links[l].tap * a_.kernel)};
      numbers = numbers && sources_[l].values[slot_size() - kSlack] == T(0);
    }
    if (HWY_UNLIKELY(!numbers)) {
      combine<0, Order::exact>(count, y, winners);
    } else {
      switch (count) {
        case 2: combine<2, Order::numbers>(count, y, winners); break;
        case 3: combine<3, Order::numbers>(count, y, winners); break;
        default: combine<0, Order::numbers>(count, y, winners);
      }
    }
    for (Index e = 0; e < empties_; ++e) {
      clear(y + empty_[e] * inner_, kIds ? winners + empty_[e] * inner_ : nullptr, inner_);
    }
  }

 private:
  struct Source {
    const T* values;
    T base;  ///< the number of the row's first tap
  };

  template <int kTaps, Order kOrder>
  MaxReducer<T, kIds, kTaps, kOrder> reducer_for(T* slot) const {
    const bool has_table = kIds && call_.pad_zero;
    return {a_.kernel,
            slot,
            slot + (kIds ? run_ : 0),
            has_table ? table_ : first_,
            has_table ? table_ : nullptr,
            run_,
            reader_.is_reordered()};
  }
  template <int kTaps>
  bool reduce(const T* row, T* slot) const {
    auto reducer = reducer_for<kTaps, Order::numbers>(slot);
    reader_.reduce(row, reducer);
    return reducer.saw_numbers();
  }
  template <Order kOrder>
  bool reduce_split(const T* row, T* slot) const {
    auto reducer = reducer_for<0, kOrder>(slot);
    reader_.reduce_split(row, reducer);
    return reducer.saw_numbers();
  }
  template <int kRows, Order kOrder>
  HWY_INLINE void combine(Index rows, T* y, WinnerTap* winners) const {
    const Wide<T> d;
    const Index count = kRows > 0 ? kRows : rows;
    const Index ids = run_;
    // Copies where there are few: winners are bytes, so a store of them may change anything else.
    const Source* sources = sources_;
    Source few[kRows > 0 ? kRows : 1];
    if constexpr (kRows > 0) {
      std::copy(sources, sources + kRows, few);
    }
    const auto source = [&](Index l)
                            FENESTRA_INLINE_LAMBDA { return kRows > 0 ? few[l] : sources[l]; };
    const bool pad_zero = call_.pad_zero;
    const bool reordered = reader_.is_reordered();
    const Index vectors = reader_.vectors();
    const Index n = columns_.count() * inner_;
    const Index last = reader_.position(vectors - 1);
    for (Index k = 0; k < vectors; ++k) {
      const Index from = k * lanes(d);
      const Index i = std::min(from, last);
      auto best = hn::LoadU(d, source(0).values + from);
      auto id = hn::Zero(d);
      if constexpr (kIds) {
        id = hn::Add(hn::LoadU(d, source(0).values + ids + from), hn::Set(d, source(0).base));
      }
      for (Index l = 1; l < count; ++l) {
        const T* values = source(l).values + from;
        const auto candidate = hn::LoadU(d, values);
        const auto wins = wins_over<kOrder>(candidate, best);
        best = winner_of<kOrder>(wins, candidate, best);
        if constexpr (kIds) {
          id = hn::IfThenElse(
              wins, hn::Add(hn::LoadU(d, values + ids), hn::Set(d, source(l).base)), id);
        }
      }
      store_part(d, reordered ? reorder(d, best) : best, y + i, n);
      if constexpr (kIds) {
        if (pad_zero) {
          id = hn::IfThenElse(hn::Lt(id, hn::Zero(d)), hn::Set(d, T(kNoWinner)), id);
        }
        store_winners(d, reordered ? reorder(d, id) : id, winners + i, n);
      }
    }
  }
  static void clear(T* y, WinnerTap* winners, Index n) {
    fill(y, n, T(0));
    if constexpr (kIds) {
      fill(winners, n, kNoWinner);
    }
  }

  const Call<T, MaxReduction>& call_;
  const WindowAxis a_;
  const Index inner_;
  const Index run_;
  Columns columns_;
  RowReader<T> reader_;
  T* first_ = nullptr;
  T* table_ = nullptr;
  Index* empty_ = nullptr;
  Index empties_ = 0;
  Source* sources_ = nullptr;
};

/// x_bar: each cell adds y_bar of the windows it won, in the order of the windows.
template <class T>
class MaxScatter {
 public:
  explicit MaxScatter(const Call<T, MaxReduction>& call)
      : call_(call),
        a_(call.plan.last()),
        inner_(call.plan.inner),
        run_(max_run(call.plan, call.tiling.columns_per_block)) {}

  Index slot_size() const { return 2 * run_; }
  void take(ScratchFrame& frame) {
    phases_ = frame.take<T>(a_.stride * phase_size(call_.tiling.columns_per_block));
    taps_ = frame.take<PhaseTap>(a_.kernel);
    phase_begin_ = frame.take<Index>(a_.stride + 1);
    sources_ = frame.take<Source>(most_row_links(call_.plan) * a_.kernel);
  }
  void start(Columns columns) {
    columns_ = columns;
    seen_ = StepWindows(a_, columns);
    Index next = 0;
    for (Index phase = 0; phase < a_.stride; ++phase) {
      phase_begin_[phase] = next;
      for_each_phase_tap(a_, phase, [&](Index t, Index steps) {
        taps_[next++] = {steps * inner_, t};
      });
    }
    phase_begin_[a_.stride] = next;
  }
  void prepare(T* slot, Index plane, Index source_row) const {
    const Index at =
        plane * call_.plan.source_plane_size() + source_row * call_.plan.source_row_size();
    const Index begin = seen_.windows.begin;
    const Index lead = std::min(seen_.missing * inner_, run_);
    const Index count = seen_.windows.count() * inner_;
    T* ids = slot + run_;
    fill(slot, lead, T(0));
    fill(ids, lead, T(-1));
    const T* y_bar = call_.args.in + at + begin * inner_;
    const WinnerTap* winners = call_.args.winners_in + at + begin * inner_;
    const Wide<T> d;
    Index i = 0;
    for (; i + lanes(d) <= count; i += lanes(d)) {
      hn::StoreU(hn::LoadU(d, y_bar + i), d, slot + lead + i);
      hn::StoreU(load_winners(d, winners + i), d, ids + lead + i);
    }
    for (; i < count; ++i) {
      slot[lead + i] = y_bar[i];
      ids[lead + i] = static_cast<T>(winners[i]);
    }
    fill(slot + lead + count, run_ - lead - count, T(0));
    fill(ids + lead + count, run_ - lead - count, T(-1));
  }
  void pad(T*) const {}
  void emit(const SlotLink* links, Index count, const T* slots, Index plane, Index dest_row) const {
    T* row = call_.args.out + plane * call_.plan.dest_plane_size() +
             dest_row * call_.plan.dest_row_size();
    const Index n = columns_.count() * inner_;
    if (a_.stride == 1) {
      fold(links, count, slots, 0, n, row + a_.cell_at(columns_.begin, 0) * inner_);
      return;
    }
    const Index pitch = phase_size(columns_.count());
    for (Index phase = 0; phase < a_.stride; ++phase) {
      fold(links, count, slots, phase, n, phases_ + phase * pitch);
    }
    merge_row(phases_, pitch, a_, inner_, columns_, row);
  }

 private:
  struct PhaseTap {
    Index offset;
    Index tap;
  };
  struct Source {
    const T* values;  ///< the winners follow a run later
    T tap;
  };
  Index phase_size(Index columns) const { return columns * inner_ + kSlack; }
  void fold(
      const SlotLink* links, Index count, const T* slots, Index phase, Index n, T* out) const {
    Index sources = 0;
    for (Index l = 0; l < count; ++l) {
      for (Index t = phase_begin_[phase]; t < phase_begin_[phase + 1]; ++t) {
        sources_[sources++] = {slots + links[l].slot * slot_size() + taps_[t].offset,
                               static_cast<T>(links[l].tap * a_.kernel + taps_[t].tap)};
      }
    }
    const Wide<T> d;
    const Index ids = run_;
    const Source* from = sources_;
    for_padded(d, n, [&](Index i, Index part) HWY_ATTR {
      auto sum = hn::Zero(d);
      for (Index s = 0; s < sources; ++s) {
        const T* at = from[s].values + i;
        const auto won = hn::Eq(hn::LoadU(d, at + ids), hn::Set(d, from[s].tap));
        sum = hn::Add(sum, hn::IfThenElseZero(won, hn::LoadU(d, at)));
      }
      store_part(d, sum, out + i, part);
    });
  }

  const Call<T, MaxReduction>& call_;
  const WindowAxis a_;
  const Index inner_;
  const Index run_;
  Columns columns_;
  StepWindows seen_;
  T* phases_ = nullptr;
  PhaseTap* taps_ = nullptr;
  Index* phase_begin_ = nullptr;
  Source* sources_ = nullptr;
};

/// The same without copies, for strides 1 and 2: cells that as many windows see as there are taps
/// read them where they are, the cells at the ends one by one.
template <class T>
class MaxScatterDirect {
 public:
  explicit MaxScatterDirect(const Call<T, MaxReduction>& call)
      : call_(call), a_(call.plan.last()), inner_(call.plan.inner) {}

  static bool applies(const Call<T, MaxReduction>& call) {
    const WindowAxis& a = call.plan.last();
    const Columns all{call.tiling.columns_begin,
                      call.tiling.columns_begin + call.tiling.columns_per_block};
    return (a.stride == 1 || (a.stride == 2 && call.plan.inner == 1)) &&
           inside_cells(a, all).count() * call.plan.inner >= lanes(Wide<T>());
  }

  Index slot_size() const { return 0; }
  void take(ScratchFrame& frame) {
    for (auto& sources : sources_) {
      sources = frame.take<Source>(most_row_links(call_.plan) * a_.kernel);
    }
    const Index cells = call_.tiling.columns_per_block * a_.stride;
    cell_links_ = frame.take<CellLink>(cells * most_links(a_, true, false));
  }
  void start(Columns columns) {
    columns_ = columns;
    inside_ = inside_cells(a_, columns);
    if (inside_.count() * inner_ < lanes(Wide<T>())) {
      inside_ = {0, 0};
    }
    cell_link_count_ =
        list_cell_links(a_, columns.begin, columns.begin + inside_.begin, cell_links_);
    cell_link_count_ += list_cell_links(
        a_, columns.begin + inside_.end, columns.end, cell_links_ + cell_link_count_);
  }
  void prepare(T*, Index, Index) const {}
  void pad(T*) const {}
  void emit(const SlotLink* links, Index count, const T*, Index plane, Index dest_row) {
    T* row = call_.args.out + plane * call_.plan.dest_plane_size() +
             dest_row * call_.plan.dest_row_size();
    const Index plane_at = plane * call_.plan.source_plane_size();
    Index found[2] = {0, 0};
    for (Index l = 0; l < count; ++l) {
      const Index at = plane_at + links[l].source_row * call_.plan.source_row_size();
      for (Index t = a_.kernel - 1; t >= 0; --t) {
        const Index phase = a_.tap_phase(t);
        sources_[phase][found[phase]++] = {at + (columns_.begin - a_.tap_step(t)) * inner_,
                                           static_cast<T>(links[l].tap * a_.kernel + t)};
      }
    }
    // The cell of phase 0 at the first step of the block.
    T* to = row + a_.cell_at(columns_.begin, 0) * inner_;
    const Index n = inside_.count() * inner_;
    const Index from = inside_.begin * inner_;
    const Index even = found[0];
    const Index odd = found[1];
    // Unrolled is 2x2; where windows overlap, planes are faster unless rows are very long.
    if (n == 0) {
      // every cell is at an end
    } else if (a_.stride == 1) {
      ones(even, from, n, to);
    } else if (even == 1 && odd == 1) {
      pairs<1>(even, odd, from, n, to);
    } else {
      pairs<0>(even, odd, from, n, to);
    }
    ends(links, count, plane_at, row);
  }

 private:
  struct Source {
    Index at;  ///< of the window that the block's first step is tap `tap` of
    T tap;
  };

  template <int kSources>
  HWY_INLINE hn::Vec<Wide<T>> won(const Source* sources, Index count, Index i) const {
    const Wide<T> d;
    const T* y_bar = call_.args.in;
    const WinnerTap* winners = call_.args.winners_in;
    auto sum = hn::Zero(d);
    for (Index s = 0; s < (kSources > 0 ? kSources : count); ++s) {
      const Index at = sources[s].at + i;
      const auto mine = hn::Eq(load_winners(d, winners + at), hn::Set(d, sources[s].tap));
      sum = hn::Add(sum, hn::IfThenElseZero(mine, hn::LoadU(d, y_bar + at)));
    }
    return sum;
  }
  HWY_INLINE void ones(Index count, Index from, Index n, T* to) const {
    const Wide<T> d;
    for_exact(d, n, [&](Index i, Index) HWY_ATTR {
      hn::StoreU(won<0>(sources_[0], count, from + i), d, to + from + i);
    });
  }
  template <int kCount>
  HWY_INLINE void pairs(Index even, Index odd, Index from, Index n, T* to) const {
    const Wide<T> d;
    for_exact(d, n, [&](Index i, Index) HWY_ATTR {
      hn::StoreInterleaved2(won<kCount>(sources_[0], even, from + i),
                            won<kCount>(sources_[1], odd, from + i),
                            d,
                            to + 2 * (from + i));
    });
  }
  /// The cells at the ends of the block, each from the windows that see it.
  void ends(const SlotLink* links, Index count, Index plane_at, T* row) const {
    clear(row, columns_.begin, columns_.begin + inside_.begin);
    clear(row, columns_.begin + inside_.end, columns_.end);
    for (Index l = 0; l < count; ++l) {
      const Index at = plane_at + links[l].source_row * call_.plan.source_row_size();
      const Index base = links[l].tap * a_.kernel;
      for (Index k = 0; k < cell_link_count_; ++k) {
        const CellLink& link = cell_links_[k];
        const Index from = at + link.window * inner_;
        T* to = row + link.cell * inner_;
        for (Index c = 0; c < inner_; ++c) {
          to[c] +=
              call_.args.winners_in[from + c] == base + link.tap ? call_.args.in[from + c] : T(0);
        }
      }
    }
  }
  void clear(T* row, Index begin, Index end) const {
    const IndexRange cells = a_.step_cells({begin, end});
    fill(row + cells.begin * inner_, cells.count() * inner_, T(0));
  }

  const Call<T, MaxReduction>& call_;
  const WindowAxis a_;
  const Index inner_;
  Columns columns_;
  Columns inside_;
  Source* sources_[2] = {};
  CellLink* cell_links_ = nullptr;
  Index cell_link_count_ = 0;
};

template <class T>
void rows(const Call<T, MaxReduction>& call, Index begin, Index end) {
  const auto run = [&](auto op) { run_tiles<T>(call.plan, call.tiling, op, begin, end); };
  if (call.plan.to_cells) {
    if (MaxScatterDirect<T>::applies(call)) {
      run(MaxScatterDirect<T>(call));
    } else {
      run(MaxScatter<T>(call));
    }
  } else if (call.args.winners_out != nullptr) {
    run(MaxForward<T, true>(call));
  } else {
    run(MaxForward<T, false>(call));
  }
}

void rows_any(const CallOf<MaxReduction>& call, Index begin, Index end) {
  std::visit([&](const auto* c) HWY_ATTR { rows(*c, begin, end); }, call);
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::pooling {

HWY_EXPORT(rows_any);

void run_rows_on(const CallOf<MaxReduction>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(rows_any)(call, begin, end);
}
/// Values, and winners where they are asked for or read.
Index slot_numbers(const CallOf<MaxReduction>& call, Index columns) {
  return std::visit(
      [&](const auto* c) {
        return (c->args.winners_out != nullptr || c->plan.to_cells ? 2 : 1) *
               max_run(c->plan, columns);
      },
      call);
}

}  // namespace fenestra::pooling
#endif  // HWY_ONCE

// Max pooling on vectors: values and winners, and the winners' gather and scatter.
//
// `rows` runs along the width: each source row is reduced over its own taps once, then the reduced
// rows of a window are. The scatter asks every cell which of its windows it won, so nothing is
// filled with zeros first and no two threads write one cell. `channels` does the same across the
// channels of a position, `whole` reduces planes that are one window, `generic` is left with bins
// of unequal size; `planes`, for short rows, is in planes.cpp. All follow one rule in every lane:
// the first cell that no later one beats.
#include <fenestra/kernels/simd.hpp>

#include <fenestra/ops/max_pool/kernels.hpp>
#include <fenestra/ops/max_pool/planes.hpp>
#include <fenestra/ops/max_pool/spec.hpp>
#include <fenestra/ops/pool_links.hpp>

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/max_pool/kernels.cpp"
#include <hwy/foreach_target.h>
//
#include <fenestra/ops/max_pool/winners-inl.hpp>
#include <hwy/highway.h>

#ifndef FENESTRA_MAX_POOL_CALL
#define FENESTRA_MAX_POOL_CALL
namespace fenestra::pooling {

template <class T>
struct MaxCall {
  Plan plan;
  Tiling tiling;
  bool pad_zero;
  MaxPoolArguments<T> args;
};

/// The winner of a tile while it is still a number: padding that counts as zero, below every tap.
template <class T>
inline constexpr T kPaddingWon = T(-65536);

/// Rows as long as whole columns in a tile.
template <class T>
Index max_run(const Plan& plan, Index columns) {
  const Index steps = columns + (plan.to_cells ? last_step(plan.last()) : 0);
  return steps * plan.inner + kSlack;
}

}  // namespace fenestra::pooling
#endif  // FENESTRA_MAX_POOL_CALL

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
      meet(best, id, candidate, hn::Set(d, static_cast<T>(t)));
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
      meet(best,
           id,
           candidate,
           table == nullptr ? hn::Set(d, static_cast<T>(t))
                            : hn::LoadU(d, table + t * table_pitch + i));
    }
    store(reordered ? reorder(d, best) : best, reordered ? reorder(d, id) : id, to);
  }
  bool saw_numbers() const { return hn::AllFalse(Wide<T>(), hn::IsNaN(sum)); }

 private:
  static HWY_INLINE void meet(V& best,
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
  explicit MaxForward(const MaxCall<T>& call)
      : call_(call),
        a_(call.plan.last()),
        inner_(call.plan.inner),
        run_(max_run<T>(call.plan, call.tiling.columns_per_block)) {}

  /// Values, winners, and one number that says whether a NaN may be among the values.
  Index slot_size() const { return run_ * (kIds ? 2 : 1) + kSlack; }
  void carve(Carver& carver) {
    reader_.carve(carver, a_, inner_, call_.tiling.columns_per_block);
    first_ = carver.take<T>(run_);
    table_ = carver.take<T>(kIds && call_.pad_zero ? a_.kernel * run_ : 0);
    empty_ = carver.take<Index>(call_.tiling.columns_per_block);
    sources_ = carver.take<Source>(most_row_links(call_.plan));
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

  const MaxCall<T>& call_;
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
  explicit MaxScatter(const MaxCall<T>& call)
      : call_(call),
        a_(call.plan.last()),
        inner_(call.plan.inner),
        run_(max_run<T>(call.plan, call.tiling.columns_per_block)) {}

  Index slot_size() const { return 2 * run_; }
  void carve(Carver& carver) {
    phases_ = carver.take<T>(a_.stride * phase_size(call_.tiling.columns_per_block));
    taps_ = carver.take<PhaseTap>(a_.kernel);
    phase_begin_ = carver.take<Index>(a_.stride + 1);
    sources_ = carver.take<Source>(most_row_links(call_.plan) * a_.kernel);
  }
  void start(Columns columns) {
    columns_ = columns;
    Index next = 0;
    for (Index phase = 0; phase < a_.stride; ++phase) {
      phase_begin_[phase] = next;
      for (Index t = a_.kernel - 1; t >= 0; --t) {  // windows ascend where taps descend
        if (tap_phase(a_, t) == phase) {
          taps_[next++] = {(last_step(a_) - tap_step(a_, t)) * inner_, t};
        }
      }
    }
    phase_begin_[a_.stride] = next;
  }
  void prepare(T* slot, Index plane, Index source_row) const {
    const Index at =
        plane * call_.plan.source_plane_size() + source_row * call_.plan.source_row_size();
    const Index first = columns_.begin - last_step(a_);
    const Index begin = std::clamp<Index>(first, 0, a_.out);
    const Index end = std::clamp<Index>(columns_.end, begin, a_.out);
    const Index lead = std::min((begin - first) * inner_, run_);
    const Index count = (end - begin) * inner_;
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
      fold(links, count, slots, 0, n, row + (columns_.begin - a_.pad_low) * inner_);
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

  const MaxCall<T>& call_;
  const WindowAxis a_;
  const Index inner_;
  const Index run_;
  Columns columns_;
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
  explicit MaxScatterDirect(const MaxCall<T>& call)
      : call_(call), a_(call.plan.last()), inner_(call.plan.inner) {}

  static bool applies(const MaxCall<T>& call) {
    const WindowAxis& a = call.plan.last();
    const Columns all{call.tiling.columns_begin,
                      call.tiling.columns_begin + call.tiling.columns_per_block};
    return (a.stride == 1 || (a.stride == 2 && call.plan.inner == 1)) &&
           inside_cells(a, all).count() * call.plan.inner >= lanes(Wide<T>());
  }

  Index slot_size() const { return 0; }
  void carve(Carver& carver) {
    for (auto& sources : sources_) {
      sources = carver.take<Source>(most_row_links(call_.plan) * a_.kernel);
    }
    const Index cells = call_.tiling.columns_per_block * a_.stride;
    cell_links_ = carver.take<CellLink>(cells * most_links(a_, true, false));
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
        const Index phase = tap_phase(a_, t);
        sources_[phase][found[phase]++] = {at + (columns_.begin - tap_step(a_, t)) * inner_,
                                           static_cast<T>(links[l].tap * a_.kernel + t)};
      }
    }
    // The cell of phase 0 at the first step of the block.
    T* to = row + (columns_.begin * a_.stride - a_.pad_low) * inner_;
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
    const Index first = std::max<Index>(begin * a_.stride - a_.pad_low, 0);
    const Index last = std::min(end * a_.stride - a_.pad_low, a_.in);
    fill(row + first * inner_, (last - first) * inner_, T(0));
  }

  const MaxCall<T>& call_;
  const WindowAxis a_;
  const Index inner_;
  Columns columns_;
  Columns inside_;
  Source* sources_[2] = {};
  CellLink* cell_links_ = nullptr;
  Index cell_link_count_ = 0;
};

/// kVectors vectors of one window from its cells; false where a NaN may be among them.
template <Order kOrder, int kVectors, class D, class T>
HWY_INLINE bool max_position(
    D d, const T* x, const Entry* entries, Index count, T* y, WinnerTap* winners) {
  hn::Vec<D> best[kVectors];
  hn::Vec<D> id[kVectors];
  auto sum = hn::Zero(d);
  FENESTRA_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    best[v] = hn::Zero(d);
    id[v] = hn::Set(d, T(kNoWinner));
  }
  for (Index e = 0; e < count; ++e) {
    const bool real = entries[e].offset >= 0;
    const T* from = x + entries[e].offset;
    const auto tap = hn::Set(d, static_cast<T>(real ? entries[e].tap : kNoWinner));
    FENESTRA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const auto candidate = real ? hn::LoadU(d, from + v * lanes(d)) : hn::Zero(d);
      sum = hn::Add(sum, candidate);
      if (e == 0) {
        best[v] = candidate;
        id[v] = tap;
      } else {
        const auto wins = wins_over<kOrder>(candidate, best[v]);
        best[v] = winner_of<kOrder>(wins, candidate, best[v]);
        id[v] = hn::IfThenElse(wins, tap, id[v]);
      }
    }
  }
  FENESTRA_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    hn::StoreU(best[v], d, y + v * lanes(d));
    if (winners != nullptr) {
      store_winners(d, id[v], winners + v * lanes(d), lanes(d));
    }
  }
  return hn::AllFalse(d, hn::IsNaN(sum));
}

template <int kVectors, class D, class T>
HWY_INLINE void won_position(
    D d, const T* y_bar, const WinnerTap* winners, const Entry* entries, Index count, T* x_bar) {
  hn::Vec<D> sum[kVectors];
  FENESTRA_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    sum[v] = hn::Zero(d);
  }
  for (Index e = 0; e < count; ++e) {
    const Index offset = entries[e].offset;
    const auto tap = hn::Set(d, static_cast<T>(entries[e].tap));
    FENESTRA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const auto won = hn::Eq(load_winners(d, winners + offset + v * lanes(d)), tap);
      sum[v] =
          hn::Add(sum[v], hn::IfThenElseZero(won, hn::LoadU(d, y_bar + offset + v * lanes(d))));
    }
  }
  FENESTRA_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    hn::StoreU(sum[v], d, x_bar + v * lanes(d));
  }
}

/// One position of some planes.
template <class D, class T>
struct MaxPositions {
  const MaxCall<T>& call;

  template <int kVectors>
  HWY_INLINE void run(const Entry* entries, Index count, Index source, Index dest) const {
    const D d;
    const MaxPoolArguments<T>& args = call.args;
    if (call.plan.to_cells) {
      won_position<kVectors>(
          d, args.in + source, args.winners_in + source, entries, count, args.out + dest);
      return;
    }
    WinnerTap* winners = args.winners_out == nullptr ? nullptr : args.winners_out + dest;
    if (HWY_UNLIKELY(!(max_position<Order::numbers, kVectors>(
            d, args.in + source, entries, count, args.out + dest, winners)))) {
      max_position<Order::exact, kVectors>(
          d, args.in + source, entries, count, args.out + dest, winners);
    }
  }
  void operator()(const Entry* entries, Index count, Index plane, Index end_plane, Index at) const {
    for_position(D(), call.plan, plane, end_plane, at, *this, entries, count);
  }
};

/// Planes [begin, end) that are one window each.
template <class T>
void max_whole(const MaxCall<T>& call, Index begin, Index end) {
  const Wide<T> d;
  const MaxPoolArguments<T>& args = call.args;
  if (call.plan.to_cells) {
    const Index n = call.plan.dest_plane_size();
    for (Index plane = begin; plane < end; ++plane) {
      fill(args.out + plane * n, n, T(0));
      if (args.winners_in[plane] != kNoWinner) {
        args.out[plane * n + args.winners_in[plane]] += args.in[plane];
      }
    }
    return;
  }
  const Index n = call.plan.source_plane_size();
  for (Index plane = begin; plane < end; ++plane) {
    const T* x = args.in + plane * n;
    Index winner = 0;
    bool numbers = false;
    if (n >= lanes(d) && n < (Index{1} << 24)) {  // numbers of taps are exact in any T
      auto top = hn::LoadU(d, x);
      auto sum = top;
      auto id = hn::Iota(d, T(0));
      const auto step = [&](Index i, Index) HWY_ATTR {
        const auto candidate = hn::LoadU(d, x + i);
        sum = hn::Add(sum, candidate);
        const auto wins = hn::Gt(candidate, top);
        top = hn::IfThenElse(wins, candidate, top);
        id = hn::IfThenElse(wins, hn::Iota(d, static_cast<T>(i)), id);
      };
      for_exact(d, n, step);  // the first vector again: it does not beat itself
      numbers = hn::AllFalse(d, hn::IsNaN(sum));
      const auto tied = hn::Eq(top, hn::MaxOfLanes(d, top));
      const auto none = hn::Set(d, static_cast<T>(n));
      winner = static_cast<Index>(hn::GetLane(hn::MinOfLanes(d, hn::IfThenElse(tied, id, none))));
    }
    if (!numbers) {
      winner = 0;
      for (Index i = 1; i < n; ++i) {
        winner = beats(x[i], x[winner]) ? i : winner;
      }
    }
    args.out[plane] = x[winner];
    if (args.winners_out != nullptr) {
      args.winners_out[plane] = static_cast<WinnerTap>(winner);
    }
  }
}

template <class T>
void max_rows(const MaxCall<T>& call, Index begin, Index end) {
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

void max_rows_f32(const MaxCall<float>& c, Index b, Index e) { max_rows(c, b, e); }
void max_rows_f64(const MaxCall<double>& c, Index b, Index e) { max_rows(c, b, e); }
void max_whole_f32(const MaxCall<float>& c, Index b, Index e) { max_whole(c, b, e); }
void max_whole_f64(const MaxCall<double>& c, Index b, Index e) { max_whole(c, b, e); }
void max_channels_f32(const MaxCall<float>& c, Index b, Index e) {
  run_positions(c.plan, 1, b, e, MaxPositions<Wide<float>, float>{c});
}
void max_channels_f64(const MaxCall<double>& c, Index b, Index e) {
  run_positions(c.plan, 1, b, e, MaxPositions<Wide<double>, double>{c});
}
void max_generic_f32(const MaxCall<float>& c, Index b, Index e) {
  run_positions(c.plan, kGenericPlanes, b, e, MaxPositions<Single<float>, float>{c});
}
void max_generic_f64(const MaxCall<double>& c, Index b, Index e) {
  run_positions(c.plan, kGenericPlanes, b, e, MaxPositions<Single<double>, double>{c});
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra {
namespace pooling {

HWY_EXPORT(max_rows_f32);
HWY_EXPORT(max_rows_f64);
HWY_EXPORT(max_whole_f32);
HWY_EXPORT(max_whole_f64);
HWY_EXPORT(max_channels_f32);
HWY_EXPORT(max_channels_f64);
HWY_EXPORT(max_generic_f32);
HWY_EXPORT(max_generic_f64);

namespace {

/// The best instruction set of this machine.
void run_rows_on(const MaxCall<float>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(max_rows_f32)(call, begin, end);
}
void run_rows_on(const MaxCall<double>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(max_rows_f64)(call, begin, end);
}
void run_whole_on(const MaxCall<float>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(max_whole_f32)(call, begin, end);
}
void run_whole_on(const MaxCall<double>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(max_whole_f64)(call, begin, end);
}
void run_channels_on(const MaxCall<float>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(max_channels_f32)(call, begin, end);
}
void run_channels_on(const MaxCall<double>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(max_channels_f64)(call, begin, end);
}
void run_generic_on(const MaxCall<float>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(max_generic_f32)(call, begin, end);
}
void run_generic_on(const MaxCall<double>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(max_generic_f64)(call, begin, end);
}

template <class T>
MaxCall<T> make_call(const MaxPoolProblem& problem, const MaxPoolArguments<T>& args) {
  const MaxPoolGeometry& g = problem.geometry;
  const bool pad_zero = g.pad_cells == PadCells::zero;
  const bool scatter = problem.direction == MaxPoolDirection::scatter;
  return {Plan(g.pool, scatter, pad_zero && !scatter), Tiling{}, pad_zero, args};
}

const char* refuse_gather(const MaxPoolProblem& problem) {
  return problem.direction == MaxPoolDirection::gather ? nullptr : "reads at winners only";
}

const char* refuse_whole(const MaxPoolProblem& problem) {
  if (problem.direction == MaxPoolDirection::gather) {
    return "forward and scatter only";
  }
  return is_whole(problem.geometry.pool) ? nullptr
                                         : "needs channels first and one window per plane";
}

const char* refuse_channels(const MaxPoolProblem& problem) {
  if (problem.direction == MaxPoolDirection::gather) {
    return "forward and scatter only";
  }
  const PoolGeometry& g = problem.geometry.pool;
  return g.layout == Layout::channels_last && g.channels >= kFewChannels
             ? nullptr
             : "needs channels last and at least 32 channels";
}

const char* refuse_rows(const MaxPoolProblem& problem) {
  if (problem.direction == MaxPoolDirection::gather) {
    return "forward and scatter only";
  }
  return Plan(problem.geometry.pool, false).refuse_rows();
}

const char* refuse_generic(const MaxPoolProblem& problem) {
  return problem.direction == MaxPoolDirection::gather ? "forward and scatter only" : nullptr;
}

template <class T>
void run_rows(const MaxPoolProblem& problem, const MaxPoolArguments<T>& args) {
  MaxCall<T> call = make_call(problem, args);
  const Index runs = call.args.winners_out != nullptr || call.plan.to_cells ? 2 : 1;
  call.tiling = make_tiling(call.plan, [&](Index columns) {
    return runs * max_run<T>(call.plan, columns) * static_cast<Index>(sizeof(T));
  });
  for_tiles(call.plan, call.tiling, [&](Index b, Index e) { run_rows_on(call, b, e); });
}

template <class T>
void run_whole(const MaxPoolProblem& problem, const MaxPoolArguments<T>& args) {
  const MaxCall<T> call = make_call(problem, args);
  const Index size = std::max(call.plan.dest_plane_size(), call.plan.source_plane_size());
  parallel_for(call.plan.planes, grain_of(call.plan.planes, size), [&](Index b, Index e) {
    run_whole_on(call, b, e);
  });
}

template <class T>
void run_channels(const MaxPoolProblem& problem, const MaxPoolArguments<T>& args) {
  const MaxCall<T> call = make_call(problem, args);
  for_positions(call.plan, 1, [&](Index b, Index e) { run_channels_on(call, b, e); });
}

template <class T>
void run_generic(const MaxPoolProblem& problem, const MaxPoolArguments<T>& args) {
  const MaxCall<T> call = make_call(problem, args);
  for_positions(call.plan, kGenericPlanes, [&](Index b, Index e) { run_generic_on(call, b, e); });
}

/// y_dot: one read per window. Where windows slide, the tap gives the distance from the window's
/// first cell; bins have no padding, so the tap numbers their cells.
template <class T>
void run_gather(const MaxPoolProblem& problem, const MaxPoolArguments<T>& args) {
  const Plan plan(problem.geometry.pool, false);
  bool slides = true;
  for (int axis = 0; axis < plan.windows.rank(); ++axis) {
    slides = slides && plan.windows[axis].rule != ExtentRule::adaptive;
  }
  if (!slides) {
    const auto visit = [&](const Entry* entries, Index, Index plane, Index end, Index at) {
      for (; plane < end; ++plane) {
        const T* x = args.in + plane * plan.source_plane_size();
        for (Index i = 0; i < plan.inner; ++i) {
          const Index o = plane * plan.dest_plane_size() + at + i;
          const WinnerTap tap = args.winners_in[o];
          args.out[o] = tap == kNoWinner ? T(0) : x[entries[tap].offset + i];
        }
      }
    };
    parallel_for(ceil_div(plan.planes, kGenericPlanes) * plan.dest_rows(),
                 1,
                 [&](Index b, Index e) { run_positions(plan, kGenericPlanes, b, e, visit); });
    return;
  }
  // Taps and windows far outside the input have distances that may not fit, but never those of a
  // winner: unsigned numbers wrap around and come back.
  using Wrapping = std::uint64_t;
  const auto wrapping = [](Index n) { return static_cast<Wrapping>(n); };
  Wrapping distance[kNoWinner + 1] = {};
  const Index taps = std::min<Index>(plan.windows.taps(), kNoWinner);
  for (Index tap = 0; tap < taps; ++tap) {
    Index rest = tap;
    Index pitch = plan.inner;
    for (int axis = plan.windows.rank() - 1; axis >= 0; --axis) {
      const WindowAxis& a = plan.windows[axis];
      distance[tap] += wrapping(rest % a.kernel * a.dilation) * wrapping(pitch);
      rest /= a.kernel;
      pitch *= a.in;
    }
  }
  const WindowAxis& last = plan.last();
  const auto rows = [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const Index plane = i / plan.dest_rows();
      Index row = i % plan.dest_rows();
      Wrapping first = wrapping(-last.pad_low) * wrapping(plan.inner);
      Index pitch = plan.source_row_size();
      for (int axis = plan.outer_axes() - 1; axis >= 0; --axis) {
        const WindowAxis& a = plan.windows[axis];
        first += wrapping(a.window(row % a.out).first) * wrapping(pitch);
        row /= a.out;
        pitch *= a.in;
      }
      const T* x = args.in + plane * plan.source_plane_size();
      const WinnerTap* winners = args.winners_in + i * plan.dest_row_size();
      T* y = args.out + i * plan.dest_row_size();
      for (Index o = 0; o < last.out; ++o) {
        for (Index c = 0; c < plan.inner; ++c, ++winners, ++y) {
          *y = *winners == kNoWinner ? T(0) : x[first + wrapping(c) + distance[*winners]];
        }
        first += wrapping(last.stride) * wrapping(plan.inner);
      }
    }
  };
  const Index items = plan.planes * plan.dest_rows();
  parallel_for(items, grain_of(items, plan.dest_row_size()), rows);
}

const char* accept(const MaxPoolProblem&) { return nullptr; }

/// The specification on copies of the arguments.
template <class T>
void run_spec(const MaxPoolProblem& problem, const MaxPoolArguments<T>& args) {
  const MaxPoolGeometry& g = problem.geometry;
  const auto tensor = [&](const Shape& shape) {
    return Tensor<T>(shape,
                     std::span<const T>(args.in, static_cast<std::size_t>(*shape.elements())));
  };
  const auto copy = [&](const Tensor<T>& result) {
    std::copy(result.data(), result.data() + result.size(), args.out);
  };
  const auto each_tap = [&](const auto& f) {
    spec::for_each_window(g.pool, [&](Index n, Index c, Index o) {
      const Index at = g.pool.y_map().at(n, c, o);
      for_each_tap(g.pool.windows, o, Visit::real, [&](const Tap& tap) { f(at, tap); });
    });
  };
  if (problem.direction == MaxPoolDirection::forward) {
    const Tensor<T> x = tensor(g.pool.x_shape());
    const Tensor<Index> indices = spec::max_pool_indices(x, g);
    copy(spec::gather(x, indices, g.pool.x_map(), g.pool.y_map()));
    if (args.winners_out != nullptr) {
      std::fill_n(args.winners_out, indices.size(), kNoWinner);
      each_tap([&](Index at, const Tap& tap) {
        if (tap.cell == indices[at]) {
          args.winners_out[at] = static_cast<WinnerTap>(tap.tap);
        }
      });
    }
    return;
  }
  Tensor<Index> indices(g.pool.y_shape(), spec::kNowhere);
  Index* cells = indices.mutable_data();
  each_tap([&](Index at, const Tap& tap) {
    if (args.winners_in[at] != kNoWinner && tap.tap == args.winners_in[at]) {
      cells[at] = tap.cell;
    }
  });
  copy(problem.direction == MaxPoolDirection::gather
           ? spec::max_pool_jvp(indices, tensor(g.pool.x_shape()), g)
           : spec::max_pool_vjp(indices, tensor(g.pool.y_shape()), g));
}

template <class T>
constexpr bool kF32 = std::is_same_v<T, float>;

}  // namespace
}  // namespace pooling

template <class T>
std::span<const MaxPoolCandidate<T>> max_pool_candidates() {
  using namespace pooling;
  static constexpr MaxPoolCandidate<T> candidates[] = {
      {kF32<T> ? "max_pool_f32_gather" : "max_pool_f64_gather", refuse_gather, run_gather<T>},
      {kF32<T> ? "max_pool_f32_whole" : "max_pool_f64_whole", refuse_whole, run_whole<T>},
      {kF32<T> ? "max_pool_f32_channels" : "max_pool_f64_channels",
       refuse_channels,
       run_channels<T>},
      {kF32<T> ? "max_pool_f32_planes" : "max_pool_f64_planes",
       refuse_max_planes<T>,
       run_max_planes<T>},
      {kF32<T> ? "max_pool_f32_rows" : "max_pool_f64_rows", refuse_rows, run_rows<T>},
      {kF32<T> ? "max_pool_f32_generic" : "max_pool_f64_generic", refuse_generic, run_generic<T>},
      {kF32<T> ? "max_pool_f32_spec" : "max_pool_f64_spec", accept, run_spec<T>},
  };
  return candidates;
}

template std::span<const MaxPoolCandidate<float>> max_pool_candidates<float>();
template std::span<const MaxPoolCandidate<double>> max_pool_candidates<double>();

}  // namespace fenestra
#endif  // HWY_ONCE

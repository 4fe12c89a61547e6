// The algorithm "planes" for max pooling: values and winners from planes stored by phase, and the
// winners' scatter from windows stored with none around them. Not the gather, nor padding that
// counts as zero.
#include <fenestra/kernels/simd.hpp>

#include <fenestra/ops/pool/kernels/call.hpp>

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/pool/kernels/planes_max.cpp"
#include <hwy/foreach_target.h>
//
#include <fenestra/ops/pool/kernels/planes-inl.hpp>
#include <fenestra/ops/pool/kernels/winners-inl.hpp>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {

/// Loads winners as numbers.
template <class T>
struct WinnerLoad {
  HWY_INLINE hn::Vec<Wide<T>> operator()(const WinnerTap* from) const {
    return load_winners(Wide<T>(), from);
  }
  HWY_INLINE T number(const WinnerTap* from) const { return static_cast<T>(*from); }
};

template <class T, bool kIds>
class MaxPlanesForward {
 public:
  explicit MaxPlanesForward(const Call<T, MaxReduction>& call)
      : call_(call), l_(call.layout), t_(call.layout) {
    for (int axis = 0; axis < l_.rank; ++axis) {
      padded_ = padded_ || looks_outside(l_.axes[axis].a);
    }
  }

  void take(ScratchFrame& frame) {
    t_.take(frame);
    stored_ = frame.take<T>(l_.phases() * l_.phase_size);
    first_ = frame.take<T>(kIds && padded_ ? l_.phase_size : 0);
    offsets_ = frame.take<Index>(call_.plan.windows.taps());
    edge_ = frame.take<T>(Copy::edge_size(l_));
  }
  void start() {
    t_.start();
    for (Index r = 0; r < t_.rows.begin[1]; ++r) {
      for (Index c = 0; c < t_.columns.begin[1]; ++c) {
        const PlaneTables::Tap& row = t_.rows.taps[r];
        const PlaneTables::Tap& column = t_.columns.taps[c];
        offsets_[row.tap * l_.last().a.kernel + column.tap] =
            (row.phase * l_.last().phases + column.phase) * l_.phase_size + row.distance +
            column.distance;
      }
    }
  }
  void start_block(Index block) {
    t_.start_block(call_.plan, block);
    fill(stored_, l_.phases() * l_.phase_size, kLowest);
    if (kIds && padded_) {
      list_first();
    }
  }
  void run(Index plane, Index planes) {
    const T* end = call_.args.in + call_.plan.planes * call_.plan.source_plane_size();
    const Copy copy(l_, t_, end, kLowest, edge_);
    const bool numbers = copy(call_.args.in + plane * call_.plan.source_plane_size(),
                              call_.plan.source_plane_size(),
                              planes,
                              stored_);
    const Index to = plane * call_.plan.dest_plane_size() + t_.dest_begin;
    const Index taps = call_.plan.windows.taps();
    if (HWY_UNLIKELY(!numbers)) {
      reduce<0, Order::exact>(planes, to);
    } else if (taps == 4) {
      reduce<4, Order::numbers>(planes, to);
    } else if (taps == 9) {
      reduce<9, Order::numbers>(planes, to);
    } else {
      reduce<0, Order::numbers>(planes, to);
    }
  }

 private:
  using Copy = PlaneCopy<T, T, PlainLoad<T>, true>;
  static constexpr T kLowest = -std::numeric_limits<T>::infinity();

  template <int kTaps, Order kOrder>
  HWY_INLINE void reduce(Index planes, Index to) const {
    const Wide<T> d;
    [[maybe_unused]] const Index taps = call_.plan.windows.taps();
    const T* stored = stored_;
    const T* first = kIds && padded_ ? first_ : nullptr;
    const Index* offsets = offsets_;
    T* y = call_.args.out + to;
    WinnerTap* winners = kIds ? call_.args.winners_out + to : nullptr;
    for_windows<T>(l_, t_, planes, [&](Index at, Index i, Index left) FENESTRA_INLINE_LAMBDA {
      auto best = hn::LoadU(d, stored + offsets[0] + at);
      auto id = hn::Zero(d);
      if (kIds && first != nullptr) {
        id = hn::LoadU(d, first + at);
      }
      const auto take_winner = [&](Index t) FENESTRA_INLINE_LAMBDA {
        const auto candidate = hn::LoadU(d, stored + offsets[t] + at);
        const auto wins = wins_over<kOrder>(candidate, best);
        best = winner_of<kOrder>(wins, candidate, best);
        if constexpr (kIds) {  // a later winner has the greater number
          id = hn::Max(id, hn::IfThenElseZero(wins, hn::Set(d, static_cast<T>(t))));
        }
      };
      if constexpr (kTaps > 0) {
        FENESTRA_UNROLL
        for (int t = 1; t < kTaps; ++t) {
          take_winner(t);
        }
      } else {
        for (Index t = 1; t < taps; ++t) {
          take_winner(t);
        }
      }
      store_part(d, best, y + i, left);
      if constexpr (kIds) {
        store_winners(d, id, winners + i, left);
      }
    });
  }
  /// The first tap of each window that sees a real cell: it wins where nothing beats -infinity.
  void list_first() {
    const Index rows = t_.dest_numbers / l_.last().dest();
    const Index first_row = t_.dest_begin / l_.last().dest();
    for (Index row = 0; row < rows; ++row) {
      Index rest = first_row + row;
      Index outer = 0;
      Index taps = 1;
      for (int axis = l_.rank - 2; axis >= 0; --axis) {
        const WindowAxis& a = l_.axes[axis].a;
        outer += first_real(a, rest % a.out) * taps;
        taps *= a.kernel;
        rest /= a.out;
      }
      for (Index o = 0; o < l_.last().dest(); ++o) {
        first_[t_.dest_rows[row].at + o] =
            static_cast<T>(outer * l_.last().a.kernel + first_real(l_.last().a, o));
      }
    }
    for (Index plane = 1; plane < l_.planes_per_group; ++plane) {
      std::copy(first_, first_ + l_.block_size, first_ + plane * l_.block_size);
    }
  }
  static bool looks_outside(const WindowAxis& a) { return a.inner_windows().count() < a.out; }
  static Index first_real(const WindowAxis& a, Index o) {
    return a.taps(a.window(o), Visit::real).begin;
  }

  const Call<T, MaxReduction>& call_;
  const PlaneLayout& l_;
  PlaneTables t_;
  bool padded_ = false;  ///< some window looks outside
  T* stored_ = nullptr;
  T* first_ = nullptr;
  Index* offsets_ = nullptr;
  T* edge_ = nullptr;
};

/// x_bar: each cell adds y_bar of the windows it won, in the order of the windows.
template <class T>
class MaxPlanesScatter {
 public:
  explicit MaxPlanesScatter(const Call<T, MaxReduction>& call)
      : call_(call), l_(call.layout), t_(call.layout) {}

  void take(ScratchFrame& frame) {
    t_.take(frame);
    y_bar_ = frame.take<T>(l_.phase_size);
    ids_ = frame.take<T>(l_.phase_size);
    sources_ = frame.take<Source>(call_.plan.windows.taps());
    begin_ = frame.take<Index>(l_.row_classes() * l_.last().dest_classes() + 1);
    edge_ = frame.take<T>(ValueCopy::edge_size(l_));
    winner_edge_ = frame.take<WinnerTap>(WinnerCopy::edge_size(l_));
  }
  void start() {
    t_.start();
    Index next = 0;
    Index list = 0;
    for (Index row_class = 0; row_class < l_.row_classes(); ++row_class) {
      for (Index column_class = 0; column_class < l_.last().dest_classes(); ++column_class) {
        begin_[list++] = next;
        for (Index r = t_.rows.begin[row_class]; r < t_.rows.begin[row_class + 1]; ++r) {
          for (Index c = t_.columns.begin[column_class]; c < t_.columns.begin[column_class + 1];
               ++c) {
            const PlaneTables::Tap& row = t_.rows.taps[r];
            const PlaneTables::Tap& column = t_.columns.taps[c];
            sources_[next++] = {row.distance + column.distance,
                                static_cast<T>(row.tap * l_.last().a.kernel + column.tap)};
          }
        }
      }
    }
    begin_[list] = next;
    are_single_pairs_ = l_.last().dest_classes() == 2;
    for (Index i = 0; i < list; ++i) {
      are_single_pairs_ = are_single_pairs_ && begin_[i + 1] - begin_[i] == 1;
    }
  }
  void start_block(Index block) {
    t_.start_block(call_.plan, block);
    fill(y_bar_, l_.phase_size, T(0));
    fill(ids_, l_.phase_size, T(-1));
  }
  void run(Index plane, Index planes) const {
    const Index size = call_.plan.source_plane_size();
    const Index all = call_.plan.planes * size;
    const ValueCopy copy_values(l_, t_, call_.args.in + all, T(0), edge_);
    copy_values(call_.args.in + plane * size, size, planes, y_bar_);
    const WinnerCopy copy_winners(l_, t_, call_.args.winners_in + all, T(-1), winner_edge_);
    copy_winners(call_.args.winners_in + plane * size, size, planes, ids_);
    T* out = call_.args.out + plane * call_.plan.dest_plane_size() + t_.dest_begin;
    if (are_single_pairs_) {
      for_cell_rows(l_,
                    t_,
                    planes,
                    [&](Index row_class, Index at, Index to, Index left) FENESTRA_INLINE_LAMBDA {
                      store_row_pairs<Won<1>>(begin_ + 2 * row_class, at, out + to, left);
                    });
      return;
    }
    for_cell_rows(l_,
                  t_,
                  planes,
                  [&](Index row_class, Index at, Index to, Index left)
                      FENESTRA_INLINE_LAMBDA { store_row(row_class, at, out + to, left); });
  }

 private:
  struct Source {
    Index offset;
    T tap;
  };
  using ValueCopy = PlaneCopy<T, T, PlainLoad<T>, false>;
  using WinnerCopy = PlaneCopy<T, WinnerTap, WinnerLoad<T>, false>;

  /// The sum over the windows that cells of one class won, their number a constant.
  template <int kSources>
  class Won {
   public:
    HWY_INLINE Won(const MaxPlanesScatter& op, const Index* begin, Index at)
        : y_bar_(op.y_bar_ + at), ids_(op.ids_ + at) {
      FENESTRA_UNROLL
      for (int s = 0; s < kSources; ++s) {
        offsets_[s] = op.sources_[begin[0] + s].offset;
        taps_[s] = op.sources_[begin[0] + s].tap;
      }
    }
    HWY_INLINE hn::Vec<Wide<T>> operator()(Index i) const {
      const Wide<T> d;
      auto sum = hn::Zero(d);
      FENESTRA_UNROLL
      for (int s = 0; s < kSources; ++s) {
        const auto mine = hn::Eq(hn::LoadU(d, ids_ + offsets_[s] + i), hn::Set(d, taps_[s]));
        sum = hn::Add(sum, hn::IfThenElseZero(mine, hn::LoadU(d, y_bar_ + offsets_[s] + i)));
      }
      return sum;
    }

   private:
    const T* y_bar_;
    const T* ids_;
    Index offsets_[kSources];
    T taps_[kSources];
  };
  /// The same for any number.
  class WonAny {
   public:
    HWY_INLINE WonAny(const MaxPlanesScatter& op, const Index* begin, Index at)
        : y_bar_(op.y_bar_ + at),
          ids_(op.ids_ + at),
          sources_(op.sources_ + begin[0]),
          count_(begin[1] - begin[0]) {}
    HWY_INLINE hn::Vec<Wide<T>> operator()(Index i) const {
      const Wide<T> d;
      auto sum = hn::Zero(d);
      for (Index s = 0; s < count_; ++s) {
        const Index from = sources_[s].offset + i;
        const auto mine = hn::Eq(hn::LoadU(d, ids_ + from), hn::Set(d, sources_[s].tap));
        sum = hn::Add(sum, hn::IfThenElseZero(mine, hn::LoadU(d, y_bar_ + from)));
      }
      return sum;
    }

   private:
    const T* y_bar_;
    const T* ids_;
    const Source* sources_;
    Index count_;
  };

  template <class Even, class Odd = Even>
  HWY_INLINE void store_row_pairs(const Index* begin, Index at, T* to, Index left) const {
    store_pairs(l_.last().dest(), to, left, Even(*this, begin, at), Odd(*this, begin + 1, at));
  }
  void store_row(Index row_class, Index at, T* to, Index left) const {
    const Index n = l_.last().dest();
    const Index classes = l_.last().dest_classes();
    const Index* begin = begin_ + row_class * classes;
    if (classes == 1) {
      begin[1] - begin[0] == 9 ? store_ones(n, to, left, Won<9>(*this, begin, at))
                               : store_ones(n, to, left, WonAny(*this, begin, at));
      return;
    }
    if (classes > 2) {
      for (Index c = 0; c < classes; ++c) {
        store_class(n, c, classes, to, WonAny(*this, begin + c, at));
      }
      return;
    }
    // Unrolled are the counts of 3x3 windows.
    const Index even = begin[1] - begin[0];
    const Index odd = begin[2] - begin[1];
    if (even == 1 && odd == 2) {
      store_row_pairs<Won<1>, Won<2>>(begin, at, to, left);
    } else if (even == 2 && odd == 1) {
      store_row_pairs<Won<2>, Won<1>>(begin, at, to, left);
    } else if (even == 2 && odd == 4) {
      store_row_pairs<Won<2>, Won<4>>(begin, at, to, left);
    } else if (even == 4 && odd == 2) {
      store_row_pairs<Won<4>, Won<2>>(begin, at, to, left);
    } else {
      store_row_pairs<WonAny>(begin, at, to, left);
    }
  }

  const Call<T, MaxReduction>& call_;
  const PlaneLayout& l_;
  PlaneTables t_;
  T* y_bar_ = nullptr;
  T* ids_ = nullptr;
  Source* sources_ = nullptr;
  Index* begin_ = nullptr;         ///< of the sources of each class of a row and of a column
  bool are_single_pairs_ = false;  ///< stride 2 in rows, and one window over every cell
  T* edge_ = nullptr;
  WinnerTap* winner_edge_ = nullptr;
};

template <class T>
void planes(const Call<T, MaxReduction>& call, Index begin, Index end) {
  const auto run = [&](auto op) { run_plane_groups(call.plan, call.layout, op, begin, end); };
  if (call.plan.to_cells) {
    run(MaxPlanesScatter<T>(call));
  } else if (call.args.winners_out != nullptr) {
    run(MaxPlanesForward<T, true>(call));
  } else {
    run(MaxPlanesForward<T, false>(call));
  }
}

void planes_any(const CallOf<MaxReduction>& call, Index begin, Index end) {
  std::visit([&](const auto* c) HWY_ATTR { planes(*c, begin, end); }, call);
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::pooling {

HWY_EXPORT(planes_any);

void run_planes_on(const CallOf<MaxReduction>& call, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(planes_any)(call, begin, end);
}

}  // namespace fenestra::pooling
#endif  // HWY_ONCE

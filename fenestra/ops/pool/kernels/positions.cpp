// The algorithms "channels" and "generic": every destination from the list of its sources, many
// channels of a position at a time, or one number at a time, for what has no regular rows. Max,
// average and Lp pooling, and the adjoints of the first two. All follow one rule in every lane: the
// first cell that no later one beats.
#include <fenestra/kernels/simd.hpp>

#include <fenestra/ops/pool/kernels/call.hpp>
#include <fenestra/ops/pool/kernels/positions.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/pool/kernels/positions.cpp"
#include <hwy/foreach_target.h>
//
#include <fenestra/ops/pool/kernels/sums-inl.hpp>
#include <fenestra/ops/pool/kernels/winners-inl.hpp>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {

/// kVectors vectors of one window from its cells; false where a NaN may be among them.
template <Order kOrder, int kVectors, class D, class T>
HWY_INLINE bool max_position(
    D d, const T* x, const Entry* entries, Index count, T* y, WinnerTap* winners) {
  hn::Vec<D> best[kVectors];
  hn::Vec<D> id[kVectors];
  hn::Vec<D> sum[kVectors];  // one chain of additions for each
  FENESTRA_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    sum[v] = hn::Zero(d);
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
      sum[v] = hn::Add(sum[v], candidate);
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
  FENESTRA_UNROLL
  for (int v = 1; v < kVectors; ++v) {
    sum[0] = hn::Add(sum[0], sum[v]);
  }
  return hn::AllFalse(d, hn::IsNaN(sum[0]));
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
  const Call<T, MaxReduction>& call;

  template <int kVectors>
  HWY_INLINE void run(const Entry* entries,
                      Index count,
                      Index source,
                      Index dest,
                      [[maybe_unused]] Moved moved) const {
    const D d;
    const PoolArguments<T>& args = call.args;
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
  void operator()(const Entry* entries,
                  Index count,
                  Index plane,
                  Index end_plane,
                  Index at,
                  Moved moved) const {
    for_position(D(), call.plan, plane, end_plane, at, moved, *this, entries, count);
  }
};

/// Positions one by one; `finish` has position(row, column) and operator()(d, sum, 0).
template <class D, class T, class Map, class Finish>
struct SumPositions {
  const Plan& plan;
  const T* x;
  T* y;
  Map map;
  Finish& finish;

  template <int kVectors>
  HWY_INLINE void run(const Entry* entries,
                      Index count,
                      Index source,
                      Index dest,
                      [[maybe_unused]] Moved moved) const {
    const D d;
    hn::Vec<D> sum[kVectors];
    FENESTRA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::Zero(d);
    }
    for (Index e = 0; e < count; ++e) {
      const T* from = x + source + entries[e].offset;
      FENESTRA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        sum[v] = hn::Add(sum[v], map(d, hn::LoadU(d, from + v * lanes(d))));
      }
    }
    FENESTRA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const auto result = count == 0 ? hn::Zero(d) : finish(d, sum[v], 0);
      hn::StoreU(result, d, y + dest + v * lanes(d));
    }
  }
  void operator()(const Entry* entries,
                  Index count,
                  Index plane,
                  Index end_plane,
                  Index at,
                  Moved moved) const {
    const Index position = at / plan.inner;
    const Index columns = plan.dest(plan.outer_axes());
    finish.position(position / columns, position % columns);
    for_position(D(), plan, plane, end_plane, at, moved, *this, entries, count);
  }
};

/// Cells one by one: the sum of the shares of their windows.
template <class D, class T>
struct SharePositions {
  const Call<T, AverageReduction>& call;

  template <int kVectors>
  HWY_INLINE void run(const Entry* entries,
                      Index count,
                      Index source,
                      Index dest,
                      [[maybe_unused]] Moved moved) const {
    const D d;
    const Divisors& divisors = call.divisors;
    hn::Vec<D> sum[kVectors];
    FENESTRA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::Zero(d);
    }
    for (Index e = 0; e < count; ++e) {
      const T* from = call.args.in + source + entries[e].offset;
      const auto divisor = hn::Set(
          d,
          divisors.uniform != 0
              ? T(1)
              : static_cast<T>(divisors.of_row(call.plan, entries[e].row) *
                               divisors.of_column(call.plan, entries[e].column + moved.columns)));
      FENESTRA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const auto y_bar = hn::LoadU(d, from + v * lanes(d));
        sum[v] = hn::Add(sum[v], divisors.uniform != 0 ? y_bar : hn::Div(y_bar, divisor));
      }
    }
    const Division<T> divide(divisors.uniform != 0 ? divisors.uniform : 1);
    FENESTRA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(divide(sum[v]), d, call.args.out + dest + v * lanes(d));
    }
  }
  void operator()(const Entry* entries,
                  Index count,
                  Index plane,
                  Index end_plane,
                  Index at,
                  Moved moved) const {
    for_position(D(), call.plan, plane, end_plane, at, moved, *this, entries, count);
  }
};

template <class D, class T>
void positions(const Call<T, MaxReduction>& call, Index planes_per_block, Index begin, Index end) {
  run_positions(call.plan, planes_per_block, begin, end, MaxPositions<D, T>{call});
}
template <class D, class T, class R>
void positions(const Call<T, R>& call, Index planes_per_block, Index begin, Index end) {
  const auto sums = [&](const auto& map, auto finish) {
    using Map = std::remove_cvref_t<decltype(map)>;
    using Finish = decltype(finish);
    run_positions(
        call.plan,
        planes_per_block,
        begin,
        end,
        SumPositions<D, T, Map, Finish>{call.plan, call.args.in, call.args.out, map, finish});
  };
  if constexpr (std::is_same_v<R, AverageReduction>) {
    if (call.plan.to_cells) {
      return run_positions(call.plan, planes_per_block, begin, end, SharePositions<D, T>{call});
    }
  } else if constexpr (std::is_same_v<D, Single<T>>) {
    const T p = static_cast<T>(call.problem.geometry.p);
    if (p != T(1) && p != T(2)) {
      return sums(Power<T>{p}, Root<T>(p));
    }
  }
  as_sum(call, sums);
}

template <class T, class R>
void channels(const Call<T, R>& call, Index begin, Index end) {
  positions<Wide<T>>(call, 1, begin, end);
}
template <class T, class R>
void generic(const Call<T, R>& call, Index begin, Index end) {
  positions<Single<T>>(call, kGenericPlanes, begin, end);
}

void channels_any(const CallOf<MaxReduction, AverageReduction, LpReduction>& call,
                  Index begin,
                  Index end) {
  std::visit([&](const auto* c) HWY_ATTR { channels(*c, begin, end); }, call);
}
void generic_any(const CallOf<MaxReduction, AverageReduction, LpReduction>& call,
                 Index begin,
                 Index end) {
  std::visit([&](const auto* c) HWY_ATTR { generic(*c, begin, end); }, call);
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::pooling {

HWY_EXPORT(channels_any);
HWY_EXPORT(generic_any);

void run_channels_on(const CallOf<MaxReduction, AverageReduction, LpReduction>& call,
                     Index begin,
                     Index end) {
  HWY_DYNAMIC_DISPATCH(channels_any)(call, begin, end);
}
void run_generic_on(const CallOf<MaxReduction, AverageReduction, LpReduction>& call,
                    Index begin,
                    Index end) {
  HWY_DYNAMIC_DISPATCH(generic_any)(call, begin, end);
}

}  // namespace fenestra::pooling
#endif  // HWY_ONCE

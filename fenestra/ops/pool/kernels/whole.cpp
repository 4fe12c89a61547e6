// The algorithm "whole": planes that are one window each, all cells beside each other. Max, average
// and Lp pooling, and the adjoints of the first two.
#include <fenestra/kernels/simd.hpp>

#include <fenestra/ops/pool/kernels/call.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/pool/kernels/whole.cpp"
#include <hwy/foreach_target.h>
//
#include <fenestra/ops/pool/kernels/sums-inl.hpp>
#include <fenestra/ops/pool/kernels/winners-inl.hpp>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {

template <class T>
void whole(const Call<T, MaxReduction>& call, Index begin, Index end) {
  const Wide<T> d;
  const PoolArguments<T>& args = call.args;
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

template <class T, class Map, class Finish>
HWY_INLINE void sum_whole(
    Index n, const T* x, T* y, const Map& map, const Finish& finish, Index begin, Index end) {
  const Wide<T> d;
  const Single<T> one;
  for (Index plane = begin; plane < end; ++plane) {
    const T* from = x + plane * n;
    Index i = 0;
    auto tail = hn::Zero(one);
    // Two sums hide the latency of the addition on the short rows that global pools have.
    auto a = hn::Zero(d);
    auto b = hn::Zero(d);
    for (; i + 2 * lanes(d) <= n; i += 2 * lanes(d)) {
      a = hn::Add(a, map(d, hn::LoadU(d, from + i)));
      b = hn::Add(b, map(d, hn::LoadU(d, from + i + lanes(d))));
    }
    for (; i + lanes(d) <= n; i += lanes(d)) {
      a = hn::Add(a, map(d, hn::LoadU(d, from + i)));
    }
    for (; i < n; ++i) {
      tail = hn::Add(tail, map(one, hn::LoadU(one, from + i)));
    }
    const auto all = hn::Set(one, hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b))));
    hn::StoreU(finish(one, hn::Add(all, tail), 0), one, y + plane);
  }
}

/// All cells count, unless the divisor is given.
template <class T, class R>
void whole(const Call<T, R>& call, Index begin, Index end) {
  if constexpr (std::is_same_v<R, AverageReduction>) {
    if (call.plan.to_cells) {
      const Index n = call.plan.dest_plane_size();
      const T divisor = static_cast<T>(call.divisors.uniform);
      for (Index plane = begin; plane < end; ++plane) {
        fill(call.args.out + plane * n, n, call.args.in[plane] / divisor);
      }
      return;
    }
  }
  as_sum(call, [&](const auto& map, const auto& finish) HWY_ATTR {
    sum_whole(call.plan.source_plane_size(), call.args.in, call.args.out, map, finish, begin, end);
  });
}

void whole_any(const CallOf<MaxReduction, AverageReduction, LpReduction>& call,
               Index begin,
               Index end) {
  std::visit([&](const auto* c) HWY_ATTR { whole(*c, begin, end); }, call);
}

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::pooling {

HWY_EXPORT(whole_any);

void run_whole_on(const CallOf<MaxReduction, AverageReduction, LpReduction>& call,
                  Index begin,
                  Index end) {
  HWY_DYNAMIC_DISPATCH(whole_any)(call, begin, end);
}

}  // namespace fenestra::pooling
#endif  // HWY_ONCE

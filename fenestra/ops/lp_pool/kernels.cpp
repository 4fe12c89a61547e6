// Lp pooling on vectors: powers are taken once per cell where rows are shared by windows, summed as
// in average pooling, and the root is taken per window. p = 1 and p = 2 need no power at all; other
// exponents call the library's, lane by lane.
#include <fenestra/kernels/simd.hpp>

#include <fenestra/ops/lp_pool/kernels.hpp>
#include <fenestra/ops/lp_pool/spec.hpp>
#include <fenestra/ops/pool_links.hpp>

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/ops/lp_pool/kernels.cpp"
#include <hwy/foreach_target.h>
//
#include <fenestra/ops/pool_sums-inl.hpp>
#include <hwy/highway.h>

#ifndef FENESTRA_LP_POOL_CALL
#define FENESTRA_LP_POOL_CALL
namespace fenestra::pooling {

template <class T>
struct LpCall {
  Plan plan;
  Tiling tiling;
  T p;
  LpArguments<T> args;
};

enum class LpWalk { rows, channels, generic, whole };

}  // namespace fenestra::pooling
#endif  // FENESTRA_LP_POOL_CALL

HWY_BEFORE_NAMESPACE();
namespace fenestra::pooling {
namespace HWY_NAMESPACE {

/// What `finish` of a sum needs besides the sum: nothing here.
struct NoTables {
  void carve(Carver&, Index) const {}
  void start(Columns) const {}
  void row(Index) const {}
  void position(Index, Index) const {}
};

struct Magnitude {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v) const {
    return hn::Abs(v);
  }
};
struct Same : NoTables {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v, Index) const {
    return v;
  }
};

struct Square {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v) const {
    return hn::Mul(v, v);
  }
};
struct SquareRoot : NoTables {
  template <class D, class V>
  HWY_INLINE V operator()(D, V v, Index) const {
    return hn::Sqrt(v);
  }
};

template <class T>
struct Power {
  T exponent;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v) const {
    HWY_ALIGN T lane[hn::MaxLanes(D())];
    hn::Store(hn::Abs(v), d, lane);
    for (Index i = 0; i < lanes(d); ++i) {
      lane[i] = std::pow(lane[i], exponent);
    }
    return hn::Load(d, lane);
  }
};
template <class T>
struct Root : NoTables {
  explicit Root(T p) : power{T(1) / p} {}
  Power<T> power;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V v, Index) const {
    return power(d, v);  // a sum of zeros has the root 0
  }
};

template <class T, class Map, class Finish>
void lp_walk(const LpCall<T>& call, LpWalk walk, Map map, Finish finish, Index begin, Index end) {
  const Plan& plan = call.plan;
  const T* x = call.args.x;
  T* y = call.args.out;
  if (walk == LpWalk::rows) {
    SumForward<T, Map, Finish> op(plan, call.tiling, x, y, map, finish);
    run_tiles<T>(plan, call.tiling, op, begin, end);
  } else if (walk == LpWalk::channels) {
    run_positions(
        plan, 1, begin, end, SumPositions<Wide<T>, T, Map, Finish>{plan, x, y, map, finish});
  } else if (walk == LpWalk::generic) {
    run_positions(plan,
                  kGenericPlanes,
                  begin,
                  end,
                  SumPositions<Single<T>, T, Map, Finish>{plan, x, y, map, finish});
  } else {
    sum_whole(plan.source_plane_size(), x, y, map, finish, begin, end);
  }
}

/// Other powers cost so much that one walk, compiled once, serves them all.
template <class T>
void lp_run(const LpCall<T>& call, LpWalk walk, Index begin, Index end) {
  if (call.p == T(1)) {
    lp_walk(call, walk, Magnitude(), Same(), begin, end);
  } else if (call.p == T(2)) {
    lp_walk(call, walk, Square(), SquareRoot(), begin, end);
  } else {
    Root<T> finish(call.p);
    run_positions(call.plan,
                  kGenericPlanes,
                  begin,
                  end,
                  SumPositions<Single<T>, T, Power<T>, Root<T>>{
                      call.plan, call.args.x, call.args.out, Power<T>{call.p}, finish});
  }
}

void lp_run_f32(const LpCall<float>& c, LpWalk w, Index b, Index e) { lp_run(c, w, b, e); }
void lp_run_f64(const LpCall<double>& c, LpWalk w, Index b, Index e) { lp_run(c, w, b, e); }

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::pooling
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra {
namespace pooling {

HWY_EXPORT(lp_run_f32);
HWY_EXPORT(lp_run_f64);

namespace {

/// The best instruction set of this machine.
void run_on(const LpCall<float>& call, LpWalk walk, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(lp_run_f32)(call, walk, begin, end);
}
void run_on(const LpCall<double>& call, LpWalk walk, Index begin, Index end) {
  HWY_DYNAMIC_DISPATCH(lp_run_f64)(call, walk, begin, end);
}

template <class T>
LpCall<T> make_call(const LpProblem& problem, const LpArguments<T>& args) {
  return {Plan(problem.geometry.pool, false), Tiling{}, static_cast<T>(problem.geometry.p), args};
}

const char* refuse_power(const LpProblem& problem) {
  const double p = problem.geometry.p;
  return p == 1.0 || p == 2.0 ? nullptr : "needs p = 1 or p = 2: other powers are all the cost";
}

const char* refuse_whole(const LpProblem& problem) {
  if (const char* reason = refuse_power(problem)) {
    return reason;
  }
  return is_whole(problem.geometry.pool) ? nullptr
                                         : "needs channels first and one window per plane";
}

const char* refuse_channels(const LpProblem& problem) {
  if (const char* reason = refuse_power(problem)) {
    return reason;
  }
  const LpPoolGeometry& g = problem.geometry;
  return g.pool.layout == Layout::channels_last && g.pool.channels >= kFewChannels
             ? nullptr
             : "needs channels last and at least 32 channels";
}

const char* refuse_rows(const LpProblem& problem) {
  if (const char* reason = refuse_power(problem)) {
    return reason;
  }
  return Plan(problem.geometry.pool, false).refuse_rows();
}

const char* accept(const LpProblem&) { return nullptr; }

template <class T>
void run_whole(const LpProblem& problem, const LpArguments<T>& args) {
  const LpCall<T> call = make_call(problem, args);
  parallel_for(call.plan.planes,
               grain_of(call.plan.planes, call.plan.source_plane_size()),
               [&](Index b, Index e) { run_on(call, LpWalk::whole, b, e); });
}

template <class T>
void run_channels(const LpProblem& problem, const LpArguments<T>& args) {
  const LpCall<T> call = make_call(problem, args);
  for_positions(call.plan, 1, [&](Index b, Index e) { run_on(call, LpWalk::channels, b, e); });
}

template <class T>
void run_rows(const LpProblem& problem, const LpArguments<T>& args) {
  LpCall<T> call = make_call(problem, args);
  call.tiling = make_tiling(call.plan, [&](Index columns) {
    return (columns * call.plan.inner + kSlack) * static_cast<Index>(sizeof(T));
  });
  for_tiles(call.plan, call.tiling, [&](Index b, Index e) { run_on(call, LpWalk::rows, b, e); });
}

template <class T>
void run_generic(const LpProblem& problem, const LpArguments<T>& args) {
  const LpCall<T> call = make_call(problem, args);
  for_positions(
      call.plan, kGenericPlanes, [&](Index b, Index e) { run_on(call, LpWalk::generic, b, e); });
}

/// The specification on a copy of x.
template <class T>
void run_spec(const LpProblem& problem, const LpArguments<T>& args) {
  const Shape shape = problem.geometry.pool.x_shape();
  const Tensor<T> x(shape, std::span<const T>(args.x, static_cast<std::size_t>(*shape.elements())));
  const Tensor<T> y = spec::lp_pool(x, problem.geometry);
  std::copy(y.data(), y.data() + y.size(), args.out);
}

template <class T>
constexpr bool kF32 = std::is_same_v<T, float>;

}  // namespace
}  // namespace pooling

template <class T>
std::span<const LpCandidate<T>> lp_pool_candidates() {
  using namespace pooling;
  static constexpr LpCandidate<T> candidates[] = {
      {kF32<T> ? "lp_pool_f32_whole" : "lp_pool_f64_whole", refuse_whole, run_whole<T>},
      {kF32<T> ? "lp_pool_f32_channels" : "lp_pool_f64_channels", refuse_channels, run_channels<T>},
      {kF32<T> ? "lp_pool_f32_rows" : "lp_pool_f64_rows", refuse_rows, run_rows<T>},
      {kF32<T> ? "lp_pool_f32_generic" : "lp_pool_f64_generic", accept, run_generic<T>},
      {kF32<T> ? "lp_pool_f32_spec" : "lp_pool_f64_spec", accept, run_spec<T>},
  };
  return candidates;
}

template std::span<const LpCandidate<float>> lp_pool_candidates<float>();
template std::span<const LpCandidate<double>> lp_pool_candidates<double>();

}  // namespace fenestra
#endif  // HWY_ONCE

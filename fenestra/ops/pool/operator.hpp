// The part of a pool's descriptor that is the same for every pool: one activation in, one out,
// windows between.
#pragma once

#include <fenestra/ops/operator.hpp>
#include <fenestra/ops/pool/pool.hpp>
#include <fenestra/ops/random_options.hpp>

#include <algorithm>
#include <limits>
#include <numeric>

namespace fenestra {

/// Visits of a real cell by a window, summed over all windows of the axis, in a time that does not
/// grow with the input: over the taps or over the windows, whichever are fewer.
constexpr Index cell_visits(const WindowAxis& a) {
  if (a.rule == ExtentRule::adaptive) {
    // Bins follow each other without a gap, and share a cell wherever j*i/o is no integer.
    return a.in + a.out - std::gcd(a.in, a.out);
  }
  Index visits = 0;
  if (a.out <= a.kernel) {
    for (Index o = 0; o < a.out; ++o) {
      visits += real_taps(a.window(o), a.in);
    }
  } else {
    for (Index t = 0; t < a.kernel; ++t) {
      visits += a.windows_of_tap(t).count();
    }
  }
  return visits;
}

/// Real cells of the window that has most of them.
constexpr Index most_real_taps(const WindowAxis& a) {
  Index most = 0;
  for (Index o = 0; o < a.out && (most < a.kernel || a.rule == ExtentRule::adaptive); ++o) {
    most = std::max(most, real_taps(a.window(o), a.in));
  }
  return most;
}

/// Base of the descriptors of operators on windows; `G` has a member `pool`.
template <class G>
struct PoolOperator {
  using Geometry = G;

  static std::vector<TensorInfo> inputs(const Geometry& g) {
    return {{"x", g.pool.x_shape(), Role::activation}};
  }
  static TensorInfo output(const Geometry& g) { return {"y", g.pool.y_shape(), Role::activation}; }
  static Layout layout(const Geometry& g) { return g.pool.layout; }
  static bool batched(const Geometry& g) { return g.pool.batched; }
  static Geometry with_layout(Geometry g, Layout layout) {
    g.pool.layout = layout;
    return g;
  }
  static Geometry single_sample(Geometry g) {
    g.pool.batched = false;
    g.pool.batch = 1;
    return g;
  }
  static Geometry with_batch(Geometry g, Index batch) {
    g.pool.batch = batch;
    return g;
  }
  static Windows windows(const Geometry& g) { return g.pool.windows; }
  /// A tap is real where it is real on every axis, so the visits multiply over the axes. Bins that
  /// are long on one axis and many on another can pass 64 bits: the largest number then.
  static Costs costs(const Geometry& g) {
    Checked visits = Checked(g.pool.batch) * g.pool.channels;
    for (int axis = 0; axis < g.pool.rank(); ++axis) {
      visits = visits * cell_visits(g.pool.windows[axis]);
    }
    return {0, visits.ok() ? visits.value() : std::numeric_limits<Index>::max()};
  }
};

/// Base of the descriptors of this family's pools: a reduction over windows, fixed or adaptive.
template <class R>
struct ReducedOperator : PoolOperator<ReducedGeometry<R>> {
  using Geometry = ReducedGeometry<R>;
  using Options = typename R::Options;

  static Geometry parse(std::string_view text) { return parse_reduced<R>(Problem(text)); }
  static std::vector<KernelChoice> kernels(const Geometry& g) { return pool_kernels(g); }
  template <class V>
  static V call(const Geometry& g, const std::vector<V>& in, const std::vector<Tensor<Index>>&) {
    return apply_all(PoolPrimitive<R>{{}, PoolDirection::forward, g},
                     std::span<const V>(in),
                     std::span<const IndicesOf<V>>(),
                     false)
        .y;
  }
};

/// Random options of a pool, but for numbers of its own, and the x they belong to. `Options` has
/// the window fields.
template <class Options>
Shape random_pool(Random& random, Options& options, Reach reach = Reach::exact) {
  const int rank = random_rank(random);
  RandomWindows windows(random, rank, reach);
  options = random_choices<Options>(random);
  if (options.ceil_mode && random.chance(2)) {
    // Up to a stride less: windows hang over, a first one included.
    for (int axis = 0; axis < rank; ++axis) {
      const Index less = random.between(0, windows.stride[axis] - 1);
      windows.in[axis] = std::max<Index>(windows.in[axis] - less, 1);
    }
  }
  const RandomActivation x(random, windows.in, random_channels(random, 3, reach), reach);
  options.kernel = windows.kernel;
  options.stride = windows.stride;
  options.padding = windows.padding;
  options.dilation = windows.dilation;
  options.layout = x.layout;
  return x.joined();
}

/// Random bins of an adaptive pool, more bins than cells now and then, one bin (global) too.
inline Shape random_adaptive_pool(Random& random,
                                  AdaptivePoolOptions& options,
                                  Reach reach = Reach::exact) {
  const int rank = random_rank(random);
  Shape spatial;
  options.output_size = PerAxis();
  const bool global = random.chance(5);
  for (int axis = 0; axis < rank; ++axis) {
    const AxisRequest r = random_axis(random, rank, reach);
    spatial.push_back(r.in);
    options.output_size.push_back(global ? 1 : random.between(1, r.in + 1));
  }
  const RandomActivation x(random, spatial, random_channels(random, 3, reach), reach);
  options.layout = x.layout;
  return x.joined();
}

}  // namespace fenestra

// What a pool makes of the cells of each window: their maximum, mean, p-norm or smooth maximum. A
// reduction is a handful of numbers; with windows (geometry.hpp) it is the geometry of a pool.
//
// Here is all that the pools' geometries differ in. How windows and a reduction are resolved,
// printed, read and hashed is written once, at the end.
#pragma once

#include <fenestra/ops/pool/geometry.hpp>

#include <concepts>
#include <string>
#include <string_view>

namespace fenestra {

// --- Reductions ------------------------------

/// The maps of a pool. At x, the derivative of a pool is a weighted sum over each window: max has
/// the weight 1 at the winner, an average 1/divisor everywhere, smooth max a softmax of x.
enum class PoolDirection {
  forward,  ///< x -> y
  mix,      ///< out[o] = sum over window o of weight * v, for v of x's shape: the JVP
  spread,   ///< out[cell] = sum over the windows o of the cell of weight * u[o]: the VJP
  slope,    ///< smooth max: dy/dbeta
  curve,    ///< smooth max: d^2y/dbeta^2
};
inline constexpr int kPoolDirections = 5;

/// The taps that take part: real cells, and declared padding where it counts as zeros.
constexpr Visit visit_of(PadCells pad_cells) {
  return pad_cells == PadCells::zero ? Visit::declared : Visit::real;
}

// A reduction has the options it comes from, the name of its pool and of the pool's maps (none:
// there is no such map), and says how it is read from options and written to them, and what is
// wrong with its numbers.

struct MaxReduction {
  using Options = MaxPoolOptions;
  static constexpr std::string_view op = "max_pool";
  static constexpr std::string_view names[kPoolDirections] = {
      "max_pool", "max_pool_gather", "max_pool_scatter"};

  PadCells pad_cells = PadCells::ignore;

  static constexpr MaxReduction of(const Options& options) { return {options.pad_cells}; }
  constexpr Fault fault() const { return {}; }
  Options options() const { return {.kernel = {}, .pad_cells = pad_cells}; }
  constexpr Visit visit() const { return visit_of(pad_cells); }

  friend constexpr bool operator==(const MaxReduction&, const MaxReduction&) = default;
};

/// Linear, so that it is its own mix.
struct AverageReduction {
  using Options = AvgPoolOptions;
  static constexpr std::string_view op = "avg_pool";
  static constexpr std::string_view names[kPoolDirections] = {
      "avg_pool", "", "avg_pool_input_grad"};

  bool count_include_pad = true;
  OptionalIndex divisor_override = {};

  static constexpr AverageReduction of(const Options& options) {
    return {options.count_include_pad, options.divisor_override};
  }
  constexpr Fault fault() const {
    return divisor_override == OptionalIndex(0)
               ? Fault{.code = ErrorCode::invalid_divisor, .argument = Argument::divisor_override}
               : Fault{};
  }
  Options options() const {
    return {
        .kernel = {}, .count_include_pad = count_include_pad, .divisor_override = divisor_override};
  }
  /// The taps that are counted.
  constexpr Visit visit() const { return count_include_pad ? Visit::declared : Visit::real; }
  /// What the sum over window `o` is divided by: the override; else the cells of the window inside
  /// input + declared padding, or the real ones only. 0 for a window without a real cell that
  /// counts real cells.
  constexpr Index divisor(const Windows& windows, Index o) const {
    if (divisor_override.given) {
      return divisor_override.value;
    }
    Index count = 1;
    for (int axis = windows.rank() - 1; axis >= 0; --axis) {
      const WindowAxis& a = windows[axis];
      count *= a.taps(a.window(o % a.out), visit()).count();
      o /= a.out;
    }
    return count;
  }

  friend constexpr bool operator==(const AverageReduction&, const AverageReduction&) = default;
};

/// Its derivatives are sums over windows with factors around them: see rules.hpp.
struct LpReduction {
  using Options = LpPoolOptions;
  static constexpr std::string_view op = "lp_pool";
  static constexpr std::string_view names[kPoolDirections] = {"lp_pool"};

  double p = 2.0;

  static constexpr LpReduction of(const Options& options) { return {options.p}; }
  constexpr Fault fault() const {
    const bool finite = p - p == 0.0;
    return finite && p > 0.0
               ? Fault{}
               : Fault{.code = ErrorCode::invalid_exponent, .argument = Argument::exponent};
  }
  Options options() const { return {.kernel = {}, .p = p}; }

  friend constexpr bool operator==(const LpReduction&, const LpReduction&) = default;
};

/// The fault of a sharpness that is zero or not finite.
constexpr Fault check_beta(double beta) {
  const bool finite = beta - beta == 0.0;
  return finite && beta != 0.0 ? Fault{}
                               : Fault{.code = ErrorCode::invalid_beta, .argument = Argument::beta};
}

/// `beta` is the sharpness a problem string names; operators receive it as a tensor of rank 0,
/// since it is differentiable.
struct SmoothMaxReduction {
  using Options = SmoothMaxPoolOptions;
  static constexpr std::string_view op = "smooth_max_pool";
  static constexpr std::string_view names[kPoolDirections] = {"smooth_max_pool",
                                                              "smooth_max_pool_mix",
                                                              "smooth_max_pool_spread",
                                                              "smooth_max_pool_slope",
                                                              "smooth_max_pool_curve"};

  PadCells pad_cells = PadCells::ignore;
  bool normalised = false;
  double beta = 1.0;

  static constexpr SmoothMaxReduction of(const Options& options) {
    return {options.pad_cells, options.normalised, options.beta};
  }
  constexpr Fault fault() const { return check_beta(beta); }
  Options options() const {
    return {.kernel = {}, .beta = beta, .normalised = normalised, .pad_cells = pad_cells};
  }
  constexpr Visit visit() const { return visit_of(pad_cells); }

  friend constexpr bool operator==(const SmoothMaxReduction&, const SmoothMaxReduction&) = default;
};

// --- Geometry ------------------------------

/// Windows, fixed or adaptive, and what is made of the cells of each.
template <class R>
struct ReducedGeometry : R {
  PoolGeometry pool;

  /// Of an average.
  constexpr Index divisor(Index o) const
    requires std::same_as<R, AverageReduction>
  {
    return R::divisor(pool.windows, o);
  }

  friend constexpr bool operator==(const ReducedGeometry&, const ReducedGeometry&) = default;
};
using MaxPoolGeometry = ReducedGeometry<MaxReduction>;
using AvgPoolGeometry = ReducedGeometry<AverageReduction>;
using LpPoolGeometry = ReducedGeometry<LpReduction>;
using SmoothMaxPoolGeometry = ReducedGeometry<SmoothMaxReduction>;

template <class R>
constexpr Resolved<ReducedGeometry<R>> resolve_reduced(const Shape& x,
                                                       const typename R::Options& options,
                                                       int named_rank) {
  const auto [pool, fault] = resolve_pool(x, options, named_rank);
  const R reduction = R::of(options);
  return {{reduction, pool}, fault ? fault : reduction.fault()};
}

template <class R>
constexpr ReducedGeometry<R> reduced_geometry(const Shape& x,
                                              const typename R::Options& options,
                                              int named_rank) {
  const auto [geometry, fault] = resolve_reduced<R>(x, options, named_rank);
  throw_pool_fault(R::op, x, options, geometry.pool, fault, named_rank);
  return geometry;
}

template <class R>
std::string to_string(const ReducedGeometry<R>& g) {
  return pool_text(g.pool) + fields_text(g.options());
}

template <class R>
ReducedGeometry<R> parse_reduced(Problem problem) {
  const Shape x = problem.shape("x");
  const int rank = problem_rank(problem, x);
  const auto options = problem.options<typename R::Options>();
  problem.finish(R::op);
  return reduced_geometry<R>(x, options, rank);
}

// The same by the names of the pools; the first give a fault, the second throw it.

constexpr Resolved<MaxPoolGeometry> resolve_max_pool(const Shape& x,
                                                     const MaxPoolOptions& options,
                                                     int named_rank = 0) {
  return resolve_reduced<MaxReduction>(x, options, named_rank);
}
constexpr Resolved<AvgPoolGeometry> resolve_avg_pool(const Shape& x,
                                                     const AvgPoolOptions& options,
                                                     int named_rank = 0) {
  return resolve_reduced<AverageReduction>(x, options, named_rank);
}
constexpr Resolved<LpPoolGeometry> resolve_lp_pool(const Shape& x,
                                                   const LpPoolOptions& options,
                                                   int named_rank = 0) {
  return resolve_reduced<LpReduction>(x, options, named_rank);
}
constexpr Resolved<SmoothMaxPoolGeometry> resolve_smooth_max_pool(
    const Shape& x, const SmoothMaxPoolOptions& options, int named_rank = 0) {
  return resolve_reduced<SmoothMaxReduction>(x, options, named_rank);
}

constexpr MaxPoolGeometry max_pool_geometry(const Shape& x,
                                            const MaxPoolOptions& options,
                                            int named_rank = 0) {
  return reduced_geometry<MaxReduction>(x, options, named_rank);
}
constexpr AvgPoolGeometry avg_pool_geometry(const Shape& x,
                                            const AvgPoolOptions& options,
                                            int named_rank = 0) {
  return reduced_geometry<AverageReduction>(x, options, named_rank);
}
constexpr LpPoolGeometry lp_pool_geometry(const Shape& x,
                                          const LpPoolOptions& options,
                                          int named_rank = 0) {
  return reduced_geometry<LpReduction>(x, options, named_rank);
}
constexpr SmoothMaxPoolGeometry smooth_max_pool_geometry(const Shape& x,
                                                         const SmoothMaxPoolOptions& options,
                                                         int named_rank = 0) {
  return reduced_geometry<SmoothMaxReduction>(x, options, named_rank);
}
constexpr MaxPoolGeometry adaptive_max_pool_geometry(const Shape& x,
                                                     const AdaptivePoolOptions& options,
                                                     int named_rank = 0) {
  return {{}, adaptive_pool_geometry("adaptive_max_pool", x, options, named_rank)};
}
constexpr AvgPoolGeometry adaptive_avg_pool_geometry(const Shape& x,
                                                     const AdaptivePoolOptions& options,
                                                     int named_rank = 0) {
  return {{}, adaptive_pool_geometry("adaptive_avg_pool", x, options, named_rank)};
}

}  // namespace fenestra

// Options and geometry of smooth max pooling. The sharpness `beta` is data, not geometry: it is
// differentiable.
#pragma once

#include <fenestra/ops/pool_geometry.hpp>

#include <cmath>
#include <string>

namespace fenestra {

struct SmoothMaxPoolOptions {
  PerAxis kernel;
  PerAxis stride = {};  ///< default: the kernel
  Padding padding = 0;
  PerAxis dilation = 1;
  bool ceil_mode = false;
  double beta = 1.0;        ///< finite, not zero; negative gives a smooth minimum
  bool normalised = false;  ///< subtract log(n)/beta, n the cells counted: a smooth mean of maxima
  PadCells pad_cells = PadCells::ignore;
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const SmoothMaxPoolOptions&,
                                   const SmoothMaxPoolOptions&) = default;
};

/// `beta` is the sharpness a problem string names; operators receive it as a tensor of rank 0.
struct SmoothMaxPoolGeometry {
  PoolGeometry pool;
  PadCells pad_cells = PadCells::ignore;
  bool normalised = false;
  double beta = 1.0;

  /// The taps that take part: real cells, and declared padding where it counts as zeros.
  constexpr Visit visit() const {
    return pad_cells == PadCells::zero ? Visit::declared : Visit::real;
  }

  friend constexpr bool operator==(const SmoothMaxPoolGeometry&,
                                   const SmoothMaxPoolGeometry&) = default;
};

/// With p = softmax(beta*x) in each window:
enum class SmoothDirection {
  forward,  ///< y = (1/beta) log sum exp(beta*x)
  mix,      ///< out[o] = sum over the window of p * v, for v of x's shape
  spread,   ///< out[cell] = sum over the windows that see the cell of p * u, for u of y's shape
  slope,    ///< dy/dbeta
  curve,    ///< d^2y/dbeta^2
};

/// True for the directions that are linear in a third argument.
constexpr bool is_linear(SmoothDirection direction) {
  return direction == SmoothDirection::mix || direction == SmoothDirection::spread;
}

/// The fault of a sharpness that is zero or not finite.
constexpr Fault check_beta(double beta) {
  const bool finite = beta - beta == 0.0;
  return finite && beta != 0.0 ? Fault{}
                               : Fault{.code = ErrorCode::invalid_beta, .argument = Argument::beta};
}

constexpr Resolved<SmoothMaxPoolGeometry> resolve_smooth_max_pool(
    const Shape& x, const SmoothMaxPoolOptions& options, int named_rank = 0) {
  const auto [pool, fault] = resolve_pool(x, options, named_rank);
  return {{pool, options.pad_cells, options.normalised, options.beta},
          fault ? fault : check_beta(options.beta)};
}

constexpr SmoothMaxPoolGeometry smooth_max_pool_geometry(const Shape& x,
                                                         const SmoothMaxPoolOptions& options,
                                                         int named_rank = 0) {
  const auto [geometry, fault] = resolve_smooth_max_pool(x, options, named_rank);
  throw_pool_fault("smooth_max_pool", x, options, geometry.pool, fault, named_rank);
  return geometry;
}

inline std::string to_string(const SmoothMaxPoolGeometry& g) {
  return pool_text(g.pool) + " beta=" + problem_text(g.beta) +
         (g.normalised ? " normalised=true" : "") +
         (g.pad_cells == PadCells::zero ? " pad_cells=zero" : "");
}

inline SmoothMaxPoolGeometry parse_smooth_max_pool(Problem problem) {
  const Shape x = problem.shape("x");
  const int rank = problem_rank(problem, x);
  SmoothMaxPoolOptions options;
  read_pool_options(problem, options);
  options.beta = problem.real("beta", 1.0);
  options.normalised = problem.flag("normalised", false);
  options.pad_cells = problem.pad_cells();
  problem.finish("smooth_max_pool");
  return smooth_max_pool_geometry(x, options, rank);
}

inline std::size_t hash_value(const SmoothMaxPoolGeometry& g) {
  std::size_t seed = hash_value(g.pool);
  for (const Index value : {static_cast<Index>(g.pad_cells),
                            static_cast<Index>(g.normalised),
                            static_cast<Index>(std::hash<double>{}(g.beta))}) {
    seed = detail::hash_combine(seed, value);
  }
  return seed;
}

}  // namespace fenestra

// Options and geometry of Lp pooling: the p-norm of the real cells of each window.
#pragma once

#include <fenestra/ops/pool_geometry.hpp>

#include <string>

namespace fenestra {

struct LpPoolOptions {
  PerAxis kernel;
  PerAxis stride = {};  ///< default: the kernel
  Padding padding = 0;
  PerAxis dilation = 1;
  bool ceil_mode = false;
  double p = 2.0;  ///< finite, above 0
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const LpPoolOptions&, const LpPoolOptions&) = default;
};

struct LpPoolGeometry {
  PoolGeometry pool;
  double p = 2.0;

  friend constexpr bool operator==(const LpPoolGeometry&, const LpPoolGeometry&) = default;
};

constexpr Resolved<LpPoolGeometry> resolve_lp_pool(const Shape& x,
                                                   const LpPoolOptions& options,
                                                   int named_rank = 0) {
  const auto [pool, fault] = resolve_pool(x, options, named_rank);
  const bool finite = options.p - options.p == 0.0;
  const Fault exponent = finite && options.p > 0.0 ? Fault{}
                                                   : Fault{.code = ErrorCode::invalid_exponent,
                                                           .argument = Argument::exponent};
  return {{pool, options.p}, fault ? fault : exponent};
}

constexpr LpPoolGeometry lp_pool_geometry(const Shape& x,
                                          const LpPoolOptions& options,
                                          int named_rank = 0) {
  const auto [geometry, fault] = resolve_lp_pool(x, options, named_rank);
  throw_pool_fault("lp_pool", x, options, geometry.pool, fault, named_rank);
  return geometry;
}

inline std::string to_string(const LpPoolGeometry& g) {
  return pool_text(g.pool) + " p=" + problem_text(g.p);
}

inline LpPoolGeometry parse_lp_pool(Problem problem) {
  const Shape x = problem.shape("x");
  const int rank = problem_rank(problem, x);
  LpPoolOptions options;
  read_pool_options(problem, options);
  options.p = problem.real("p", 2.0);
  problem.finish("lp_pool");
  return lp_pool_geometry(x, options, rank);
}

inline std::size_t hash_value(const LpPoolGeometry& g) {
  return detail::hash_combine(hash_value(g.pool), static_cast<Index>(std::hash<double>{}(g.p)));
}

}  // namespace fenestra

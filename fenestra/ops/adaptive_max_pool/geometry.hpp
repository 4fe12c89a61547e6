// Options and geometry of adaptive max pooling; global pooling is one bin per axis.
#pragma once

#include <fenestra/ops/max_pool/geometry.hpp>

#include <string>

namespace fenestra {

/// Shared by adaptive max and average pooling.
struct AdaptivePoolOptions {
  PerAxis output_size;
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const AdaptivePoolOptions&,
                                   const AdaptivePoolOptions&) = default;
};

/// One bin per axis: the options of a global pool.
constexpr AdaptivePoolOptions global_pool(Layout layout = Layout::channels_first) {
  return {.output_size = 1, .layout = layout};
}

/// Reads an adaptive pool's fields and resolves them; `op` names it in messages.
constexpr PoolGeometry adaptive_pool_geometry(std::string_view op,
                                              const Shape& x,
                                              const AdaptivePoolOptions& options,
                                              int named_rank) {
  const auto [geometry, fault] = resolve_adaptive_pool(x, options, named_rank);
  if (fault) {
    throw make_error(fault,
                     pool_context(op,
                                  x,
                                  options.layout,
                                  "output_size " + options_text(options.output_size),
                                  geometry,
                                  pool_rank(x, options.output_size, named_rank),
                                  fault));
  }
  return geometry;
}

inline PoolGeometry parse_adaptive_pool(std::string_view op, Problem& problem) {
  const Shape x = problem.shape("x");
  const int rank = problem_rank(problem, x);
  AdaptivePoolOptions options;
  options.output_size = problem.has("output_size") ? problem.per_axis("output_size", 1)
                                                   : problem.axis_list("output_size");
  options.layout = problem.layout();
  problem.finish(op);
  return adaptive_pool_geometry(op, x, options, rank);
}

constexpr MaxPoolGeometry adaptive_max_pool_geometry(const Shape& x,
                                                     const AdaptivePoolOptions& options,
                                                     int named_rank = 0) {
  return {.pool = adaptive_pool_geometry("adaptive_max_pool", x, options, named_rank)};
}

inline MaxPoolGeometry parse_adaptive_max_pool(Problem problem) {
  return {.pool = parse_adaptive_pool("adaptive_max_pool", problem)};
}

}  // namespace fenestra

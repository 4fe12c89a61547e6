// Options and geometry of max pooling with fixed windows.
#pragma once

#include <fenestra/ops/pool_geometry.hpp>

#include <string>

namespace fenestra {

struct MaxPoolOptions {
  PerAxis kernel;
  PerAxis stride = {};  ///< default: the kernel
  Padding padding = 0;
  PerAxis dilation = 1;
  bool ceil_mode = false;
  PadCells pad_cells = PadCells::ignore;
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const MaxPoolOptions&, const MaxPoolOptions&) = default;
};

/// Also the geometry of adaptive max pooling, whose windows are bins.
struct MaxPoolGeometry {
  PoolGeometry pool;
  PadCells pad_cells = PadCells::ignore;

  /// The taps that take part: real cells, and declared padding where it counts as zeros.
  constexpr Visit visit() const {
    return pad_cells == PadCells::zero ? Visit::declared : Visit::real;
  }

  friend constexpr bool operator==(const MaxPoolGeometry&, const MaxPoolGeometry&) = default;
};

constexpr Resolved<MaxPoolGeometry> resolve_max_pool(const Shape& x,
                                                     const MaxPoolOptions& options,
                                                     int named_rank = 0) {
  const auto [pool, fault] = resolve_pool(x, options, named_rank);
  return {{pool, options.pad_cells}, fault};
}

constexpr MaxPoolGeometry max_pool_geometry(const Shape& x,
                                            const MaxPoolOptions& options,
                                            int named_rank = 0) {
  const auto [geometry, fault] = resolve_max_pool(x, options, named_rank);
  throw_pool_fault("max_pool", x, options, geometry.pool, fault, named_rank);
  return geometry;
}

inline std::string to_string(const MaxPoolGeometry& g) {
  return pool_text(g.pool) + (g.pad_cells == PadCells::zero ? " pad_cells=zero" : "");
}

inline MaxPoolGeometry parse_max_pool(Problem problem) {
  const Shape x = problem.shape("x");
  const int rank = problem_rank(problem, x);
  MaxPoolOptions options;
  read_pool_options(problem, options);
  options.pad_cells = problem.pad_cells();
  problem.finish("max_pool");
  return max_pool_geometry(x, options, rank);
}

constexpr std::size_t hash_value(const MaxPoolGeometry& g) {
  return detail::hash_combine(hash_value(g.pool), static_cast<Index>(g.pad_cells));
}

}  // namespace fenestra

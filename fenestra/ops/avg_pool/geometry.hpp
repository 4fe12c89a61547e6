// Options and geometry of average pooling with fixed windows, and the divisor of each window.
#pragma once

#include <fenestra/ops/pool_geometry.hpp>

#include <string>

namespace fenestra {

struct AvgPoolOptions {
  PerAxis kernel;
  PerAxis stride = {};  ///< default: the kernel
  Padding padding = 0;
  PerAxis dilation = 1;
  bool ceil_mode = false;
  bool count_include_pad = true;
  OptionalIndex divisor_override = {};  ///< not zero; wins over `count_include_pad`
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const AvgPoolOptions&, const AvgPoolOptions&) = default;
};

/// Also the geometry of adaptive average pooling, whose windows are bins.
struct AvgPoolGeometry {
  PoolGeometry pool;
  bool count_include_pad = true;
  OptionalIndex divisor_override = {};

  /// What the sum over window `o` is divided by: the override; else the cells of the window inside
  /// input + declared padding, or the real ones only. 0 for a window without a real cell that
  /// counts real cells.
  constexpr Index divisor(Index o) const {
    if (divisor_override.given) {
      return divisor_override.value;
    }
    const Visit visit = count_include_pad ? Visit::declared : Visit::real;
    Index count = 1;
    for (int axis = pool.rank() - 1; axis >= 0; --axis) {
      const WindowAxis& a = pool.windows[axis];
      count *= a.taps(a.window(o % a.out), visit).count();
      o /= a.out;
    }
    return count;
  }

  friend constexpr bool operator==(const AvgPoolGeometry&, const AvgPoolGeometry&) = default;
};

constexpr Resolved<AvgPoolGeometry> resolve_avg_pool(const Shape& x,
                                                     const AvgPoolOptions& options,
                                                     int named_rank = 0) {
  const auto [pool, fault] = resolve_pool(x, options, named_rank);
  Resolved<AvgPoolGeometry> result{{pool, options.count_include_pad, options.divisor_override},
                                   fault};
  if (!fault && options.divisor_override == OptionalIndex(0)) {
    result.fault = {.code = ErrorCode::invalid_divisor, .argument = Argument::divisor_override};
  }
  return result;
}

constexpr AvgPoolGeometry avg_pool_geometry(const Shape& x,
                                            const AvgPoolOptions& options,
                                            int named_rank = 0) {
  const auto [geometry, fault] = resolve_avg_pool(x, options, named_rank);
  throw_pool_fault("avg_pool", x, options, geometry.pool, fault, named_rank);
  return geometry;
}

inline std::string to_string(const AvgPoolGeometry& g) {
  std::string text = pool_text(g.pool);
  if (!g.count_include_pad) {
    text += " count_include_pad=false";
  }
  if (g.divisor_override.given) {
    text += " divisor_override=" + std::to_string(g.divisor_override.value);
  }
  return text;
}

inline AvgPoolGeometry parse_avg_pool(Problem problem) {
  const Shape x = problem.shape("x");
  const int rank = problem_rank(problem, x);
  AvgPoolOptions options;
  read_pool_options(problem, options);
  options.count_include_pad = problem.flag("count_include_pad", true);
  options.divisor_override = problem.optional_integer("divisor_override");
  problem.finish("avg_pool");
  return avg_pool_geometry(x, options, rank);
}

constexpr std::size_t hash_value(const AvgPoolGeometry& g) {
  std::size_t seed = hash_value(g.pool);
  for (const Index value : {static_cast<Index>(g.count_include_pad),
                            static_cast<Index>(g.divisor_override.given),
                            g.divisor_override.value}) {
    seed = detail::hash_combine(seed, value);
  }
  return seed;
}

}  // namespace fenestra

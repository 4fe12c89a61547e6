// Geometry of adaptive average pooling: average pooling over bins. Options as in adaptive max
// pooling.
#pragma once

#include <fenestra/ops/adaptive_max_pool/geometry.hpp>
#include <fenestra/ops/avg_pool/geometry.hpp>

namespace fenestra {

constexpr AvgPoolGeometry adaptive_avg_pool_geometry(const Shape& x,
                                                     const AdaptivePoolOptions& options,
                                                     int named_rank = 0) {
  return {.pool = adaptive_pool_geometry("adaptive_avg_pool", x, options, named_rank)};
}

inline AvgPoolGeometry parse_adaptive_avg_pool(Problem problem) {
  return {.pool = parse_adaptive_pool("adaptive_avg_pool", problem)};
}

}  // namespace fenestra

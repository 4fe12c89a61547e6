// The descriptor of adaptive and global average pooling: see ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/adaptive_avg_pool/spec.hpp>
#include <fenestra/ops/adaptive_max_pool/op.hpp>
#include <fenestra/ops/avg_pool/op.hpp>

namespace fenestra {

struct AdaptiveAvgPool : MeanOverWindows {
  static constexpr std::string_view name = "adaptive_avg_pool";
  static constexpr std::string_view summary =
      "average pooling over bins that divide the input; global with output_size=1";
  static constexpr std::string_view example = "x=1x512x7x7 output_size=1";

  static Geometry parse(std::string_view text) { return parse_adaptive_avg_pool(Problem(text)); }
  static Geometry random(Random& random) {
    AdaptivePoolOptions options;
    const Shape x = random_adaptive_pool(random, options);
    return adaptive_avg_pool_geometry(x, options);
  }
};

static_assert(Operator<AdaptiveAvgPool>);

}  // namespace fenestra

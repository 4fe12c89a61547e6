// The descriptor of adaptive and global average pooling: see ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/pool/avg/op.hpp>

namespace fenestra {

struct AdaptiveAvgPool : MeanOverWindows {
  using Options = AdaptivePoolOptions;
  static constexpr std::string_view name = "adaptive_avg_pool";
  static constexpr std::string_view summary =
      "average pooling over bins that divide the input; global with output_size=1";
  static constexpr std::string_view example = "x=1x512x7x7 output_size=1";

  static Geometry parse(std::string_view text) {
    return {{}, parse_adaptive_pool(name, Problem(text))};
  }
  static std::vector<KnownAnswer> answers() {
    return {{.problem = "x=1x1x10 output_size=3",
             .inputs = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
             .y = {1.5, 4.5, 7.5},
             .y_bar = {4, 8, 16},
             .bars = {{1, 1, 1, 3, 2, 2, 6, 4, 4, 4}}},
            {.problem = "x=1x1x2 output_size=3", .inputs = {{4, 8}}, .y = {4, 6, 8}}};
  }
  static Geometry random(Random& random, Reach reach = Reach::exact) {
    AdaptivePoolOptions options;
    const Shape x = random_adaptive_pool(random, options, reach);
    return adaptive_avg_pool_geometry(x, options);
  }
};

static_assert(Operator<AdaptiveAvgPool>);

}  // namespace fenestra

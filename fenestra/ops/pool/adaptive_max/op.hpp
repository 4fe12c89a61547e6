// The descriptor of adaptive and global max pooling: see ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/pool/max/op.hpp>

namespace fenestra {

struct AdaptiveMaxPool : MaxOverWindows {
  using Options = AdaptivePoolOptions;
  static constexpr std::string_view name = "adaptive_max_pool";
  static constexpr std::string_view summary =
      "max pooling over bins that divide the input; global with output_size=1";
  static constexpr std::string_view example = "x=1x512x10x10 output_size=3";

  static Geometry parse(std::string_view text) {
    return {{}, parse_adaptive_pool(name, Problem(text))};
  }
  static std::vector<KnownAnswer> answers() {
    return {{.problem = "x=1x1x10 output_size=3",
             .inputs = {{0, 1, 2, 9, 4, 5, 8, 7, 3, 6}},
             .y = {9, 9, 8},
             .y_bar = {1, 10, 100},
             .bars = {{0, 0, 0, 11, 0, 0, 100, 0, 0, 0}}},
            {.problem = "x=1x1x2x2 output_size=1", .inputs = {{1, 2, 5, 4}}, .y = {5}}};
  }
  static Geometry random(Random& random, Reach reach = Reach::exact) {
    AdaptivePoolOptions options;
    const Shape x = random_adaptive_pool(random, options, reach);
    return adaptive_max_pool_geometry(x, options);
  }
};

static_assert(Operator<AdaptiveMaxPool>);

}  // namespace fenestra

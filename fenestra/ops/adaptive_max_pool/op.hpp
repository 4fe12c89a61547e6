// The descriptor of adaptive and global max pooling: see ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/adaptive_max_pool/spec.hpp>
#include <fenestra/ops/max_pool/op.hpp>

namespace fenestra {

/// Random bins for either adaptive pool, more bins than cells now and then, one bin (global) too.
inline Shape random_adaptive_pool(Random& random,
                                  AdaptivePoolOptions& options,
                                  Reach reach = Reach::exact) {
  const int rank = random_rank(random);
  Shape spatial;
  options.output_size = PerAxis();
  const bool global = random.chance(5);
  for (int axis = 0; axis < rank; ++axis) {
    const AxisRequest r = random_axis(random, rank, reach);
    spatial.push_back(r.in);
    options.output_size.push_back(global ? 1 : random.between(1, r.in + 1));
  }
  const RandomActivation x(random, spatial, random_channels(random, 3, reach), reach);
  options.layout = x.layout;
  return x.joined();
}

struct AdaptiveMaxPool : MaxOverWindows {
  static constexpr std::string_view name = "adaptive_max_pool";
  static constexpr std::string_view summary =
      "max pooling over bins that divide the input; global with output_size=1";
  static constexpr std::string_view example = "x=1x512x10x10 output_size=3";

  static Geometry parse(std::string_view text) { return parse_adaptive_max_pool(Problem(text)); }
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

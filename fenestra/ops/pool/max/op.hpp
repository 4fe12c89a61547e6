// The descriptor of max pooling: see ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/pool/operator.hpp>

namespace fenestra {

/// Values and derivatives of a max over windows, fixed or adaptive.
struct MaxOverWindows : ReducedOperator<MaxReduction> {
  static Algebra algebra(const Geometry&) { return Algebra::piecewise_linear; }
  /// A maximum copies: no rounding at all.
  static Index terms(const Geometry&) { return 0; }

  template <class T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    return spec::max_pool(in.values[0], g);
  }
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    return {spec::max_pool_vjp(spec::max_pool_indices(in.values[0], g), y_bar, g)};
  }
  template <class T>
  static Tensor<T> jvp(const Geometry& g, const Inputs<T>& in, const std::vector<Tensor<T>>& dots) {
    return spec::max_pool_jvp(spec::max_pool_indices(in.values[0], g), dots[0], g);
  }
};

struct MaxPool : MaxOverWindows {
  static constexpr std::string_view name = "max_pool";
  static constexpr std::string_view summary =
      "max pooling: the largest cell of each window, the first of equals";
  static constexpr std::string_view example = "x=1x64x112x112 kernel=3 stride=2 padding=1";

  static std::vector<KnownAnswer> answers() {
    return {{.problem = "x=1x1x3 kernel=3 stride=2 padding=1",
             .inputs = {{-3, -1, -2}},
             .y = {-1, -1},
             .y_bar = {1, 10},
             .bars = {{0, 11, 0}}},
            {.problem = "x=1x1x5 kernel=2 stride=1 padding=1 dilation=2",
             .inputs = {{1, 2, 3, 4, 5}},
             .y = {2, 3, 4, 5, 4}},
            {.problem = "x=1x1x7 kernel=3 stride=3 ceil_mode=true",
             .inputs = {{1, 2, 3, 4, 5, 6, 7}},
             .y = {3, 6, 7}},
            {.problem = "x=1x1x6 kernel=7 stride=2 ceil_mode=true",
             .inputs = {{1, 2, 7, 4, 5, 6}},
             .y = {7},
             .y_bar = {2},
             .bars = {{0, 0, 2, 0, 0, 0}}},
            {.problem = "x=1x1x2x2 kernel=2",
             .inputs = {{1, 2, 5, 4}},
             .y = {5},
             .y_bar = {1},
             .bars = {{0, 0, 1, 0}}},
            // The first of equals wins.
            {.problem = "x=1x1x3 kernel=3",
             .inputs = {{1, 7, 7}},
             .y = {7},
             .y_bar = {1},
             .bars = {{0, 1, 0}}},
            // A window without a real cell.
            {.problem = "x=1x1x1 kernel=1 padding=1",
             .inputs = {{-5}},
             .y = {0, -5, 0},
             .y_bar = {1, 2, 4},
             .bars = {{2}}},
            {.problem = "x=1x1x3 kernel=3 stride=2 padding=1 pad_cells=zero",
             .inputs = {{-3, -1, -2}},
             .y = {0, 0},
             .y_bar = {1, 1},
             .bars = {{0, 0, 0}}}};
  }
  static Geometry random(Random& random, Reach reach = Reach::exact) {
    MaxPoolOptions options;
    const Shape x = random_pool(random, options, reach);
    return max_pool_geometry(x, options);
  }
};

static_assert(Operator<MaxPool>);

}  // namespace fenestra

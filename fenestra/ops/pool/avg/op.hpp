// The descriptor of average pooling: see ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/pool/operator.hpp>

namespace fenestra {

/// Values and derivatives of a mean over windows, fixed or adaptive.
struct MeanOverWindows : ReducedOperator<AverageReduction> {
  static Algebra algebra(const Geometry&) { return Algebra::multilinear; }
  /// Cells summed into one output at the most, and one division.
  static Index terms(const Geometry& g) {
    Index cells = 1;
    for (int axis = 0; axis < g.pool.rank(); ++axis) {
      cells *= most_real_taps(g.pool.windows[axis]);
    }
    return cells + 1;
  }
  /// The divisors: multiples of them have exact shares.
  static Tensor<double> cotangent_unit(const Geometry& g) {
    Tensor<double> unit(g.pool.y_shape(), 1.0);
    double* out = unit.mutable_data();
    for (Index o = 0; o < g.pool.windows.out_cells() && unit.size() > 0; ++o) {
      const Index divisor = g.divisor(o);
      for (Index n = 0; divisor != 0 && n < g.pool.batch; ++n) {
        for (Index c = 0; c < g.pool.channels; ++c) {
          out[g.pool.y_map().at(n, c, o)] = static_cast<double>(divisor);
        }
      }
    }
    return unit;
  }

  template <class T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    return spec::avg_pool(in.values[0], g);
  }
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g, const Inputs<T>&, const Tensor<T>& y_bar) {
    return {spec::avg_pool_vjp(y_bar, g)};
  }
  template <class T>
  static Tensor<T> jvp(const Geometry& g, const Inputs<T>&, const std::vector<Tensor<T>>& dots) {
    return spec::avg_pool(dots[0], g);
  }
};

struct AvgPool : MeanOverWindows {
  static constexpr std::string_view name = "avg_pool";
  static constexpr std::string_view summary =
      "average pooling: the sum of each window over its divisor";
  static constexpr std::string_view example =
      "x=1x192x28x28 kernel=3 stride=1 padding=1 count_include_pad=false";

  static std::vector<KnownAnswer> answers() {
    std::vector<double> arange;
    for (int i = 0; i < 49; ++i) {
      arange.push_back(i);
    }
    return {// One window that hangs over: the overhang is not counted, declared padding is.
            {.problem = "x=1x1x6 kernel=7 stride=2 ceil_mode=true",
             .inputs = {{1, 2, 3, 4, 5, 6}},
             .y = {3.5},
             .y_bar = {6},
             .bars = {{1, 1, 1, 1, 1, 1}}},
            {.problem = "x=1x1x4 kernel=7 stride=3 padding=1:0 ceil_mode=true",
             .inputs = {{1, 2, 3, 4}},
             .y = {2}},
            {.problem = "x=1x1x5 kernel=3 stride=2 padding=1",
             .inputs = {{1, 2, 3, 4, 5}},
             .y = {1, 3, 3},
             .y_bar = {3, 6, 9},
             .bars = {{1, 3, 2, 5, 3}}},
            {.problem = "x=1x1x5 kernel=3 stride=2 padding=1 count_include_pad=false",
             .inputs = {{1, 2, 3, 4, 5}},
             .y = {1.5, 3, 4.5},
             .y_bar = {2, 3, 8},
             .bars = {{1, 2, 1, 5, 4}}},
            {.problem = "x=1x1x6 kernel=3 stride=2 ceil_mode=true",
             .inputs = {{1, 2, 3, 4, 5, 6}},
             .y = {2, 4, 5.5}},
            {.problem = "x=1x1x7x7 kernel=2 stride=3 ceil_mode=true",
             .inputs = {arange},
             .y = {4, 7, 9.5, 25, 28, 30.5, 42.5, 45.5, 48}},
            {.problem = "x=1x1x2 kernel=2 divisor_override=-2", .inputs = {{1, 5}}, .y = {-3}}};
  }
  static Geometry random(Random& random, Reach reach = Reach::exact) {
    AvgPoolOptions options;
    const Shape x = random_pool(random, options, reach);
    if (random.chance(4)) {
      options.divisor_override = random.chance(2) ? random.between(1, 5) : random.between(-5, -1);
    }
    return avg_pool_geometry(x, options);
  }
};

static_assert(Operator<AvgPool>);

}  // namespace fenestra

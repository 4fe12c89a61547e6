// The descriptor of Lp pooling: see ops/operator.hpp for the contract.
#pragma once

#include <fenestra/ops/pool/operator.hpp>

#include <cmath>
#include <limits>

namespace fenestra {

struct LpPool : ReducedOperator<LpReduction> {
  static constexpr std::string_view name = "lp_pool";
  static constexpr std::string_view summary =
      "Lp pooling: the p-norm of the real cells of each window";
  static constexpr std::string_view example = "x=1x8x16x16 kernel=2 p=2";

  static std::vector<KnownAnswer> answers() {
    return {{.problem = "x=1x1x3 kernel=2 ceil_mode=true p=2",
             .inputs = {{3, 4, 12}},
             .y = {5, 12},
             .y_bar = {5, 1},
             .bars = {{3, 4, 1}}},
            {.problem = "x=1x1x2 kernel=4 stride=3 ceil_mode=true p=2",
             .inputs = {{3, 4}},
             .y = {5},
             .y_bar = {5},
             .bars = {{3, 4}}},
            {.problem = "x=1x1x3 kernel=3 p=1",
             .inputs = {{1, -2, 0}},
             .y = {3},
             .y_bar = {1},
             .bars = {{1, -1, 0}}}};
  }
  static Geometry random(Random& random, Reach reach = Reach::exact) {
    static constexpr double kExponents[] = {0.5, 1.0, 1.0, 1.5, 2.0, 2.0, 3.0, 4.0};
    LpPoolOptions options;
    const Shape x = random_pool(random, options, reach);
    options.p = kExponents[random.between(0, 7)];
    return lp_pool_geometry(x, options);
  }

  static Algebra algebra(const Geometry& g) {
    return g.p == 1.0 ? Algebra::piecewise_linear : Algebra::transcendental;
  }

  template <class T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    return spec::lp_pool(in.values[0], g);
  }
  template <class T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    return {spec::lp_pool_vjp(in.values[0], y_bar, g)};
  }
  template <class T>
  static Tensor<T> jvp(const Geometry& g, const Inputs<T>& in, const std::vector<Tensor<T>>& dots) {
    return spec::lp_pool_jvp(in.values[0], dots[0], g);
  }

  /// A-priori bound of |computed - exact| for each output, T the type it was computed in, u its
  /// unit roundoff.
  ///
  /// All terms are positive, so relative errors add: 2u for each power (one ulp of the library),
  /// (n-1)u for the sum. The outer power takes the relative error of its base times 1/p, adds 2u of
  /// its own, and u*|log(sum)|/p for the rounding of its exponent 1/p. First order in u; the factor
  /// 2 covers the higher orders.
  template <class T>
  static Tensor<long double> error_bound(const Geometry& g, const Inputs<T>& in) {
    const long double u = std::numeric_limits<T>::epsilon() / 2.0L;
    const auto p = static_cast<long double>(g.p);
    Tensor<long double> bound(g.pool.y_shape());
    long double* out = bound.mutable_data();
    spec::for_each_window(g.pool, [&](Index n, Index c, Index o) {
      long double sum = 0;
      long double cells = 0;
      for_each_tap(g.pool.windows, o, Visit::real, [&](const Tap& tap) {
        cells += 1;
        sum += std::pow(
            std::fabs(static_cast<long double>(in.values[0][g.pool.x_map().at(n, c, tap.cell)])),
            p);
      });
      if (sum == 0) {
        return;
      }
      const long double y = std::pow(sum, 1 / p);
      out[g.pool.y_map().at(n, c, o)] =
          2 * u * y * ((2 + cells) / p + std::fabs(std::log(sum)) / p + 2);
    });
    return bound;
  }
};

static_assert(Operator<LpPool>);

}  // namespace fenestra

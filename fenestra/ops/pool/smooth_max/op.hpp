// The descriptor of smooth max pooling: see ops/operator.hpp for the contract. Its inputs are x and
// beta.
#pragma once

#include <fenestra/ops/pool/operator.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fenestra {

struct SmoothMaxPool : ReducedOperator<SmoothMaxReduction> {
  static constexpr std::string_view name = "smooth_max_pool";
  static constexpr std::string_view summary =
      "smooth max pooling: (1/beta) log(sum of exp(beta x)) over each window";
  static constexpr std::string_view example = "x=1x8x16x16 kernel=2 beta=4";

  static std::vector<KnownAnswer> answers() {
    return {{.problem = "x=1x1x4 kernel=4 beta=1",
             .inputs = {{1, 2, 3, 4}, {1}},
             .y = {4.4401897},
             .y_bar = {1},
             .bars = {{0.0320586, 0.0871443, 0.2368828, 0.6439143}},
             .half_unit = 0.5e-7},
            {.problem = "x=1x1x4 kernel=4 beta=10",
             .inputs = {{0, 0, 0, 0}, {10}},
             .y = {0.1386294},
             .half_unit = 0.5e-7},
            {.problem = "x=1x1x2 kernel=2 beta=1",
             .inputs = {{1e4, 1e4 + 1}, {1}},
             .y = {10001.313262},
             .half_unit = 0.5e-6},
            {.problem = "x=1x1x1 kernel=2 stride=1 padding=1 beta=1 pad_cells=zero",
             .inputs = {{-3}, {1}},
             .y = {0.04858735155, 0.04858735155},
             .half_unit = 0.5e-10},
            {.problem = "x=1x1x2 kernel=2 beta=-1",
             .inputs = {{1, 2}, {-1}},
             .y = {0.6867383124817772},
             .half_unit = 0.5e-16},
            {.problem = "x=1x1x4 kernel=4 beta=10 normalised=true",
             .inputs = {{7, 7, 7, 7}, {10}},
             .y = {7},
             .y_bar = {4},
             .bars = {{1, 1, 1, 1}, {0}}},
            // Hardly any sharpness: the mean, half the variance by beta.
            {.problem = "x=1x1x2 kernel=2 beta=1e-10 normalised=true",
             .inputs = {{1, 2}, {1e-10}},
             .y = {1.5},
             .y_bar = {8},
             .bars = {{4, 4}, {1}},
             .half_unit = 0.5e-8},
            {.problem = "x=1x1x4 kernel=4 beta=-1e-30 normalised=true",
             .inputs = {{1, 2, 3, 6}, {-1e-30}},
             .y = {3},
             .y_bar = {4},
             .bars = {{1, 1, 1, 1}, {7}},
             .half_unit = 0.5e-12},
            {.problem = "x=1x1x2 kernel=2 beta=1e30",
             .inputs = {{-4, 3}, {1e30}},
             .y = {3},
             .y_bar = {1},
             .bars = {{0, 1}, {0}},
             .half_unit = 0.5e-12}};
  }
  static Geometry random(Random& random, Reach reach = Reach::exact) {
    SmoothMaxPoolOptions options;
    const Shape x = random_pool(random, options, reach);
    options.beta =
        static_cast<double>(random.chance(3) ? random.between(-8, -1) : random.between(1, 8)) / 2;
    // Now and then by powers of ten. Without normalisation the derivative by beta has the size of
    // log(n)/beta^2, which float must hold.
    if (random.chance(3)) {
      const Index least = options.normalised ? -30 : -15;
      options.beta *= std::pow(10.0, static_cast<double>(random.between(least, 30)));
      options.beta = static_cast<double>(static_cast<float>(options.beta));
    }
    return smooth_max_pool_geometry(x, options);
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) {
    return {{"x", g.pool.x_shape(), Role::activation}, {"beta", Shape{}, Role::scalar}};
  }
  static double scalar_value(const Geometry& g) { return g.beta; }
  static Algebra algebra(const Geometry&) { return Algebra::transcendental; }

  template <Transcendental T>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    return spec::smooth_max_pool(in.values[0], in.values[1], g);
  }
  template <Transcendental T>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    auto grads = spec::smooth_max_pool_vjp(in.values[0], in.values[1], y_bar, g);
    return {grads.x_bar, grads.beta_bar};
  }
  template <Transcendental T>
  static Tensor<T> jvp(const Geometry& g, const Inputs<T>& in, const std::vector<Tensor<T>>& dots) {
    return spec::smooth_max_pool_jvp(in.values[0], in.values[1], dots[0], dots[1], g);
  }

  /// Errors of exp, log, expm1 and log1p that the bounds allow, in ulps of the result: what the
  /// vector functions of the kernels are documented to keep to. Sampled where weights and their
  /// sums lie, the first two stay below 1 and 0.9; the standard library's are below 1.
  static constexpr long double kExpUlps = 1;
  static constexpr long double kLogUlps = 4;
  static constexpr long double kExpm1Ulps = 4;
  static constexpr long double kLog1pUlps = 2;

  /// A-priori bound of |computed - exact| for each output, T the type it was computed in, u its
  /// unit roundoff, t its smallest number; an ulp is at most 2u of the result.
  ///
  /// With d = x - m, z = beta*d and n cells: z carries 2u|z| + t, so exp(z) the relative error
  /// 2u|z| + t and its own, and S the relative error r = 2u sum(e|z|)/S + 2 exp + (n-1)u + nt/S.
  /// log makes it an absolute one and adds its own. Normalised, log(n) does likewise; but where the
  /// weights are nearly equal (S > n/2), exp(z) - 1 carries the relative error (2 + its own)u and
  /// the absolute t, the mean E another nu, and log(1 + E) at most twice that and its own, all of
  /// it relative to |y - m|*beta. The quotient by beta and the sum with m round once each, and the
  /// quotient's error is beta's part of t. First order in u; the factor 2 covers the higher orders.
  template <class T>
  static Tensor<long double> error_bound(const Geometry& g, const Inputs<T>& in) {
    const long double u = std::numeric_limits<T>::epsilon() / 2.0L;
    const long double tiny = std::numeric_limits<T>::denorm_min();
    const auto beta = static_cast<long double>(in.values[1][0]);
    Tensor<long double> bound(g.pool.y_shape());
    long double* out = bound.mutable_data();
    spec::for_each_window(g.pool, [&](Index n, Index c, Index o) {
      spec::SmoothWindow<long double> window(beta, g.normalised);
      long double extreme = 0;
      for_each_tap(g.pool.windows, o, g.visit(), [&](const Tap& tap) {
        const auto x =
            tap.cell < 0
                ? 0.0L
                : static_cast<long double>(in.values[0][g.pool.x_map().at(n, c, tap.cell)]);
        extreme = window.cells().empty() ? x : (beta > 0 ? x > extreme : x < extreme) ? x : extreme;
        window.add(tap.cell, x);
      });
      window.finish();
      if (window.cells().empty()) {
        return;
      }
      long double sum = 0;
      long double moved = 0;
      for (const auto& cell : window.cells()) {
        const long double e = std::exp(beta * cell.d);
        sum += e;
        moved += e > 0 ? e * std::fabs(beta * cell.d) : 0;
      }
      const auto cells = static_cast<long double>(window.cells().size());
      const long double log_n = std::log(cells);
      const long double above = std::fabs(window.value() - extreme);
      const long double sharp = u * (2 * moved / sum + 2 * kExpUlps + (cells - 1) +
                                     2 * kLogUlps * (std::log(sum) + (g.normalised ? log_n : 0)) +
                                     (g.normalised ? std::log(sum) + log_n : 0)) +
                                cells * tiny;
      const long double smooth =
          above * std::fabs(beta) * u * (2 * (2 + 2 * kExpm1Ulps + cells) + 2 * kLog1pUlps) +
          4 * tiny;
      // Close to the border either may be taken.
      const bool smooth_only = g.normalised && sum > 0.51L * cells;
      const bool sharp_only = !g.normalised || sum < 0.49L * cells;
      const long double larger = smooth_only  ? smooth
                                 : sharp_only ? sharp
                                              : std::max(smooth, sharp);
      out[g.pool.y_map().at(n, c, o)] =
          2 * (larger / std::fabs(beta) + u * (2 * above + std::fabs(extreme)) + tiny);
    });
    return bound;
  }
};

static_assert(Operator<SmoothMaxPool>);

}  // namespace fenestra

// The descriptor of smooth max pooling: see ops/operator.hpp for the contract. Its inputs are x and
// beta.
#pragma once

#include <fenestra/ops/pool_operator.hpp>
#include <fenestra/ops/smooth_max_pool/smooth_max_pool.hpp>
#include <fenestra/ops/smooth_max_pool/spec.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fenestra {

struct SmoothMaxPool : PoolOperator<SmoothMaxPoolGeometry> {
  static constexpr std::string_view name = "smooth_max_pool";
  static constexpr std::string_view summary =
      "smooth max pooling: (1/beta) log(sum of exp(beta x)) over each window";
  static constexpr std::string_view example = "x=1x8x16x16 kernel=2 beta=4";

  static Geometry parse(std::string_view text) { return parse_smooth_max_pool(Problem(text)); }
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
             .bars = {{1, 1, 1, 1}, {0}}}};
  }
  static Geometry random(Random& random, Reach reach = Reach::exact) {
    SmoothMaxPoolOptions options;
    const Shape x = random_pool(random, options, reach);
    options.pad_cells = random.chance(3) ? PadCells::zero : PadCells::ignore;
    options.normalised = random.chance(2);
    options.beta =
        static_cast<double>(random.chance(3) ? random.between(-8, -1) : random.between(1, 8)) / 2;
    return smooth_max_pool_geometry(x, options);
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) {
    return {{"x", g.pool.x_shape(), Role::activation}, {"beta", Shape{}, Role::scalar}};
  }
  static double scalar_value(const Geometry& g) { return g.beta; }
  static std::vector<KernelChoice> kernels(const Geometry& g) { return smooth_max_pool_kernels(g); }
  static Algebra algebra(const Geometry&) { return Algebra::transcendental; }

  template <class V>
  static V call(const Geometry& g, const std::vector<V>& in, const std::vector<Tensor<Index>>&) {
    return apply(SmoothMaxPoolPrimitive{SmoothDirection::forward, g}, {in[0], in[1]});
  }
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

  /// Errors of exp and log that the bounds allow, in ulps of the result: what the vector functions
  /// of the kernels are documented to keep to. Sampled where weights and their sums lie, they stay
  /// below 1 and 0.9; the standard library's are below 1.
  static constexpr long double kExpUlps = 1;
  static constexpr long double kLogUlps = 4;

  /// A-priori bound of |computed - exact| for each output, T the type it was computed in, u its
  /// unit roundoff; an ulp is at most 2u of the result.
  ///
  /// With z = beta*x, M = max |z|, m the extreme and n cells: z carries u*M, so z - m carries at
  /// most 4uM in all (two roundings of z, one of m, one of the difference of size 2M). exp turns
  /// that into a relative error 4uM and adds its own, the sum adds (n-1)u, log turns the relative
  /// error of the sum into an absolute one and adds its own times |log| <= log(n); log(n) itself
  /// likewise; two additions and the division round |m| + 2 log(n) once each. First order in u; the
  /// factor 2 covers the higher orders, since M*u is far below 1.
  template <class T>
  static Tensor<long double> error_bound(const Geometry& g, const Inputs<T>& in) {
    const long double u = std::numeric_limits<T>::epsilon() / 2.0L;
    const long double beta = std::fabs(static_cast<long double>(in.values[1][0]));
    Tensor<long double> bound(g.pool.y_shape());
    long double* out = bound.mutable_data();
    spec::for_each_window(g.pool, [&](Index n, Index c, Index o) {
      long double largest = 0;
      long double cells = 0;
      for_each_tap(g.pool.windows, o, [&](const Tap& tap) {
        if (!g.counts(tap)) {
          return;
        }
        cells += 1;
        if (tap.cell < 0) {
          return;
        }
        const auto x = static_cast<long double>(in.values[0][g.pool.x_map().at(n, c, tap.cell)]);
        largest = std::max(largest, std::fabs(beta * x));
      });
      if (cells == 0) {
        return;
      }
      const long double log_n = std::log(cells);
      const long double sum_error = 4 * largest + 2 * kExpUlps + (cells - 1);
      const long double rounding = 2 * (2 * kLogUlps * log_n) + 3 * (largest + 2 * log_n);
      out[g.pool.y_map().at(n, c, o)] = 2 * u * (sum_error + rounding) / beta;
    });
    return bound;
  }
};

static_assert(Operator<SmoothMaxPool>);

}  // namespace fenestra

// Smooth max pooling, executable specification.
//
//   y = (1/beta) * log( sum over the window of exp(beta*x) )   [- log(n)/beta, normalised]
//
// stabilised by the window's extreme m, its max for beta > 0 and its min for beta < 0:
// m + log(sum of exp(beta*(x - m)))/beta, in which nothing overflows unless y does. Weights
// p = softmax(beta*x) over the window; VJP to x: p*y_bar, JVP: sum p*x_dot, gradient to beta: (sum
// p*x - y)/beta. A window without a cell is 0 and carries no gradient.
#pragma once

#include <fenestra/ops/require.hpp>
#include <fenestra/ops/smooth_max_pool/geometry.hpp>
#include <fenestra/ops/windows.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <vector>

namespace fenestra::spec {

/// One window: its value, and the offset and weight of each cell that takes part.
template <Transcendental T>
struct SmoothWindow {
  struct Cell {
    Index offset;  ///< into x; -1 for a padded zero
    T weight;      ///< p
  };
  T value = T(0);
  std::vector<Cell> cells;
};

/// True for an infinity of any scalar that has one.
template <class T>
bool is_infinite(const T& x) {
  return !is_nan(x) && is_nan(x - x);
}

template <Transcendental T>
SmoothWindow<T> smooth_window(
    const Tensor<T>& x, const T& beta, const SmoothMaxPoolGeometry& g, Index n, Index c, Index o) {
  SmoothWindow<T> window;
  const bool minimum = beta < T(0);
  T extreme(0);
  for_each_tap(g.pool.windows, o, [&](const Tap& tap) {
    if (!g.counts(tap)) {
      return;
    }
    const Index offset = tap.cell >= 0 ? g.pool.x_map().at(n, c, tap.cell) : -1;
    const T v = offset >= 0 ? x[offset] : T(0);
    // Any constant may be subtracted from all cells: derivatives do not pass through the extreme.
    const T candidate = representative(v);
    if (window.cells.empty()) {
      extreme = candidate;
    } else {
      extreme =
          minimum ? T(-scalar_max(T(-extreme), T(-candidate))) : scalar_max(extreme, candidate);
    }
    window.cells.push_back({offset, v});
  });
  if (window.cells.empty()) {
    return window;
  }
  if (is_infinite(extreme)) {
    // All cells at the far end: value without gradient. One at the near end: logsumexp leaves its
    // weight undefined, and the quotient leaves a dual's tangent so too.
    const bool far = (extreme < T(0)) != minimum;
    window.value = far ? extreme : extreme / scalar_abs(beta);
    for (auto& cell : window.cells) {
      cell.weight = !far && cell.weight == extreme ? extreme - extreme : T(0);
    }
    return window;
  }
  T sum(0);
  for (auto& cell : window.cells) {
    // An infinite cell has no weight and, which a dual would not see, no derivative.
    cell.weight = is_infinite(cell.weight) ? T(0) : scalar_exp(beta * (cell.weight - extreme));
    sum = sum + cell.weight;
  }
  for (auto& cell : window.cells) {
    cell.weight = cell.weight / sum;
  }
  T log_sum = scalar_log(sum);
  if (g.normalised) {
    log_sum = log_sum - scalar_log(from_index<T>(static_cast<Index>(window.cells.size())));
  }
  window.value = extreme + log_sum / beta;
  return window;
}

/// sum p*v over a window; a weight of zero silences its cell even where v is infinite.
template <Transcendental T>
T weighted_sum(const SmoothWindow<T>& window, const Tensor<T>& v) {
  T sum(0);
  for (const auto& cell : window.cells) {
    if (cell.offset >= 0 && !(cell.weight == T(0))) {
      sum = sum + cell.weight * v[cell.offset];
    }
  }
  return sum;
}

/// dy/dbeta = (sum p*x - y)/beta, 0 for a window without gradient.
template <Transcendental T>
T beta_slope(const SmoothWindow<T>& window, const Tensor<T>& x, const T& beta) {
  if (window.cells.empty()) {
    return T(0);
  }
  if (is_infinite(window.value)) {
    bool silent = true;
    for (const auto& cell : window.cells) {
      silent = silent && cell.weight == T(0);
    }
    if (silent) {
      return T(0);
    }
  }
  return (weighted_sum(window, x) - window.value) / beta;
}

/// y from x and the rank-0 tensor beta.
template <Transcendental T>
Tensor<T> smooth_max_pool(const Tensor<T>& x,
                          const Tensor<T>& beta,
                          const SmoothMaxPoolGeometry& g) {
  require_shape("smooth_max_pool", "x", x, g.pool.x_shape());
  require_shape("smooth_max_pool", "beta", beta, Shape{});
  Tensor<T> y(g.pool.y_shape());
  T* out = y.mutable_data();
  for_each_window(g.pool, [&](Index n, Index c, Index o) {
    out[g.pool.y_map().at(n, c, o)] = smooth_window(x, beta[0], g, n, c, o).value;
  });
  return y;
}

/// S(v)[o] = sum over window o of p * v, for v of x's shape: the JVP to x, linear in v.
template <Transcendental T>
Tensor<T> smooth_mix(const Tensor<T>& x,
                     const Tensor<T>& beta,
                     const Tensor<T>& v,
                     const SmoothMaxPoolGeometry& g) {
  require_shape("smooth_mix", "v", v, x.shape());
  Tensor<T> mixed(g.pool.y_shape());
  T* out = mixed.mutable_data();
  for_each_window(g.pool, [&](Index n, Index c, Index o) {
    out[g.pool.y_map().at(n, c, o)] = weighted_sum(smooth_window(x, beta[0], g, n, c, o), v);
  });
  return mixed;
}

/// A(u)[cell] = sum over the windows that see the cell of p * u, for u of y's shape: the VJP to x,
/// adjoint to S.
template <Transcendental T>
Tensor<T> smooth_spread(const Tensor<T>& x,
                        const Tensor<T>& beta,
                        const Tensor<T>& u,
                        const SmoothMaxPoolGeometry& g) {
  require_shape("smooth_spread", "u", u, g.pool.y_shape());
  Tensor<T> spread(x.shape());
  T* out = spread.mutable_data();
  for_each_window(g.pool, [&](Index n, Index c, Index o) {
    for (const auto& cell : smooth_window(x, beta[0], g, n, c, o).cells) {
      if (cell.offset < 0) {
        continue;
      }
      out[cell.offset] = out[cell.offset] + cell.weight * u[g.pool.y_map().at(n, c, o)];
    }
  });
  return spread;
}

template <Transcendental T>
struct SmoothMaxPoolGrads {
  Tensor<T> x_bar;
  Tensor<T> beta_bar;
};

template <Transcendental T>
SmoothMaxPoolGrads<T> smooth_max_pool_vjp(const Tensor<T>& x,
                                          const Tensor<T>& beta,
                                          const Tensor<T>& y_bar,
                                          const SmoothMaxPoolGeometry& g) {
  require_shape("smooth_max_pool_vjp", "x", x, g.pool.x_shape());
  require_shape("smooth_max_pool_vjp", "beta", beta, Shape{});
  require_shape("smooth_max_pool_vjp", "y_bar", y_bar, g.pool.y_shape());
  SmoothMaxPoolGrads<T> grads{Tensor<T>(x.shape()), Tensor<T>(Shape{})};
  T* x_bar = grads.x_bar.mutable_data();
  T* beta_bar = grads.beta_bar.mutable_data();
  for_each_window(g.pool, [&](Index n, Index c, Index o) {
    const auto window = smooth_window(x, beta[0], g, n, c, o);
    const T& seed = y_bar[g.pool.y_map().at(n, c, o)];
    for (const auto& cell : window.cells) {
      if (cell.offset >= 0) {
        x_bar[cell.offset] = x_bar[cell.offset] + cell.weight * seed;
      }
    }
    *beta_bar = *beta_bar + seed * beta_slope(window, x, beta[0]);
  });
  return grads;
}

template <Transcendental T>
Tensor<T> smooth_max_pool_jvp(const Tensor<T>& x,
                              const Tensor<T>& beta,
                              const Tensor<T>& x_dot,
                              const Tensor<T>& beta_dot,
                              const SmoothMaxPoolGeometry& g) {
  require_shape("smooth_max_pool_jvp", "x", x, g.pool.x_shape());
  require_shape("smooth_max_pool_jvp", "beta", beta, Shape{});
  require_shape("smooth_max_pool_jvp", "x_dot", x_dot, x.shape());
  require_shape("smooth_max_pool_jvp", "beta_dot", beta_dot, Shape{});
  Tensor<T> y_dot(g.pool.y_shape());
  T* out = y_dot.mutable_data();
  for_each_window(g.pool, [&](Index n, Index c, Index o) {
    const auto window = smooth_window(x, beta[0], g, n, c, o);
    out[g.pool.y_map().at(n, c, o)] =
        weighted_sum(window, x_dot) + beta_dot[0] * beta_slope(window, x, beta[0]);
  });
  return y_dot;
}

template <Transcendental T>
Tensor<T> smooth_max_pool(const Tensor<T>& x, const SmoothMaxPoolOptions& options) {
  return smooth_max_pool(x,
                         Tensor<T>(Shape{}, from_double<T>(options.beta)),
                         smooth_max_pool_geometry(x.shape(), options));
}

}  // namespace fenestra::spec

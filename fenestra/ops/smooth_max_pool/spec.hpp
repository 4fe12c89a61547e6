// Smooth max pooling, executable specification.
//
//   y = (1/beta) * log( sum over the window of exp(beta*x) )   [- log(n)/beta, normalised]
//
// stabilised by the window's extreme m, its max for beta > 0 and its min for beta < 0. With
// d = x - m, z = beta*d <= 0, S = sum exp(z) and E = mean(exp(z) - 1) = S/n - 1:
//
//   y = m + log(S)/beta,   normalised:  m + log(1 + E)/beta
//
// in which nothing overflows unless y does, and nothing cancels: E is a sum of terms of one sign,
// so a small beta gives the mean and not the maximum. Where E <= -1/2, log(S) - log(n) takes the
// place of log(1 + E), whose argument would have cancelled.
//
// Weights p = softmax(beta*x) over the window; VJP to x: p*y_bar, JVP: sum p*x_dot. The derivatives
// by beta are functions of their own, since (sum p*x - y)/beta cancels for small beta; see `slope`
// and `curve`. A window without a cell is 0 and carries no gradient.
#pragma once

#include <fenestra/ops/require.hpp>
#include <fenestra/ops/smooth_max_pool/geometry.hpp>
#include <fenestra/ops/windows.hpp>
#include <fenestra/spec/exponential_moment.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <vector>

namespace fenestra::spec {

/// True for an infinity of any scalar that has one.
template <class T>
bool is_infinite(const T& x) {
  return !is_nan(x) && is_nan(x - x);
}

/// One window: its cells that take part and what the formulas above say of them.
template <Transcendental T>
class SmoothWindow {
 public:
  struct Cell {
    Index offset;  ///< into x; -1 for a padded zero
    T d;           ///< x - m
    T weight;      ///< p
    bool silent;   ///< infinitely far from the extreme: no weight, no derivative
  };

  SmoothWindow(const T& beta, bool normalised) : beta_(beta), normalised_(normalised) {}

  const std::vector<Cell>& cells() const { return cells_; }
  void add(Index offset, const T& x) { cells_.push_back({offset, x, T(0), false}); }
  /// After the last cell.
  void finish() {
    if (cells_.empty()) {
      return;
    }
    const bool minimum = beta_ < T(0);
    // Any constant may be subtracted from all cells: derivatives do not pass through the extreme.
    extreme_ = representative(cells_[0].d);
    for (const Cell& cell : cells_) {
      const T candidate = representative(cell.d);
      extreme_ =
          minimum ? T(-scalar_max(T(-extreme_), T(-candidate))) : scalar_max(extreme_, candidate);
    }
    if (is_infinite(extreme_)) {
      finish_infinite(minimum);
      return;
    }
    const T n = from_index<T>(static_cast<Index>(cells_.size()));
    sum_ = T(0);
    T less_one(0);
    for (Cell& cell : cells_) {
      cell.d = cell.d - extreme_;
      const T z = beta_ * cell.d;
      cell.silent = is_infinite(z);
      cell.weight = cell.silent ? T(0) : scalar_exp(z);
      sum_ = sum_ + cell.weight;
      less_one = less_one + (cell.silent ? T(-1) : scalar_expm1(z));
    }
    for (Cell& cell : cells_) {
      cell.weight = cell.weight / sum_;
    }
    less_one = less_one / n;
    smooth_ = normalised_ && T(-1) < representative(less_one) + representative(less_one);
    const T log_sum = smooth_       ? scalar_log1p(less_one)
                      : normalised_ ? T(scalar_log(sum_) - scalar_log(n))
                                    : scalar_log(sum_);
    above_ = log_sum / beta_;
    value_ = extreme_ + above_;
  }

  const T& value() const { return value_; }

  /// dy/dbeta = (sum p*d - (y - m))/beta: both terms have one sign, unless normalised. Then it is
  /// the divergence of p from equal weights over beta^2, and with g = x - y and w = beta*g, where
  /// sum exp(w) = n, the mean of (w e^w - e^w + 1)/beta^2: terms that are not negative.
  T slope() const {
    if (cells_.empty() || infinite_) {
      return without_gradient();
    }
    if (!smooth_) {
      return (mean() - above_) / beta_;
    }
    T sum(0);
    for (const Cell& cell : cells_) {
      if (cell.silent) {
        sum = sum + T(1) / beta_ / beta_;
      } else {
        const T g = cell.d - above_;
        sum = sum + g * g * exponential_moment(T(beta_ * g), 1);
      }
    }
    return sum / from_index<T>(static_cast<Index>(cells_.size()));
  }

  /// d^2y/dbeta^2 = (variance of x under p - 2 slope)/beta, both of one sign unless normalised.
  /// Then the mean of (e^w (w^2 - 2w + 2) - 2)/beta^3, less beta*slope^2.
  T curve() const {
    if (cells_.empty() || infinite_) {
      return without_gradient();
    }
    const T first = slope();
    T sum(0);
    if (!smooth_) {
      const T centre = mean();
      for (const Cell& cell : cells_) {
        if (!cell.silent) {
          sum = sum + cell.weight * ((cell.d - centre) * (cell.d - centre));
        }
      }
      return (sum - (first + first)) / beta_;
    }
    for (const Cell& cell : cells_) {
      if (cell.silent) {
        sum = sum - T(2) / beta_ / beta_ / beta_;
      } else {
        const T g = cell.d - above_;
        sum = sum + g * g * g * exponential_moment(T(beta_ * g), 2);
      }
    }
    return sum / from_index<T>(static_cast<Index>(cells_.size())) - beta_ * (first * first);
  }

 private:
  // All cells at the far end: value without gradient. One at the near end: logsumexp leaves its
  // weight undefined, and the quotient leaves a dual's tangent so too.
  void finish_infinite(bool minimum) {
    infinite_ = true;
    far_ = (extreme_ < T(0)) != minimum;
    value_ = far_ ? extreme_ : extreme_ / scalar_abs(beta_);
    for (Cell& cell : cells_) {
      cell.weight = !far_ && cell.d == extreme_ ? extreme_ - extreme_ : T(0);
    }
  }
  T without_gradient() const { return infinite_ && !far_ ? T(extreme_ - extreme_) : T(0); }
  /// sum p*d
  T mean() const {
    T sum(0);
    for (const Cell& cell : cells_) {
      if (!cell.silent) {
        sum = sum + cell.weight * cell.d;
      }
    }
    return sum;
  }

  T beta_;
  bool normalised_;
  bool smooth_ = false;    ///< normalised, and E > -1/2
  bool infinite_ = false;  ///< the extreme is
  bool far_ = false;
  T extreme_ = T(0);
  T sum_ = T(1);
  T above_ = T(0);  ///< y - m
  T value_ = T(0);
  std::vector<Cell> cells_;
};

template <Transcendental T>
SmoothWindow<T> smooth_window(
    const Tensor<T>& x, const T& beta, const SmoothMaxPoolGeometry& g, Index n, Index c, Index o) {
  SmoothWindow<T> window(beta, g.normalised);
  for_each_tap(g.pool.windows, o, g.visit(), [&](const Tap& tap) {
    const Index offset = tap.cell >= 0 ? g.pool.x_map().at(n, c, tap.cell) : -1;
    window.add(offset, offset >= 0 ? x[offset] : T(0));
  });
  window.finish();
  return window;
}

/// sum p*v over a window; a weight of zero silences its cell even where v is infinite.
template <Transcendental T>
T weighted_sum(const SmoothWindow<T>& window, const Tensor<T>& v) {
  T sum(0);
  for (const auto& cell : window.cells()) {
    if (cell.offset >= 0 && !(cell.weight == T(0))) {
      sum = sum + cell.weight * v[cell.offset];
    }
  }
  return sum;
}

/// y, dy/dbeta or d^2y/dbeta^2 from x and the rank-0 tensor beta.
template <Transcendental T>
Tensor<T> smooth_max_pool(const Tensor<T>& x,
                          const Tensor<T>& beta,
                          const SmoothMaxPoolGeometry& g,
                          SmoothDirection direction = SmoothDirection::forward) {
  require_shape("smooth_max_pool", "x", x, g.pool.x_shape());
  require_shape("smooth_max_pool", "beta", beta, Shape{});
  Tensor<T> y(g.pool.y_shape());
  T* out = y.mutable_data();
  for_each_window(g.pool, [&](Index n, Index c, Index o) {
    const auto window = smooth_window(x, beta[0], g, n, c, o);
    out[g.pool.y_map().at(n, c, o)] = direction == SmoothDirection::slope   ? window.slope()
                                      : direction == SmoothDirection::curve ? window.curve()
                                                                            : window.value();
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
    const auto window = smooth_window(x, beta[0], g, n, c, o);
    for (const auto& cell : window.cells()) {
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
    for (const auto& cell : window.cells()) {
      if (cell.offset >= 0) {
        x_bar[cell.offset] = x_bar[cell.offset] + cell.weight * seed;
      }
    }
    *beta_bar = *beta_bar + seed * window.slope();
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
    out[g.pool.y_map().at(n, c, o)] = weighted_sum(window, x_dot) + beta_dot[0] * window.slope();
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

// The pools, executable specification, for sliding windows and adaptive bins alike. With w ranging
// over the cells of window o that take part:
//
//   max          y[n,c,o] = max of x[n,c,w]: the first cell in row-major order that no later cell
//                beats; NaN beats every number
//   average      y[n,c,o] = (sum of x[n,c,w]) / divisor(o): sum first, then one division
//   Lp           y[n,c,o] = (sum of |x[n,c,w]|^p)^(1/p)
//   smooth max   y[n,c,o] = (1/beta) log(sum of exp(beta*x[n,c,w])): see smooth_window.hpp
//
// A window without a cell has the value 0 and carries no gradient.
#pragma once

#include <fenestra/ops/placement.hpp>
#include <fenestra/ops/pool/reduction.hpp>
#include <fenestra/ops/pool/smooth_window.hpp>
#include <fenestra/ops/pool/windows.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/tensor.hpp>

namespace fenestra::spec {

// --- Max ------------------------------
//
// Value, index, VJP and JVP all follow one winner. No cell wins a window without one, nor one that
// a padded zero wins (`pad_cells = zero`): its index is -1.

/// The winning cell of every window, flat over the spatial extents of one sample and channel;
/// `kNowhere` for none.
template <OrderedScalar T>
void max_pool_indices(const T* x, const MaxPoolGeometry& g, Index* out) {
  const T zero(0);
  for_each_window(g.pool, [&](Index n, Index c, Index o) {
    const T* best = nullptr;
    Index winner = kNowhere;
    for_each_tap(g.pool.windows, o, g.visit(), [&](const Tap& tap) {
      const T* candidate = tap.cell >= 0 ? x + g.pool.x_map().at(n, c, tap.cell) : &zero;
      if (best != nullptr && !beats(*candidate, *best)) {
        return;
      }
      best = candidate;
      winner = tap.cell;
    });
    out[g.pool.y_map().at(n, c, o)] = winner;
  });
}
template <OrderedScalar T>
Tensor<Index> max_pool_indices(const Tensor<T>& x, const MaxPoolGeometry& g) {
  require_shape("max_pool", "x", x, g.pool.x_shape());
  auto indices = Tensor<Index>::uninitialised(g.pool.y_shape());
  max_pool_indices(x.data(), g, indices.mutable_data());
  return indices;
}

/// Values only. A scalar without a total order (intervals) is folded with `scalar_max`, which
/// encloses every possible winner; the others read the winner itself.
template <Scalar T>
Tensor<T> max_pool(const Tensor<T>& x, const MaxPoolGeometry& g) {
  if constexpr (TotallyOrdered<T>) {
    return gather(x, max_pool_indices(x, g), g.pool.x_map(), g.pool.y_map());
  } else {
    require_shape("max_pool", "x", x, g.pool.x_shape());
    return tensor_of_windows<T>(g.pool, [&](Index n, Index c, Index o) {
      bool any = false;
      T best(0);
      for_each_cell(g.pool, n, c, o, g.visit(), [&](Index at) {
        const T candidate = at >= 0 ? x[at] : T(0);
        best = any ? scalar_max(best, candidate) : candidate;
        any = true;
      });
      return best;
    });
  }
}

/// x_bar: y_bar added to the winner of each window.
template <Scalar T>
Tensor<T> max_pool_vjp(const Tensor<Index>& indices,
                       const Tensor<T>& y_bar,
                       const MaxPoolGeometry& g) {
  require_shape("max_pool_vjp", "indices", indices, g.pool.y_shape());
  require_shape("max_pool_vjp", "y_bar", y_bar, g.pool.y_shape());
  return scatter(y_bar, indices, g.pool.x_map(), g.pool.y_map(), g.pool.x_shape());
}

/// y_dot: x_dot read at the winner of each window.
template <Scalar T>
Tensor<T> max_pool_jvp(const Tensor<Index>& indices,
                       const Tensor<T>& x_dot,
                       const MaxPoolGeometry& g) {
  require_shape("max_pool_jvp", "indices", indices, g.pool.y_shape());
  require_shape("max_pool_jvp", "x_dot", x_dot, g.pool.x_shape());
  return gather(x_dot, indices, g.pool.x_map(), g.pool.y_map());
}

// --- Average ------------------------------
//
// Linear in x, so its JVP is itself; a window with divisor 0 (no real cell) is 0.

template <Field T>
Tensor<T> avg_pool(const Tensor<T>& x, const AvgPoolGeometry& g) {
  require_shape("avg_pool", "x", x, g.pool.x_shape());
  return tensor_of_windows<T>(g.pool, [&](Index n, Index c, Index o) {
    T sum(0);
    for_each_cell(g.pool, n, c, o, Visit::real, [&](Index at) { sum = sum + x[at]; });
    const Index divisor = g.divisor(o);
    return divisor != 0 ? T(sum / from_index<T>(divisor)) : T(0);
  });
}

/// x_bar: y_bar / divisor(o), added to every real cell of window o.
template <Field T>
Tensor<T> avg_pool_vjp(const Tensor<T>& y_bar, const AvgPoolGeometry& g) {
  require_shape("avg_pool_vjp", "y_bar", y_bar, g.pool.y_shape());
  Tensor<T> x_bar(g.pool.x_shape());
  T* out = x_bar.mutable_data();
  for_each_window(g.pool, [&](Index n, Index c, Index o) {
    const Index divisor = g.divisor(o);
    if (divisor == 0) {
      return;
    }
    const T share = y_bar[g.pool.y_map().at(n, c, o)] / from_index<T>(divisor);
    for_each_cell(g.pool, n, c, o, Visit::real, [&](Index at) { out[at] = out[at] + share; });
  });
  return x_bar;
}

// --- Lp ------------------------------
//
//   dy/dx = sign(x) * (|x|/y)^(p-1), 0 at x = 0 and at an all-zero window
//
// p = 1 needs no power and so runs on every ordered field; other exponents need a scalar with
// `pow`.

/// base^exponent, exactly base or 1 for the exponents 1 and 0.
template <Field T>
T power(const T& base, const T& exponent) {
  if (exponent == T(1)) {
    return base;
  }
  if (exponent == T(0)) {
    return T(1);
  }
  if constexpr (Transcendental<T>) {
    return scalar_pow(base, exponent);
  } else {
    throw Error(ErrorCode::invalid_exponent,
                "lp_pool: this scalar has no powers\n  fix: p = 1, or a scalar with pow");
  }
}

template <Field T>
T lp_window(const Tensor<T>& x, const LpPoolGeometry& g, Index n, Index c, Index o) {
  const T p = from_double<T>(g.p);
  T sum(0);
  for_each_cell(
      g.pool, n, c, o, Visit::real, [&](Index at) { sum = sum + power(scalar_abs(x[at]), p); });
  return sum == T(0) ? sum : power(sum, T(1) / p);
}

/// dy/dx of one cell of a window with the value y.
template <Field T>
T lp_slope(const T& x, const T& y, const T& p) {
  if (x == T(0) || y == T(0)) {
    return T(0);
  }
  return sign_of(x) * power(scalar_abs(x) / y, p - T(1));
}

template <Field T>
Tensor<T> lp_pool(const Tensor<T>& x, const LpPoolGeometry& g) {
  require_shape("lp_pool", "x", x, g.pool.x_shape());
  return tensor_of_windows<T>(g.pool,
                              [&](Index n, Index c, Index o) { return lp_window(x, g, n, c, o); });
}

template <Field T>
Tensor<T> lp_pool_vjp(const Tensor<T>& x, const Tensor<T>& y_bar, const LpPoolGeometry& g) {
  require_shape("lp_pool_vjp", "x", x, g.pool.x_shape());
  require_shape("lp_pool_vjp", "y_bar", y_bar, g.pool.y_shape());
  const T p = from_double<T>(g.p);
  Tensor<T> x_bar(x.shape());
  T* out = x_bar.mutable_data();
  for_each_window(g.pool, [&](Index n, Index c, Index o) {
    const T y = lp_window(x, g, n, c, o);
    const T& seed = y_bar[g.pool.y_map().at(n, c, o)];
    for_each_cell(g.pool, n, c, o, Visit::real, [&](Index at) {
      out[at] = out[at] + seed * lp_slope(x[at], y, p);
    });
  });
  return x_bar;
}

template <Field T>
Tensor<T> lp_pool_jvp(const Tensor<T>& x, const Tensor<T>& x_dot, const LpPoolGeometry& g) {
  require_shape("lp_pool_jvp", "x", x, g.pool.x_shape());
  require_shape("lp_pool_jvp", "x_dot", x_dot, x.shape());
  const T p = from_double<T>(g.p);
  return tensor_of_windows<T>(g.pool, [&](Index n, Index c, Index o) {
    const T y = lp_window(x, g, n, c, o);
    T sum(0);
    for_each_cell(g.pool, n, c, o, Visit::real, [&](Index at) {
      sum = sum + lp_slope(x[at], y, p) * x_dot[at];
    });
    return sum;
  });
}

// --- Smooth max ------------------------------

template <Transcendental T>
SmoothWindow<T> smooth_window(
    const Tensor<T>& x, const T& beta, const SmoothMaxPoolGeometry& g, Index n, Index c, Index o) {
  SmoothWindow<T> window(beta, g.normalised);
  for_each_cell(
      g.pool, n, c, o, g.visit(), [&](Index at) { window.add(at, at >= 0 ? x[at] : T(0)); });
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
/// Its adjoint: p*u, added to the cells of a window.
template <Transcendental T>
void add_weighted(const SmoothWindow<T>& window, const T& u, T* out) {
  for (const auto& cell : window.cells()) {
    if (cell.offset >= 0) {
      out[cell.offset] = out[cell.offset] + cell.weight * u;
    }
  }
}

/// y, dy/dbeta or d^2y/dbeta^2 from x and the rank-0 tensor beta.
template <Transcendental T>
Tensor<T> smooth_max_pool(const Tensor<T>& x,
                          const Tensor<T>& beta,
                          const SmoothMaxPoolGeometry& g,
                          PoolDirection direction = PoolDirection::forward) {
  require_shape("smooth_max_pool", "x", x, g.pool.x_shape());
  require_shape("smooth_max_pool", "beta", beta, Shape{});
  return tensor_of_windows<T>(g.pool, [&](Index n, Index c, Index o) {
    const auto window = smooth_window(x, beta[0], g, n, c, o);
    return direction == PoolDirection::slope   ? window.slope()
           : direction == PoolDirection::curve ? window.curve()
                                               : window.value();
  });
}

/// S(v)[o] = sum over window o of p * v, for v of x's shape: the JVP to x, linear in v.
template <Transcendental T>
Tensor<T> smooth_mix(const Tensor<T>& x,
                     const Tensor<T>& beta,
                     const Tensor<T>& v,
                     const SmoothMaxPoolGeometry& g) {
  require_shape("smooth_mix", "v", v, x.shape());
  return tensor_of_windows<T>(g.pool, [&](Index n, Index c, Index o) {
    return weighted_sum(smooth_window(x, beta[0], g, n, c, o), v);
  });
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
    add_weighted(smooth_window(x, beta[0], g, n, c, o), u[g.pool.y_map().at(n, c, o)], out);
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
    add_weighted(window, seed, x_bar);
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
  return tensor_of_windows<T>(g.pool, [&](Index n, Index c, Index o) {
    const auto window = smooth_window(x, beta[0], g, n, c, o);
    return T(weighted_sum(window, x_dot) + beta_dot[0] * window.slope());
  });
}

// --- By options ------------------------------

template <Scalar T>
Tensor<T> max_pool(const Tensor<T>& x, const MaxPoolOptions& options) {
  return max_pool(x, max_pool_geometry(x.shape(), options));
}
template <OrderedScalar T>
Tensor<Index> max_pool_indices(const Tensor<T>& x, const MaxPoolOptions& options) {
  return max_pool_indices(x, max_pool_geometry(x.shape(), options));
}
template <Field T>
Tensor<T> avg_pool(const Tensor<T>& x, const AvgPoolOptions& options) {
  return avg_pool(x, avg_pool_geometry(x.shape(), options));
}
template <Field T>
Tensor<T> lp_pool(const Tensor<T>& x, const LpPoolOptions& options) {
  return lp_pool(x, lp_pool_geometry(x.shape(), options));
}
template <Transcendental T>
Tensor<T> smooth_max_pool(const Tensor<T>& x, const SmoothMaxPoolOptions& options) {
  return smooth_max_pool(x,
                         Tensor<T>(Shape{}, from_double<T>(options.beta)),
                         smooth_max_pool_geometry(x.shape(), options));
}
/// The VJP is that of the pool on the same geometry.
template <Scalar T>
Tensor<T> adaptive_max_pool(const Tensor<T>& x, const AdaptivePoolOptions& options) {
  return max_pool(x, adaptive_max_pool_geometry(x.shape(), options));
}
template <Field T>
Tensor<T> adaptive_avg_pool(const Tensor<T>& x, const AdaptivePoolOptions& options) {
  return avg_pool(x, adaptive_avg_pool_geometry(x.shape(), options));
}
template <OrderedScalar T>
Tensor<Index> adaptive_max_pool_indices(const Tensor<T>& x, const AdaptivePoolOptions& options) {
  return max_pool_indices(x, adaptive_max_pool_geometry(x.shape(), options));
}
/// Of each channel; the spatial axes stay, with extent 1.
template <Scalar T>
Tensor<T> global_max_pool(const Tensor<T>& x, Layout layout = Layout::channels_first) {
  return adaptive_max_pool(x, global_pool(layout));
}
template <Field T>
Tensor<T> global_avg_pool(const Tensor<T>& x, Layout layout = Layout::channels_first) {
  return adaptive_avg_pool(x, global_pool(layout));
}

}  // namespace fenestra::spec

// How the pools' primitive runs, is differentiated and batched. Compiled in the library for
// float and double; other scalars include it with <fenestra/rules.hpp>.
//
// With S(v) = mix(v) and A(u) = spread(u), by the weights of a pool at x:
//   max, average   y_dot = S(x_dot), x_bar = A(y_bar); S and A are linear, each the other's adjoint
//   Lp             y = (window sum of |x|^p)^(1/p), dy/dx = sign(x) |x|^(p-1) y^(1-p): sums over
//                  windows and their adjoint, with elementwise factors
//   smooth max     weights p = softmax(beta*x), D = dy/dbeta (slope), C = dD/dbeta (curve):
//     dy = S(dx) + dbeta*D
//     dD = S(x*dx) - S(x)*S(dx) + dbeta*C
//     dC = S(x^2*dx) - 2*S(x)*S(x*dx) + (2*S(x)^2 - S(x^2))*S(dx) + dbeta*(K - 3*C)/beta,
//          K = S(x^3) - 3*S(x^2)*S(x) + 2*S(x)^3
//     dS(v) = S(dv) + beta*(S(v*dx) - S(v)*S(dx)) + dbeta*(S(v*x) - S(v)*S(x))
//     dA(u) = A(du) + beta*(dx*A(u) - A(u*S(dx))) + dbeta*(x*A(u) - A(u*S(x)))
//   so mix, spread, slope, curve and products are enough for every order, and no weight is ever
//   stored. D and C are kernels because their formulas by mixes, (S(x) - y)/beta and so on, cancel
//   for small beta; the third derivative by beta alone is such a formula.
#pragma once

#include <fenestra/engine/batch.hpp>
#include <fenestra/engine/rules.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/pool/pool.hpp>
#include <fenestra/ops/reduce/reduce.hpp>

#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace fenestra {

// --- Values ------------------------------

namespace detail {

/// By the specification's loops.
template <class T>
void run_spec(const MaxPoolPrimitive& p,
              std::span<const Tensor<T>> in,
              std::span<const Selection> data,
              T* out,
              const SelectionBuffer& winners) {
  const ActivationMap x = p.g.pool.x_map();
  const ActivationMap y = p.g.pool.y_map();
  if (p.direction == PoolDirection::forward) {
    if (winners.indices == nullptr) {
      return store(spec::max_pool(in[0], p.g), out);
    }
    spec::max_pool_indices(in[0].data(), p.g, winners.indices);
    return spec::gather(in[0].data(), winners.indices, x, y, out);
  }
  const Tensor<Index> indices = winner_indices(data[0], p.g.pool);
  if (p.direction == PoolDirection::mix) {
    spec::gather(in[0].data(), indices.data(), x, y, out);
  } else {
    spec::scatter(in[0].data(), indices.data(), x, y, out);
  }
}
template <class T>
void run_spec(const AvgPoolPrimitive& p,
              std::span<const Tensor<T>> in,
              std::span<const Selection>,
              T* out,
              const SelectionBuffer&) {
  store(p.direction == PoolDirection::forward ? spec::avg_pool(in[0], p.g)
                                              : spec::avg_pool_vjp(in[0], p.g),
        out);
}
template <class T>
void run_spec(const LpPoolPrimitive& p,
              std::span<const Tensor<T>> in,
              std::span<const Selection>,
              T* out,
              const SelectionBuffer&) {
  store(spec::lp_pool(in[0], p.g), out);
}
template <class T>
void run_spec(const SmoothMaxPoolPrimitive& p,
              std::span<const Tensor<T>> in,
              std::span<const Selection>,
              T* out,
              const SelectionBuffer&) {
  if constexpr (Transcendental<T>) {
    store(p.direction == PoolDirection::mix ? spec::smooth_mix(in[0], in[1], in[2], p.g)
          : p.direction == PoolDirection::spread
              ? spec::smooth_spread(in[0], in[1], in[2], p.g)
              : spec::smooth_max_pool(in[0], in[1], p.g, p.direction),
          out);
  } else {
    throw Error(ErrorCode::dtype_mismatch,
                "smooth_max_pool: this scalar has no exp and log\n  fix: float or double");
  }
}

}  // namespace detail

/// Winners are kept where derivatives are asked for, as bytes where kernels can and taps are few.
template <class R>
template <class T>
SelectionType PoolPrimitive<R>::workspace() const {
  if (!kHasWinners || direction != PoolDirection::forward) {
    return {};
  }
  const bool compact = KernelScalar<T> && has_compact_winners(g.pool);
  return {compact ? SelectionForm::taps : SelectionForm::indices, g.pool.y_shape()};
}

template <class R>
template <class T>
void PoolPrimitive<R>::run(std::span<const Tensor<T>> in,
                           std::span<const Selection> data,
                           T* out,
                           const SelectionBuffer& winners) const {
  if constexpr (KernelScalar<T>) {
    // Kernels know winners as bytes only.
    if (winners.indices == nullptr && (data.empty() || data[0].is_compact())) {
      return run_with(choose_pool<T, R>({direction, g}), in, data, out, winners);
    }
  }
  detail::run_spec<T>(*this, in, data, out, winners);
}

template <class R>
template <KernelScalar T>
void PoolPrimitive<R>::run_with(const PoolKernel<T, R>& kernel,
                                std::span<const Tensor<T>> in,
                                std::span<const Selection> data,
                                T* out,
                                const SelectionBuffer& winners) const {
  if (winners.indices != nullptr) {
    return detail::run_spec<T>(*this, in, data, out, winners);
  }
  PoolArguments<T> args{.in = in[0].data(), .out = out, .winners_out = winners.taps};
  if constexpr (kHasBeta) {
    args.beta = in[1][0];
    args.v = in.size() > 2 ? in[2].data() : nullptr;
  }
  if (!data.empty()) {
    args.winners_in = data[0].taps().data();
  }
  run_pool<T, R>(kernel, {direction, g}, args);
}

/// Without a kernel where it would have to read winners that are no bytes.
template <class R>
template <KernelScalar T>
std::unique_ptr<const graph::Kernel> PoolPrimitive<R>::prepare() const {
  const bool reads_winners = kHasWinners && direction != PoolDirection::forward;
  const PoolKernel<T, R>* const candidate =
      reads_winners && !has_compact_winners(g.pool) ? nullptr : &choose_pool<T, R>({direction, g});
  return std::unique_ptr<const graph::Kernel>(
      new WithKernel<PoolPrimitive, T, PoolKernel<T, R>>(*this, candidate));
}

// --- Derivatives ------------------------------

namespace detail {

/// Max and average: another map of the pool, by the same winners where it has them.
template <class R, class V>
V linear_map(const PoolPrimitive<R>& p, PoolDirection to, const Saved<V>& saved, const V& v) {
  const PoolPrimitive<R> map{{}, to, p.g};
  if constexpr (PoolPrimitive<R>::kHasWinners) {
    return apply(
        map, {v}, {p.direction == PoolDirection::forward ? saved.workspace : saved.data[0]});
  } else {
    return apply(map, {v});
  }
}
template <class R, class V>
  requires(std::same_as<R, MaxReduction> || std::same_as<R, AverageReduction>)
V pool_vjp(const PoolPrimitive<R>& p, int, const Saved<V>& saved, const V& bar) {
  const PoolDirection mix =
      PoolPrimitive<R>::kHasWinners ? PoolDirection::mix : PoolDirection::forward;
  return linear_map(
      p, p.direction == PoolDirection::spread ? mix : PoolDirection::spread, saved, bar);
}
template <class R, class V>
  requires(std::same_as<R, MaxReduction> || std::same_as<R, AverageReduction>)
std::optional<V> pool_jvp(const PoolPrimitive<R>& p,
                          const Saved<V>& saved,
                          std::span<const std::optional<V>> dots) {
  const bool at_winners = PoolPrimitive<R>::kHasWinners && p.direction == PoolDirection::forward;
  return linear_map(p, at_winners ? PoolDirection::mix : p.direction, saved, *dots[0]);
}

/// Lp. Gates keep the derivative 0 at x = 0 and at all-zero windows, where the powers alone would
/// be infinite.
inline constexpr GateCall kPositive{.low = 0, .high = std::numeric_limits<double>::infinity()};

/// v, and 1 where v = 0: a derivative of the gated product multiplies the power by 0, which must
/// not be infinite then.
template <class V>
V or_one(const V& v) {
  const V one = scalar_constant<V>(ScalarOf<V>(1));
  return add(v, sub(one, gate(kPositive, broadcast_to(one, v.shape()), v)));
}
/// u * sign(x) |x|^(p-1), 0 at x = 0.
template <class V>
V lp_inner(double p, const V& x, const V& u) {
  if (p == 1) {
    return mul(u, sign(x));
  }
  if (p == 2) {
    return mul(u, x);
  }
  return gate(kPositive, mul(u, mul(sign(x), power(or_one(abs(x)), p - 1))), abs(x));
}
/// u * y^(1-p), 0 at y = 0.
template <class V>
V lp_outer(double p, const V& y, const V& u) {
  if (p == 1) {
    return u;
  }
  return gate(kPositive, mul(u, power(or_one(y), 1 - p)), y);
}
template <class V>
V pool_vjp(const LpPoolPrimitive& p, int, const Saved<V>& s, const V& y_bar) {
  return lp_inner(p.g.p, s[0], window_spread(lp_outer(p.g.p, *s.y, y_bar), p.g.pool));
}
template <class V>
std::optional<V> pool_jvp(const LpPoolPrimitive& p,
                          const Saved<V>& s,
                          std::span<const std::optional<V>> dots) {
  return lp_outer(p.g.p, *s.y, window_sum(lp_inner(p.g.p, s[0], *dots[0]), p.g.pool));
}

/// The maps of smooth max at x and beta.
template <class V>
struct SmoothMaps {
  const SmoothMaxPoolGeometry& g;
  const V& x;
  const V& beta;

  V mix(const V& v) const {
    return apply(SmoothMaxPoolPrimitive{{}, PoolDirection::mix, g}, {x, beta, v});
  }
  V spread(const V& u) const {
    return apply(SmoothMaxPoolPrimitive{{}, PoolDirection::spread, g}, {x, beta, u});
  }
  V slope() const { return apply(SmoothMaxPoolPrimitive{{}, PoolDirection::slope, g}, {x, beta}); }
  V curve() const { return apply(SmoothMaxPoolPrimitive{{}, PoolDirection::curve, g}, {x, beta}); }
  /// d^3y/dbeta^3
  V third() const {
    const V mean = mix(x);
    const V square = mul(x, x);
    const V cumulant = add(sub(mix(mul(square, x)), scale(mul(mix(square), mean), 3)),
                           scale(mul(mean, mul(mean, mean)), 2));
    return div(sub(cumulant, scale(curve(), 3)), beta);
  }
  /// The derivative by beta of a map that is not linear.
  V by_beta(PoolDirection direction) const {
    return direction == PoolDirection::forward ? slope()
           : direction == PoolDirection::slope ? curve()
                                               : third();
  }
};

template <class V>
V pool_vjp(const SmoothMaxPoolPrimitive& p, int i, const Saved<V>& s, const V& bar) {
  const V& x = s[0];
  const V& beta = s[1];
  const SmoothMaps<V> m{p.g, x, beta};
  switch (p.direction) {
    case PoolDirection::forward:
      return i == 0 ? m.spread(bar) : sum(mul(bar, m.by_beta(p.direction)));
    case PoolDirection::slope:
      if (i == 1) {
        return sum(mul(bar, m.by_beta(p.direction)));
      }
      return sub(mul(x, m.spread(bar)), m.spread(mul(bar, m.mix(x))));
    case PoolDirection::curve: {
      if (i == 1) {
        return sum(mul(bar, m.by_beta(p.direction)));
      }
      const V mean = m.mix(x);
      const V rest = sub(scale(mul(mean, mean), 2), m.mix(mul(x, x)));
      return add(sub(mul(mul(x, x), m.spread(bar)), mul(scale(x, 2), m.spread(mul(bar, mean)))),
                 m.spread(mul(bar, rest)));
    }
    case PoolDirection::mix: {
      const V& v = s[2];
      if (i == 2) {
        return m.spread(bar);
      }
      if (i == 0) {
        return mul(beta, sub(mul(v, m.spread(bar)), m.spread(mul(bar, m.mix(v)))));
      }
      return sum(mul(bar, sub(m.mix(mul(v, x)), mul(m.mix(v), m.mix(x)))));
    }
    case PoolDirection::spread: {
      const V& u = s[2];
      if (i == 2) {
        return m.mix(bar);
      }
      if (i == 0) {
        return mul(beta, sub(mul(bar, m.spread(u)), m.spread(mul(u, m.mix(bar)))));
      }
      return sum(mul(bar, sub(mul(x, m.spread(u)), m.spread(mul(u, m.mix(x))))));
    }
  }
  return bar;
}

/// The derivative of a map at x, by x along v.
template <class V>
V smooth_along(const SmoothMaps<V>& m, PoolDirection direction, const Saved<V>& s, const V& v) {
  const V& x = m.x;
  switch (direction) {
    case PoolDirection::forward: return m.mix(v);
    case PoolDirection::slope: return sub(m.mix(mul(x, v)), mul(m.mix(x), m.mix(v)));
    case PoolDirection::curve: {
      const V mean = m.mix(x);
      const V rest = sub(scale(mul(mean, mean), 2), m.mix(mul(x, x)));
      return add(sub(m.mix(mul(mul(x, x), v)), mul(scale(mean, 2), m.mix(mul(x, v)))),
                 mul(rest, m.mix(v)));
    }
    case PoolDirection::mix:
      return mul(m.beta, sub(m.mix(mul(s[2], v)), mul(m.mix(s[2]), m.mix(v))));
    case PoolDirection::spread:
      return mul(m.beta, sub(mul(v, m.spread(s[2])), m.spread(mul(s[2], m.mix(v)))));
  }
  return v;
}
template <class V>
std::optional<V> pool_jvp(const SmoothMaxPoolPrimitive& p,
                          const Saved<V>& s,
                          std::span<const std::optional<V>> dots) {
  const V& x = s[0];
  const SmoothMaps<V> m{p.g, x, s[1]};
  const bool mixes = p.direction == PoolDirection::mix;
  const bool linear = mixes || p.direction == PoolDirection::spread;
  OptionalSum<V> total;
  if (linear && dots[2]) {
    total.add_term(mixes ? m.mix(*dots[2]) : m.spread(*dots[2]));
  }
  if (dots[0]) {
    total.add_term(smooth_along(m, p.direction, s, *dots[0]));
  }
  if (dots[1]) {
    // Of a linear map by beta: the same as along x, without the factor beta.
    const V by_beta = mixes    ? sub(m.mix(mul(s[2], x)), mul(m.mix(s[2]), m.mix(x)))
                      : linear ? sub(mul(x, m.spread(s[2])), m.spread(mul(s[2], m.mix(x))))
                               : m.by_beta(p.direction);
    total.add_term(mul(*dots[1], by_beta));
  }
  return total.take();
}

}  // namespace detail

template <class R>
template <class V>
V PoolPrimitive<R>::vjp(int i, const Saved<V>& saved, const V& bar) const {
  return detail::pool_vjp(*this, i, saved, bar);
}
template <class R>
template <class V>
std::optional<V> PoolPrimitive<R>::jvp(const Saved<V>& saved,
                                       std::span<const std::optional<V>> dots) const {
  return detail::pool_jvp(*this, saved, dots);
}

// --- Batches ------------------------------

/// The hidden axis joins the batch, the windows stay as they are.
template <class R>
template <class V>
Applied<V> PoolPrimitive<R>::batched(const BatchCall<V>& call) const {
  // One pool's winners for many values, or a sharpness per item: unusual.
  if ((!call.data.empty() && call.data[0].count == 0) ||
      (PoolPrimitive<R>::kHasBeta && call.is_stacked(1))) {
    return apply_item_by_item(*this, call);
  }
  PoolPrimitive<R> wide = *this;
  wide.g.pool.batched = true;
  wide.g.pool.batch *= call.count;
  const auto folded = [&](std::size_t i, bool of_y) {
    return reshape(call.stacked(i), of_y ? wide.g.pool.y_shape() : wide.g.pool.x_shape());
  };
  const bool spreads = direction == PoolDirection::spread;
  std::vector<V> in{folded(0, spreads && !PoolPrimitive<R>::kHasBeta)};
  if constexpr (PoolPrimitive<R>::kHasBeta) {
    in.push_back(call.in[1].value());
    if (call.in.size() > 2) {
      in.push_back(folded(2, spreads));
    }
  }
  std::vector<IndicesOf<V>> data;
  if (!call.data.empty()) {
    data.push_back(call.data[0].indices);
  }
  Applied<V> result =
      apply_all(wide, std::span<const V>(in), std::span<const IndicesOf<V>>(data), call.keep);
  return {reshape(result.y, with_front(call.count, result_shape({}))), std::move(result.workspace)};
}

}  // namespace fenestra

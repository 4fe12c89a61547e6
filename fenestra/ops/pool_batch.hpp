// The pools on batches: the hidden axis joins the batch, the windows stay as they are.
#pragma once

#include <fenestra/engine/batch.hpp>
#include <fenestra/ops/avg_pool/avg_pool.hpp>
#include <fenestra/ops/lp_pool/lp_pool.hpp>
#include <fenestra/ops/max_pool/max_pool.hpp>
#include <fenestra/ops/smooth_max_pool/smooth_max_pool.hpp>

namespace fenestra {

namespace detail {

constexpr PoolGeometry fold_batch(PoolGeometry g, Index count) {
  g.batched = true;
  g.batch *= count;
  return g;
}

/// Runs `p`, whose geometry was folded, on input 0 and unfolds the result to items of `item`.
template <class P, AnyValue V>
Applied<V> apply_folded(const P& p,
                        const BatchCall<V>& call,
                        const Shape& in,
                        const Shape& item,
                        std::vector<IndicesOf<V>> data = {}) {
  const V folded = reshape(call.stacked(0), in);
  Applied<V> result =
      apply_all(p, std::span<const V>(&folded, 1), std::span<const IndicesOf<V>>(data), call.keep);
  return {reshape(result.y, with_front(call.count, item)), std::move(result.workspace)};
}

}  // namespace detail

template <AnyValue V>
Applied<V> apply_batched(const AvgPoolPrimitive& p, const BatchCall<V>& call) {
  AvgPoolPrimitive wide = p;
  wide.g.pool = detail::fold_batch(p.g.pool, call.count);
  const bool forward = p.direction == AvgPoolDirection::forward;
  return detail::apply_folded(wide,
                              call,
                              forward ? wide.g.pool.x_shape() : wide.g.pool.y_shape(),
                              forward ? p.g.pool.y_shape() : p.g.pool.x_shape());
}

template <AnyValue V>
Applied<V> apply_batched(const MaxPoolPrimitive& p, const BatchCall<V>& call) {
  MaxPoolPrimitive wide = p;
  wide.g.pool = detail::fold_batch(p.g.pool, call.count);
  return detail::apply_folded(wide, call, wide.g.pool.x_shape(), p.g.pool.y_shape());
}

template <AnyValue V>
Applied<V> apply_batched(const MaxPoolWinnersPrimitive& p, const BatchCall<V>& call) {
  if (call.data[0].count == 0) {
    return apply_item_by_item(p, call);  // one pool's winners for many values: unusual
  }
  MaxPoolWinnersPrimitive wide = p;
  wide.g.pool = detail::fold_batch(p.g.pool, call.count);
  const bool gathers = p.direction == MaxPoolDirection::gather;
  return detail::apply_folded(wide,
                              call,
                              gathers ? wide.g.pool.x_shape() : wide.g.pool.y_shape(),
                              gathers ? p.g.pool.y_shape() : p.g.pool.x_shape(),
                              {call.data[0].indices});
}

template <AnyValue V>
Applied<V> apply_batched(const LpPoolPrimitive& p, const BatchCall<V>& call) {
  LpPoolPrimitive wide = p;
  wide.g.pool = detail::fold_batch(p.g.pool, call.count);
  return detail::apply_folded(wide, call, wide.g.pool.x_shape(), p.g.pool.y_shape());
}

template <AnyValue V>
Applied<V> apply_batched(const SmoothMaxPoolPrimitive& p, const BatchCall<V>& call) {
  if (call.is_stacked(1)) {
    return apply_item_by_item(p, call);  // a sharpness per item
  }
  SmoothMaxPoolPrimitive wide = p;
  wide.g.pool = detail::fold_batch(p.g.pool, call.count);
  const V x = reshape(call.stacked(0), wide.g.pool.x_shape());
  const V& beta = call.in[1].value();
  const Shape item =
      p.direction == SmoothDirection::spread ? p.g.pool.x_shape() : p.g.pool.y_shape();
  if (!is_linear(p.direction)) {
    return {reshape(apply(wide, {x, beta}), with_front(call.count, item)), {}};
  }
  const Shape linear =
      p.direction == SmoothDirection::mix ? wide.g.pool.x_shape() : wide.g.pool.y_shape();
  return {reshape(apply(wide, {x, beta, reshape(call.stacked(2), linear)}),
                  with_front(call.count, item)),
          {}};
}

}  // namespace fenestra

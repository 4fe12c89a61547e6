// The elementwise family, sums, expansions and reshapes on batches: the hidden axis is one more
// leading axis.
#pragma once

#include <fenestra/engine/batch.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/reduce/primitives.hpp>
#include <fenestra/ops/reshape/reshape.hpp>

namespace fenestra {

template <AnyValue V>
Applied<V> apply_batched(const UnaryPrimitive& p, const BatchCall<V>& call) {
  return {apply(p, call.stacked(0)), {}};
}

template <AnyValue V>
Applied<V> apply_batched(const GatePrimitive& p, const BatchCall<V>& call) {
  return {apply(p, {call.stacked(0), call.stacked(1)}), {}};
}

template <AnyValue V>
Applied<V> apply_batched(const BinaryPrimitive& p, const BatchCall<V>& call) {
  const int rank = p.shape.rank();
  return {broadcast_to(binary(p.f, call.aligned(0, rank), call.aligned(1, rank)),
                       with_front(call.count, p.shape)),
          {}};
}

template <AnyValue V>
Applied<V> apply_batched(const WinnerGatePrimitive& p, const BatchCall<V>& call) {
  const int rank = call.in[0].shape().rank();
  return {apply(p, {call.stacked(0), call.aligned(1, rank), call.aligned(2, rank)}), {}};
}

namespace detail {

/// `shape` with ones in front up to `rank` axes, behind the hidden axis.
inline Shape padded_front(Index count, const Shape& shape, int rank) {
  Shape result{count};
  for (int axis = shape.rank(); axis < rank; ++axis) {
    result.push_back(1);
  }
  for (const Index extent : shape) {
    result.push_back(extent);
  }
  return result;
}

}  // namespace detail

template <AnyValue V>
Applied<V> apply_batched(const SumToPrimitive& p, const BatchCall<V>& call) {
  const V sum = sum_to(call.stacked(0), detail::padded_front(call.count, p.to, p.from.rank()));
  return {reshape(sum, with_front(call.count, p.to)), {}};
}

template <AnyValue V>
Applied<V> apply_batched(const BroadcastToPrimitive& p, const BatchCall<V>& call) {
  const V aligned = reshape(call.stacked(0), detail::padded_front(call.count, p.from, p.to.rank()));
  return {broadcast_to(aligned, with_front(call.count, p.to)), {}};
}

template <AnyValue V>
Applied<V> apply_batched(const ReshapePrimitive& p, const BatchCall<V>& call) {
  return {reshape(call.stacked(0), with_front(call.count, p.to)), {}};
}

}  // namespace fenestra

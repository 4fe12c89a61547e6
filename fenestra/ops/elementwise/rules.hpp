// The elementwise functions, sums and expansions on batches: the hidden axis is one more leading
// axis.
#pragma once

#include <fenestra/engine/batch.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/elementwise/sum_to.hpp>
#include <fenestra/ops/reshape/reshape.hpp>

namespace fenestra {

template <class V>
Applied<V> UnaryPrimitive::batched(const BatchCall<V>& items) const {
  return {apply(*this, items.stacked(0)), {}};
}

template <class V>
Applied<V> GatePrimitive::batched(const BatchCall<V>& items) const {
  return {apply(*this, {items.stacked(0), items.stacked(1)}), {}};
}

template <class V>
Applied<V> BinaryPrimitive::batched(const BatchCall<V>& call) const {
  const int rank = shape.rank();
  return {broadcast_to(binary(f, call.aligned(0, rank), call.aligned(1, rank)),
                       with_front(call.count, shape)),
          {}};
}

template <class V>
Applied<V> WinnerGatePrimitive::batched(const BatchCall<V>& call) const {
  const int rank = call.in[0].shape().rank();
  return {apply(*this, {call.stacked(0), call.aligned(1, rank), call.aligned(2, rank)}), {}};
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

template <class V>
Applied<V> SumToPrimitive::batched(const BatchCall<V>& call) const {
  const V sum = sum_to(call.stacked(0), detail::padded_front(call.count, to, from.rank()));
  return {reshape(sum, with_front(call.count, to)), {}};
}

template <class V>
Applied<V> BroadcastToPrimitive::batched(const BatchCall<V>& call) const {
  const V aligned = reshape(call.stacked(0), detail::padded_front(call.count, from, to.rank()));
  return {broadcast_to(aligned, with_front(call.count, to)), {}};
}

}  // namespace fenestra

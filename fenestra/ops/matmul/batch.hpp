// Matrix products on batches: the hidden axis is one more leading axis of the stack of matrices.
#pragma once

#include <fenestra/engine/batch.hpp>
#include <fenestra/ops/matmul/matmul.hpp>

namespace fenestra {

template <AnyValue V>
Applied<V> apply_batched(const MatMulPrimitive& p, const BatchCall<V>& call) {
  const int rank = p.g.y.rank();
  const V y = matmul_matrices(call.aligned(0, rank), call.aligned(1, rank), p.g.options);
  const Shape shape = with_front(call.count, p.g.y);
  if (!p.g.has_bias) {
    return {broadcast_to(y, shape), {}};
  }
  return {broadcast_to(add(y, call.aligned(2, rank)), shape), {}};
}

}  // namespace fenestra

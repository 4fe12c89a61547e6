// Matrix products on batches: the hidden axis is one more leading axis of the stack of matrices.
// And sums of products by letters, which are made of them.
#pragma once

#include <fenestra/engine/batch.hpp>
#include <fenestra/ops/matmul/einsum.hpp>
#include <fenestra/ops/matmul/matmul.hpp>

namespace fenestra {

template <class V>
Applied<V> MatMulPrimitive::batched(const BatchCall<V>& call) const {
  const int rank = g.y.rank();
  const V y = matmul_matrices(call.aligned(0, rank), call.aligned(1, rank), g.options);
  const Shape shape = with_front(call.count, g.y);
  if (!g.has_bias) {
    return {broadcast_to(y, shape), {}};
  }
  return {broadcast_to(add(y, call.aligned(2, rank)), shape), {}};
}

}  // namespace fenestra

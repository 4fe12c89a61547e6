// where on batches: the hidden axis is one more leading axis.
#pragma once

#include <fenestra/engine/batch.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/ops/where/where.hpp>

namespace fenestra {

template <AnyValue V>
Applied<V> apply_batched(const WherePrimitive& p, const BatchCall<V>& call) {
  const int rank = p.shape.rank();
  return {broadcast_to(where(call.aligned(0, rank), call.aligned(1, rank), call.aligned(2, rank)),
                       with_front(call.count, p.shape)),
          {}};
}

}  // namespace fenestra

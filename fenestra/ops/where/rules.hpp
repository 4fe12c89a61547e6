// where on batches: the hidden axis is one more leading axis.
#pragma once

#include <fenestra/engine/batch.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/ops/where/where.hpp>

namespace fenestra {

template <class V>
Applied<V> WherePrimitive::batched(const BatchCall<V>& call) const {
  const int rank = shape.rank();
  return {broadcast_to(where(call.aligned(0, rank), call.aligned(1, rank), call.aligned(2, rank)),
                       with_front(call.count, shape)),
          {}};
}

}  // namespace fenestra

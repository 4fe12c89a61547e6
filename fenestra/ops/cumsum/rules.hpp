// Running sums on batches: the hidden axis is one more leading axis.
#pragma once

#include <fenestra/engine/batch.hpp>
#include <fenestra/ops/cumsum/cumsum.hpp>

namespace fenestra {

template <class V>
Applied<V> CumsumPrimitive::batched(const BatchCall<V>& call) const {
  return {cumsum(call.stacked(0), axis + 1, reverse), {}};
}

}  // namespace fenestra

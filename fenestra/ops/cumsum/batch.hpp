// Running sums on batches: the hidden axis is one more leading axis.
#pragma once

#include <fenestra/engine/batch.hpp>
#include <fenestra/ops/cumsum/cumsum.hpp>

namespace fenestra {

template <AnyValue V>
Applied<V> apply_batched(const CumsumPrimitive& p, const BatchCall<V>& call) {
  return {cumsum(call.stacked(0), p.axis + 1, p.reverse), {}};
}

}  // namespace fenestra

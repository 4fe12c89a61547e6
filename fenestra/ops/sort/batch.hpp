// Sorting on batches: the hidden axis is one more leading axis, and cells count from the first
// item.
#pragma once

#include <fenestra/engine/batch.hpp>
#include <fenestra/ops/sort/sort.hpp>

namespace fenestra {

template <AnyValue V>
Applied<V> apply_batched(const SortPrimitive& p, const BatchCall<V>& call) {
  const V x = call.stacked(0);
  return apply_all(SortPrimitive{x.shape(), p.axis + 1, p.count, p.descending},
                   std::span<const V>(&x, 1),
                   std::span<const IndicesOf<V>>(),
                   call.keep);
}

}  // namespace fenestra

// Sorting on batches: the hidden axis is one more leading axis, and cells count from the first
// item.
#pragma once

#include <fenestra/engine/batch.hpp>
#include <fenestra/ops/sort/sort.hpp>

namespace fenestra {

template <class V>
Applied<V> SortPrimitive::batched(const BatchCall<V>& call) const {
  const V stacked = call.stacked(0);
  return apply_all(SortPrimitive{{}, stacked.shape(), axis + 1, count, descending},
                   std::span<const V>(&stacked, 1),
                   std::span<const IndicesOf<V>>(),
                   call.keep);
}

}  // namespace fenestra

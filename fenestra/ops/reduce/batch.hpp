// Selections on batches: the hidden axis is one more leading axis. Cells of a batch count from its
// first item: those of item i begin at i times the size of an item.
#pragma once

#include <fenestra/engine/batch.hpp>
#include <fenestra/ops/reduce/select.hpp>

namespace fenestra {

namespace detail {

template <AnyValue V>
IndicesOf<V> cells_of_batch(const BatchCall<V>& call, const Shape& cells, const Shape& into) {
  const auto& data = call.data[0];
  return data.count > 0
             ? data.indices
             : repeated_cells(data.indices, call.count, into.elements().value_or(0), cells);
}

}  // namespace detail

template <AnyValue V>
Applied<V> apply_batched(const TakePrimitive& p, const BatchCall<V>& call) {
  return {take(call.stacked(0),
               detail::cells_of_batch(call, p.to, p.from),
               with_front(call.count, p.to)),
          {}};
}

template <AnyValue V>
Applied<V> apply_batched(const PlacePrimitive& p, const BatchCall<V>& call) {
  return {place(call.stacked(0),
                detail::cells_of_batch(call, p.from, p.to),
                with_front(call.count, p.to)),
          {}};
}

template <AnyValue V>
Applied<V> apply_batched(const MaxToPrimitive& p, const BatchCall<V>& call) {
  const V x = call.stacked(0);
  return apply_all(MaxToPrimitive{x.shape(), with_front(call.count, p.to)},
                   std::span<const V>(&x, 1),
                   std::span<const IndicesOf<V>>(),
                   call.keep);
}

}  // namespace fenestra

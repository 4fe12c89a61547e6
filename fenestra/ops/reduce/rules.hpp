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

template <class V>
Applied<V> TakePrimitive::batched(const BatchCall<V>& call) const {
  return {take(call.stacked(0), detail::cells_of_batch(call, to, from), with_front(call.count, to)),
          {}};
}

template <class V>
Applied<V> PlacePrimitive::batched(const BatchCall<V>& call) const {
  return {
      place(call.stacked(0), detail::cells_of_batch(call, from, to), with_front(call.count, to)),
      {}};
}

template <class V>
Applied<V> MaxToPrimitive::batched(const BatchCall<V>& call) const {
  const V x = call.stacked(0);
  return apply_all(MaxToPrimitive{{}, x.shape(), with_front(call.count, to)},
                   std::span<const V>(&x, 1),
                   std::span<const IndicesOf<V>>(),
                   call.keep);
}

}  // namespace fenestra

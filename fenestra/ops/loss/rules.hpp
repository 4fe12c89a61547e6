// Cross entropy on batches: the hidden axis joins the batch of logits, or becomes it.
#pragma once

#include <fenestra/engine/batch.hpp>
#include <fenestra/ops/loss/loss.hpp>

namespace fenestra {

namespace detail {

/// Logits of all items as one tensor with a batch axis: (items * N, C, ...), or (items, C) for
/// items (C,).
inline Shape folded_logits(const Shape& item, Index count) {
  Shape shape = item.rank() == 1 ? with_front(count, item) : item;
  if (item.rank() > 1) {
    shape[0] *= count;
  }
  return shape;
}

/// The folded logits of items x, after checking the shape of all their labels.
inline Shape require_labels_of_items(const Shape& x, Index count, const Shape& labels) {
  const Shape needed = with_front(count, without_classes(x));
  if (labels != needed) {
    throw Error("cross_entropy",
                {.code = ErrorCode::shape_mismatch, .argument = Argument::labels},
                "cross_entropy: x = " + to_string(x) + " for each of " + std::to_string(count) +
                    " items, labels = " + to_string(labels) + "\n  fix: labels of shape " +
                    to_string(needed));
  }
  return folded_logits(x, count);
}

}  // namespace detail

template <class V>
Applied<V> CrossEntropyPrimitive::batched(const BatchCall<V>& call) const {
  if (call.data[0].count == 0) {
    return apply_item_by_item(*this, call);  // the same labels for different logits
  }
  const Shape folded = detail::folded_logits(x, call.count);
  const V loss = apply(CrossEntropyPrimitive{{}, folded},
                       {reshape(call.stacked(0), folded)},
                       {call.data[0].indices});
  return {reshape(loss, with_front(call.count, detail::without_classes(x))), {}};
}

template <class V>
Applied<V> CrossEntropyGradPrimitive::batched(const BatchCall<V>& call) const {
  if (call.data[0].count == 0) {
    return apply_item_by_item(*this, call);
  }
  const Shape folded = detail::folded_logits(x, call.count);
  const V x_bar = apply(
      CrossEntropyGradPrimitive{{}, folded},
      {reshape(call.stacked(0), folded), reshape(call.stacked(1), detail::without_classes(folded))},
      {call.data[0].indices});
  return {reshape(x_bar, with_front(call.count, x)), {}};
}

}  // namespace fenestra

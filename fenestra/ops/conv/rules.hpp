// The convolution family on batches. Where only activations differ between items, the hidden axis
// joins the batch; where weights differ too, it joins the groups: one grouped convolution computes
// every item's.
#pragma once

#include <fenestra/engine/batch.hpp>
#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/transpose/transpose.hpp>

#include <vector>

namespace fenestra {

namespace detail {

/// Between (items, [batch], ...) and a tensor whose channel axis holds items * channels, items
/// slower.
struct ChannelFolding {
  bool is_weight = false;
  bool batched = false;  ///< the item has a batch axis
  Layout layout = Layout::channels_first;
  Shape item;

  /// Where the hidden axis goes in the item's axes: in front of the channels that groups divide.
  int place() const {
    if (layout == Layout::channels_last) {
      return item.rank() - 1;
    }
    return !is_weight && batched ? 1 : 0;
  }
  template <AnyValue V>
  V fold(const V& stacked) const {
    std::vector<int> order;
    Shape folded;
    for (int axis = 0; axis < item.rank(); ++axis) {
      if (axis == place()) {
        order.push_back(0);
      }
      order.push_back(axis + 1);
      folded.push_back(axis == place() ? item[axis] * stacked.shape()[0] : item[axis]);
    }
    return reshape(transpose(stacked, order), folded);
  }
  template <AnyValue V>
  V unfold(const V& folded, Index count) const {
    std::vector<int> order{place()};
    Shape split;
    for (int axis = 0; axis < item.rank(); ++axis) {
      if (axis == place()) {
        split.push_back(count);
      }
      split.push_back(item[axis]);
    }
    for (int axis = 0; axis < split.rank(); ++axis) {
      if (axis != place()) {
        order.push_back(axis);
      }
    }
    return transpose(reshape(folded, split), order);
  }
};

}  // namespace detail

template <class V>
Applied<V> ConvPrimitive::batched(const BatchCall<V>& call) const {
  const bool to_weight = direction == ConvDirection::weight_grad;
  const Shape result = with_front(call.count, shape());
  if (!to_weight && !call.is_stacked(1) && !(has_bias && call.is_stacked(2))) {
    ConvPrimitive wide = *this;
    wide.g.batched = true;
    wide.g.batch = call.count * g.batch;
    const Shape x = direction == ConvDirection::forward ? wide.g.x_shape() : wide.g.y_shape();
    const V folded = reshape(call.stacked(0), x);
    const V y = has_bias ? apply(wide, {folded, call.in[1].value(), call.in[2].value()})
                         : apply(wide, {folded, call.in[1].value()});
    return {reshape(y, result), {}};
  }
  ConvPrimitive wide = *this;
  wide.g.groups = call.count * g.groups;
  wide.g.in_channels = call.count * g.in_channels;
  wide.g.out_channels = call.count * g.out_channels;
  const auto folding = [&](const Shape& item, bool is_weight) {
    return detail::ChannelFolding{is_weight, g.batched, g.layout, item};
  };
  const V lhs = folding(call.in[0].shape(), false).fold(call.stacked(0));
  const V rhs = folding(call.in[1].shape(), !to_weight).fold(call.stacked(1));
  V out =
      has_bias
          ? apply(wide, {lhs, rhs, reshape(call.stacked(2), Shape{call.count * bias_channels()})})
          : apply(wide, {lhs, rhs});
  return {folding(shape(), to_weight).unfold(out, call.count), {}};
}

}  // namespace fenestra

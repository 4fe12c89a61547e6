// Reshapes on batches: the hidden axis stays in front.
#pragma once

#include <fenestra/engine/batch.hpp>
#include <fenestra/ops/reshape/reshape.hpp>

namespace fenestra {

template <class V>
Applied<V> ReshapePrimitive::batched(const BatchCall<V>& call) const {
  return {reshape(call.stacked(0), with_front(call.count, to)), {}};
}

}  // namespace fenestra

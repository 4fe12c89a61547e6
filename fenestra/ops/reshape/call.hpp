// Reshaping, for those who call it; derivatives and other scalars: reshape.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/spec/options.hpp>

namespace fenestra {

/// The same elements under another shape. One extent may be -1: it is what the others leave.
template <CompiledValue V>
FENESTRA_API V reshape(const V& x, const Shape& shape);
/// The axes from `first` to `last` as one; a scalar becomes a vector of one element.
template <CompiledValue V>
FENESTRA_API V flatten(const V& x, int first = 0, int last = -1);
/// x without the named axes, which have one element each; without all such axes where none is
/// named.
template <CompiledValue V>
FENESTRA_API V squeeze(const V& x, const AxisList& axes = {});
/// x with a new axis of one element, at `axis` of the result.
template <CompiledValue V>
FENESTRA_API V unsqueeze(const V& x, int axis);

}  // namespace fenestra

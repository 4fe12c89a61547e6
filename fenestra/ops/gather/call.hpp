// Elements and slices by integers, for those who call for them; derivatives and other scalars:
// gather.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>

namespace fenestra {

/// One element of x for each index, which has x's shape but for the axis.
template <CompiledValue V>
FENESTRA_API V gather(const V& x, const IndicesOf<V>& indices, int axis);
/// One slice of x for each index; the axes of the indices stand where the axis was.
template <CompiledValue V>
FENESTRA_API V take(const V& x, const IndicesOf<V>& indices, int axis);

}  // namespace fenestra

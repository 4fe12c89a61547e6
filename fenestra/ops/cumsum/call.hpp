// Running sums, for those who call them; derivatives and other scalars: cumsum.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>

namespace fenestra {

/// The sums of x up to each element of an axis, or from it on; a negative axis counts from the
/// last.
template <CompiledValue V>
FENESTRA_API V cumsum(const V& x, int axis, bool reverse = false);

}  // namespace fenestra

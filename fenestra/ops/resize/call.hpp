// Resizing, for those who call it; derivatives and other scalars: resize.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/ops/resize/options.hpp>

namespace fenestra {

/// x with its spatial axes resized.
template <CompiledValue V>
FENESTRA_API V resize(const V& x, const ResizeOptions& options);
/// The adjoint of resize on x of `shape`.
template <CompiledValue V>
FENESTRA_API V resize_adjoint(const V& y_bar, const Shape& shape, const ResizeOptions& options);

}  // namespace fenestra

// Slicing, for those who call it; derivatives and other scalars: slice.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/ops/slice/options.hpp>

#include <initializer_list>
#include <span>
#include <vector>

namespace fenestra {

/// The cells that `ranges` name, at most one range per axis; axes without one stay whole.
template <CompiledValue V>
FENESTRA_API V slice(const V& x, std::span<const AxisRange> ranges);
template <AnyValue V>
constexpr V slice(const V& x, std::initializer_list<AxisRange> ranges) {
  return slice(x, std::span<const AxisRange>(ranges.begin(), ranges.size()));
}
/// `count` cells of one axis.
template <AnyValue V>
constexpr V slice(const V& x, int axis, Index begin, Index count, Index step = 1) {
  return slice(x, {AxisRange{axis, begin, count, step}});
}

/// Zeros of `shape` with u in the region that `ranges` name. The adjoint of `slice` on x of that
/// shape.
template <CompiledValue V>
FENESTRA_API V slice_adjoint(const V& u, const Shape& shape, std::span<const AxisRange> ranges);
template <AnyValue V>
constexpr V slice_adjoint(const V& u, const Shape& shape, std::initializer_list<AxisRange> ranges) {
  return slice_adjoint(u, shape, std::span<const AxisRange>(ranges.begin(), ranges.size()));
}

/// x cut along an axis.
template <CompiledValue V>
FENESTRA_API std::vector<V> split(const V& x, const SplitParts& parts, int axis = 0);

}  // namespace fenestra

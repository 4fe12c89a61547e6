// Concatenating, for those who call it; derivatives and other scalars: concat.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>

#include <initializer_list>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

namespace fenestra {

inline namespace generic {
template <AnyValue V>
constexpr V concat(std::span<const V> parts, int axis);
template <AnyValue V>
constexpr V stack(std::span<const V> parts, int axis = 0);
}  // namespace generic

/// The parts one after another along `axis`; equal extents on all others. A negative axis counts
/// from the last.
template <CompiledValue V>
FENESTRA_API V concat(std::span<const V> parts, int axis);
template <AnyValue V>
constexpr V concat(const std::vector<V>& parts, int axis) {
  return concat(std::span<const V>(parts), axis);
}
template <AnyValue V>
constexpr V concat(std::initializer_list<V> parts, int axis) {
  return concat(std::span<const V>(parts.begin(), parts.size()), axis);
}
/// Parts of different value types, e.g. `concat(std::tie(variable, tensor), 1)`.
template <class... Vs>
  requires(sizeof...(Vs) > 0 && (AnyValue<std::remove_cvref_t<Vs>> && ...))
constexpr auto concat(const std::tuple<Vs...>& parts, int axis) {
  using V = CommonValue<std::remove_cvref_t<Vs>...>;
  return std::apply([&](const auto&... part) { return concat({V(part)...}, axis); }, parts);
}

/// The parts one after another along a new axis of the result; all have one shape.
template <CompiledValue V>
FENESTRA_API V stack(std::span<const V> parts, int axis = 0);
template <AnyValue V>
constexpr V stack(const std::vector<V>& parts, int axis = 0) {
  return stack(std::span<const V>(parts), axis);
}
template <AnyValue V>
constexpr V stack(std::initializer_list<V> parts, int axis = 0) {
  return stack(std::span<const V>(parts.begin(), parts.size()), axis);
}

}  // namespace fenestra

// Transposing, for those who call it; derivatives and other scalars: transpose.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>

#include <initializer_list>
#include <span>

namespace fenestra {

inline namespace generic {
template <AnyValue V>
constexpr V transpose(const V& x, std::span<const int> order);
}  // namespace generic

/// Axis `i` of the result is axis `order[i]` of x. Negative axes count from the last.
template <CompiledValue V>
FENESTRA_API V transpose(const V& x, std::span<const int> order);
template <AnyValue V>
constexpr V transpose(const V& x, std::initializer_list<int> order) {
  return transpose(x, std::span<const int>(order.begin(), order.size()));
}
/// The last two axes exchanged: the transpose of a matrix, or of each matrix of a batch.
template <CompiledValue V>
FENESTRA_API V transpose(const V& x);

}  // namespace fenestra

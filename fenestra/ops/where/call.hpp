// Choosing by a mask, for those who call it; derivatives and other scalars: where.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>

namespace fenestra {

inline namespace generic {
template <AnyValue V>
constexpr V where_values(const V& mask, const V& a, const V& b);
}  // namespace generic
template <CompiledValue V>
FENESTRA_API V where_values(const V& mask, const V& a, const V& b);

/// a where the mask is not 0, b where it is.
template <AnyValue M, AnyValue A, AnyValue B>
constexpr CommonValue<M, A, B> where(const M& mask, const A& a, const B& b) {
  return where_values<CommonValue<M, A, B>>(mask, a, b);
}

}  // namespace fenestra

// Softmax and its logarithms, for those who call them; derivatives and other scalars: softmax.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>

namespace fenestra {

/// exp(x)/sum(exp(x)) along `axis`. A line of -infinity alone gives NaN.
template <CompiledValue V>
FENESTRA_API V softmax(const V& x, int axis = -1);
/// log(softmax(x)) without the detour.
template <CompiledValue V>
FENESTRA_API V log_softmax(const V& x, int axis = -1);
/// log(sum(exp(x))) along `axis`, which is removed unless `keep`. A line of -infinity alone gives
/// -infinity with zero gradient.
template <CompiledValue V>
FENESTRA_API V logsumexp(const V& x, int axis = -1, bool keep = false);

}  // namespace fenestra

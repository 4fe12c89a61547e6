// Max unpooling, for those who call it; derivatives and other scalars: max_unpool.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/ops/max_unpool/options.hpp>

#include <concepts>

namespace fenestra {

/// Values whose integer data need not be there yet.
template <class V>
concept HasOwnIndices = !std::same_as<IndicesOf<V>, Selection>;

/// Every value of x at the cell its index names, zeros elsewhere; see MaxUnpoolOptions.
template <CompiledValue V>
FENESTRA_API V max_unpool(const V& x,
                          const Tensor<Index>& indices,
                          const MaxUnpoolOptions& options,
                          int named_rank = 0);
/// Of values and of a graph, with indices that are no tensor yet.
template <CompiledValue V>
  requires HasOwnIndices<V>
FENESTRA_API V max_unpool(const V& x,
                          const IndicesOf<V>& indices,
                          const MaxUnpoolOptions& options,
                          int named_rank = 0);

template <AnyValue V, class I>
constexpr V max_unpool1d(const V& x, const I& indices, const MaxUnpoolOptions& options) {
  return max_unpool(x, indices, options, 1);
}
template <AnyValue V, class I>
constexpr V max_unpool2d(const V& x, const I& indices, const MaxUnpoolOptions& options) {
  return max_unpool(x, indices, options, 2);
}
template <AnyValue V, class I>
constexpr V max_unpool3d(const V& x, const I& indices, const MaxUnpoolOptions& options) {
  return max_unpool(x, indices, options, 3);
}

}  // namespace fenestra

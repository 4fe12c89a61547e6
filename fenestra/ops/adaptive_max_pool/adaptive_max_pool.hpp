// Adaptive and global max pooling on any value type: max pooling over bins.
#pragma once

#include <fenestra/ops/adaptive_max_pool/geometry.hpp>
#include <fenestra/ops/max_pool/max_pool.hpp>

namespace fenestra {

template <AnyValue V>
constexpr V adaptive_max_pool(const V& x, const AdaptivePoolOptions& options, int named_rank = 0) {
  return apply(MaxPoolPrimitive{adaptive_max_pool_geometry(x.shape(), options, named_rank)}, x);
}

template <AnyValue V>
constexpr MaxPoolResult<V> adaptive_max_pool_with_indices(const V& x,
                                                          const AdaptivePoolOptions& options,
                                                          int named_rank = 0) {
  return detail::max_pool_with_indices(x,
                                       adaptive_max_pool_geometry(x.shape(), options, named_rank));
}

/// The maximum of each channel; the spatial axes stay, with extent 1.
template <AnyValue V>
constexpr V global_max_pool(const V& x, Layout layout = Layout::channels_first) {
  return adaptive_max_pool(x, global_pool(layout));
}

template <AnyValue V>
constexpr V adaptive_max_pool1d(const V& x, const AdaptivePoolOptions& options) {
  return adaptive_max_pool(x, options, 1);
}
template <AnyValue V>
constexpr V adaptive_max_pool2d(const V& x, const AdaptivePoolOptions& options) {
  return adaptive_max_pool(x, options, 2);
}
template <AnyValue V>
constexpr V adaptive_max_pool3d(const V& x, const AdaptivePoolOptions& options) {
  return adaptive_max_pool(x, options, 3);
}

}  // namespace fenestra

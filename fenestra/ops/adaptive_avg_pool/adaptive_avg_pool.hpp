// Adaptive and global average pooling on any value type: average pooling over bins.
#pragma once

#include <fenestra/ops/adaptive_avg_pool/geometry.hpp>
#include <fenestra/ops/avg_pool/avg_pool.hpp>

namespace fenestra {

template <AnyValue V>
constexpr V adaptive_avg_pool(const V& x, const AdaptivePoolOptions& options, int named_rank = 0) {
  const AvgPoolGeometry g = adaptive_avg_pool_geometry(x.shape(), options, named_rank);
  return apply(AvgPoolPrimitive{AvgPoolDirection::forward, g}, x);
}

/// The mean of each channel; the spatial axes stay, with extent 1.
template <AnyValue V>
constexpr V global_avg_pool(const V& x, Layout layout = Layout::channels_first) {
  return adaptive_avg_pool(x, global_pool(layout));
}

template <AnyValue V>
constexpr V adaptive_avg_pool1d(const V& x, const AdaptivePoolOptions& options) {
  return adaptive_avg_pool(x, options, 1);
}
template <AnyValue V>
constexpr V adaptive_avg_pool2d(const V& x, const AdaptivePoolOptions& options) {
  return adaptive_avg_pool(x, options, 2);
}
template <AnyValue V>
constexpr V adaptive_avg_pool3d(const V& x, const AdaptivePoolOptions& options) {
  return adaptive_avg_pool(x, options, 3);
}

}  // namespace fenestra

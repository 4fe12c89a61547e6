// Adaptive and global max pooling, executable specification: max pooling over bins instead of
// sliding windows. Derivatives are `max_pool_vjp` and `max_pool_jvp` on the same geometry.
#pragma once

#include <fenestra/ops/adaptive_max_pool/geometry.hpp>
#include <fenestra/ops/max_pool/spec.hpp>

namespace fenestra::spec {

template <Scalar T>
Tensor<T> adaptive_max_pool(const Tensor<T>& x, const AdaptivePoolOptions& options) {
  return max_pool(x, adaptive_max_pool_geometry(x.shape(), options));
}

template <OrderedScalar T>
Tensor<Index> adaptive_max_pool_indices(const Tensor<T>& x, const AdaptivePoolOptions& options) {
  return max_pool_indices(x, adaptive_max_pool_geometry(x.shape(), options));
}

/// The maximum of each channel; the spatial axes stay, with extent 1.
template <Scalar T>
Tensor<T> global_max_pool(const Tensor<T>& x, Layout layout = Layout::channels_first) {
  return adaptive_max_pool(x, global_pool(layout));
}

}  // namespace fenestra::spec

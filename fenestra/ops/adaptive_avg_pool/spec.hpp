// Adaptive and global average pooling, executable specification: average pooling over bins instead
// of sliding windows. The VJP is `avg_pool_vjp` on the same geometry; linear, so the JVP is the
// operator itself.
#pragma once

#include <fenestra/ops/adaptive_avg_pool/geometry.hpp>
#include <fenestra/ops/avg_pool/spec.hpp>

namespace fenestra::spec {

template <Field T>
Tensor<T> adaptive_avg_pool(const Tensor<T>& x, const AdaptivePoolOptions& options) {
  return avg_pool(x, adaptive_avg_pool_geometry(x.shape(), options));
}

/// The mean of each channel; the spatial axes stay, with extent 1.
template <Field T>
Tensor<T> global_avg_pool(const Tensor<T>& x, Layout layout = Layout::channels_first) {
  return adaptive_avg_pool(x, global_pool(layout));
}

}  // namespace fenestra::spec

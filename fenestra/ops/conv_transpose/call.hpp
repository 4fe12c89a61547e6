// Transposed convolution, for those who call it; other scalars: conv_transpose.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/ops/conv/call.hpp>
#include <fenestra/ops/conv_transpose/options.hpp>

namespace fenestra {

/// `b` may be null.
template <CompiledValue V>
FENESTRA_API V
conv_transpose_values(const V& x, const V& w, const V* b, const ConvTransposeOptions& options);

/// y = conv_transpose(x, w); see ConvTransposeOptions.
template <AnyValue X, AnyValue W>
constexpr CommonValue<X, W> conv_transpose(const X& x,
                                           const W& w,
                                           const ConvTransposeOptions& options = {}) {
  return conv_transpose_values<CommonValue<X, W>>(x, w, nullptr, options);
}
/// y = conv_transpose(x, w) + b
template <AnyValue X, AnyValue W, AnyValue B>
constexpr CommonValue<X, W, B> conv_transpose(const X& x,
                                              const W& w,
                                              const B& b,
                                              const ConvTransposeOptions& options = {}) {
  using V = CommonValue<X, W, B>;
  const V& bias = b;
  return conv_transpose_values<V>(x, w, &bias, options);
}

template <AnyValue X, AnyValue W, class... Rest>
constexpr auto conv_transpose1d(const X& x, const W& w, const Rest&... rest) {
  require_spatial_rank("conv_transpose1d", w.shape(), 1);
  return conv_transpose(x, w, rest...);
}
template <AnyValue X, AnyValue W, class... Rest>
constexpr auto conv_transpose2d(const X& x, const W& w, const Rest&... rest) {
  require_spatial_rank("conv_transpose2d", w.shape(), 2);
  return conv_transpose(x, w, rest...);
}
template <AnyValue X, AnyValue W, class... Rest>
constexpr auto conv_transpose3d(const X& x, const W& w, const Rest&... rest) {
  require_spatial_rank("conv_transpose3d", w.shape(), 3);
  return conv_transpose(x, w, rest...);
}

}  // namespace fenestra

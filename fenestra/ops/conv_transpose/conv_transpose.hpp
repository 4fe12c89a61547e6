// Transposed convolution on any value type: the input gradient of a convolution, with a bias. No
// rules of its own.
#pragma once

#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/conv_transpose/geometry.hpp>

namespace fenestra {

/// y = conv_transpose(x, w); see ConvTransposeOptions.
template <AnyValue X, AnyValue W>
constexpr CommonValue<X, W> conv_transpose(const X& x,
                                           const W& w,
                                           const ConvTransposeOptions& options = {}) {
  using V = CommonValue<X, W>;
  const auto g = conv_transpose_geometry(x.shape(), w.shape(), std::nullopt, options);
  return apply(ConvPrimitive{ConvDirection::input_grad, g.conv, false}, {V(x), V(w)});
}

/// y = conv_transpose(x, w) + b
template <AnyValue X, AnyValue W, AnyValue B>
constexpr CommonValue<X, W, B> conv_transpose(const X& x,
                                              const W& w,
                                              const B& b,
                                              const ConvTransposeOptions& options = {}) {
  using V = CommonValue<X, W, B>;
  const auto g = conv_transpose_geometry(x.shape(), w.shape(), b.shape(), options);
  return apply(ConvPrimitive{ConvDirection::input_grad, detail::without_bias(g.conv), true},
               {V(x), V(w), V(b)});
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

// Transposed convolution on any value type: the input gradient of a convolution, with a bias. No
// rules of its own.
#pragma once

#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/conv_transpose/call.hpp>
#include <fenestra/ops/conv_transpose/geometry.hpp>

namespace fenestra {

inline namespace generic {

template <AnyValue V>
constexpr V conv_transpose_values(const V& x,
                                  const V& w,
                                  const V* b,
                                  const ConvTransposeOptions& options) {
  if (b == nullptr) {
    const auto g = conv_transpose_geometry(x.shape(), w.shape(), std::nullopt, options);
    return apply(ConvPrimitive{{}, ConvDirection::input_grad, g.conv, false}, {x, w});
  }
  const auto g = conv_transpose_geometry(x.shape(), w.shape(), b->shape(), options);
  return apply(ConvPrimitive{{}, ConvDirection::input_grad, detail::without_bias(g.conv), true},
               {x, w, *b});
}

}  // namespace generic

}  // namespace fenestra

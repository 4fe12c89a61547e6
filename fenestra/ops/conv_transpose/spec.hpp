// Transposed convolution, executable specification: the input gradient of a convolution with the
// same numbers.
//
//   y[n,co,c] = b[co] + sum over (ci, o, t) with o*s + t*d - pl = c of x[n,ci,o] * w[ci,co,t]
//
// Its own gradients are the other two contractions of that convolution.
#pragma once

#include <fenestra/ops/conv/spec.hpp>
#include <fenestra/ops/conv_transpose/geometry.hpp>

namespace fenestra::spec {

/// y = conv_transpose(x, w) [+ b]. `b` may be null.
template <Scalar T>
Tensor<T> conv_transpose(const Tensor<T>& x,
                         const Tensor<T>& w,
                         const Tensor<T>* b,
                         const ConvTransposeGeometry& g) {
  require_shape("conv_transpose", "x", x, g.x_shape());
  require_shape("conv_transpose", "w", w, g.w_shape());
  Tensor<T> y = conv_input_grad(x, w, g.conv);
  if (b != nullptr) {
    require_shape("conv_transpose", "b", *b, Shape{g.out_channels()});
    add_channel(y, *b, g.conv.x_map());
  }
  return y;
}

template <Scalar T>
ConvGrads<T> conv_transpose_vjp(const Tensor<T>& x,
                                const Tensor<T>& w,
                                const Tensor<T>& y_bar,
                                const ConvTransposeGeometry& g) {
  require_shape("conv_transpose_vjp", "y_bar", y_bar, g.y_shape());
  return {conv<T>(y_bar, w, nullptr, g.conv),
          conv_weight_grad(y_bar, x, g.conv),
          channel_sum(y_bar, g.conv.x_map())};
}

/// y_dot = conv_transpose(x_dot, w) + conv_transpose(x, w_dot) [+ b_dot]. `b_dot` may be null.
template <Scalar T>
Tensor<T> conv_transpose_jvp(const Tensor<T>& x,
                             const Tensor<T>& w,
                             const Tensor<T>& x_dot,
                             const Tensor<T>& w_dot,
                             const Tensor<T>* b_dot,
                             const ConvTransposeGeometry& g) {
  return sum_of(conv_transpose<T>(x_dot, w, nullptr, g), conv_transpose(x, w_dot, b_dot, g));
}

template <Scalar T>
Tensor<T> conv_transpose(const Tensor<T>& x,
                         const Tensor<T>& w,
                         const ConvTransposeOptions& options = {}) {
  return conv_transpose<T>(
      x, w, nullptr, conv_transpose_geometry(x.shape(), w.shape(), std::nullopt, options));
}

template <Scalar T>
Tensor<T> conv_transpose(const Tensor<T>& x,
                         const Tensor<T>& w,
                         const Tensor<T>& b,
                         const ConvTransposeOptions& options = {}) {
  return conv_transpose<T>(
      x, w, &b, conv_transpose_geometry(x.shape(), w.shape(), b.shape(), options));
}

}  // namespace fenestra::spec

// Transposition of tensors: the plain loop for any scalar, a blocked copy for float and double.
#pragma once

#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/tensor/shape.hpp>
#include <fenestra/tensor/tensor.hpp>

namespace fenestra {

/// Axis `i` of the result is axis `order[i]` of the tensor; `order` is a permutation.
constexpr Shape transposed_shape(const Shape& shape, const Shape& order) {
  Shape result;
  for (const Index axis : order) {
    result.push_back(shape[static_cast<int>(axis)]);
  }
  return result;
}

// Compiled for float and double in kernels/tiles.cpp.
template <KernelScalar T>
void transpose_kernel(const T* x, T* y, const Shape& shape, const Shape& order);

/// `out` holds the transposed shape.
template <class T>
void evaluate_transpose(const Tensor<T>& x, const Shape& order, T* out) {
  if constexpr (KernelScalar<T>) {
    transpose_kernel(x.data(), out, x.shape(), order);
  } else {
    const Shape shape = transposed_shape(x.shape(), order);
    Shape strides = x.shape();
    Index stride = 1;
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
      strides[axis] = stride;
      stride *= x.shape()[axis];
    }
    for (Index i = 0; i < x.size(); ++i) {
      Index rest = i;
      Index from = 0;
      for (int axis = shape.rank() - 1; axis >= 0; --axis) {
        from += rest % shape[axis] * strides[static_cast<int>(order[axis])];
        rest /= shape[axis];
      }
      out[i] = x[from];
    }
  }
}

}  // namespace fenestra

// Copies of a tensor in another arrangement: permuted, sliced, put into another layout. Any scalar.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/tensor/layout.hpp>
#include <fenestra/tensor/shape.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <span>
#include <vector>

namespace fenestra {

/// Row-major strides of a dense tensor, in elements.
inline std::vector<Index> dense_strides(const Shape& shape) {
  std::vector<Index> strides(static_cast<std::size_t>(shape.rank()), 1);
  for (int axis = shape.rank() - 2; axis >= 0; --axis) {
    const auto a = static_cast<std::size_t>(axis);
    strides[a] = strides[a + 1] * shape[axis + 1];
  }
  return strides;
}

/// Axis `i` of the result is axis `order[i]` of the tensor.
template <class T>
Tensor<T> permuted(const Tensor<T>& tensor, std::span<const int> order) {
  const std::vector<Index> strides = dense_strides(tensor.shape());
  if (static_cast<int>(order.size()) != tensor.rank()) {
    throw Error(ErrorCode::rank_mismatch,
                "permuted: " + to_string(tensor.shape()) + " needs an order of its axes, got " +
                    std::to_string(order.size()) + " numbers");
  }
  Shape shape;
  std::vector<Index> steps;
  std::vector<bool> seen(order.size());
  for (const int axis : order) {
    if (axis < 0 || axis >= tensor.rank() || seen[static_cast<std::size_t>(axis)]) {
      throw Error(
          ErrorCode::rank_mismatch,
          "permuted: the order is not a permutation of the axes of " + to_string(tensor.shape()));
    }
    seen[static_cast<std::size_t>(axis)] = true;
    shape.push_back(tensor.shape()[axis]);
    steps.push_back(strides[static_cast<std::size_t>(axis)]);
  }
  return copy_strided(tensor.data(), shape, steps);
}

/// `count` entries of `axis` from `begin` on.
template <class T>
Tensor<T> sliced(const Tensor<T>& tensor, int axis, Index begin, Index count) {
  if (axis < 0 || axis >= tensor.rank() || begin < 0 || count < 0 ||
      count > tensor.shape()[axis] - begin) {
    throw Error(ErrorCode::invalid_index,
                "sliced: " + std::to_string(count) + " entries from " + std::to_string(begin) +
                    " on axis " + std::to_string(axis) + " of " + to_string(tensor.shape()));
  }
  Shape shape = tensor.shape();
  shape[axis] = count;
  const std::vector<Index> strides = dense_strides(tensor.shape());
  return copy_strided(
      tensor.data() + begin * strides[static_cast<std::size_t>(axis)], shape, strides);
}

/// An activation of the layout `from` rearranged to the layout `to`; `batched` tells whether axis 0
/// is the batch.
template <class T>
Tensor<T> activation_to_layout(const Tensor<T>& x, bool batched, Layout from, Layout to) {
  if (from == to) {
    return x;
  }
  std::vector<int> order;
  const int first = batched ? 1 : 0;
  if (batched) {
    order.push_back(0);
  }
  if (to == Layout::channels_last) {
    for (int axis = first + 1; axis < x.rank(); ++axis) {
      order.push_back(axis);
    }
    order.push_back(first);
  } else {
    order.push_back(x.rank() - 1);
    for (int axis = first; axis < x.rank() - 1; ++axis) {
      order.push_back(axis);
    }
  }
  return permuted(x, order);
}

/// A convolution weight, (out, in, taps...) and (taps..., in, out).
template <class T>
Tensor<T> weight_to_layout(const Tensor<T>& w, Layout from, Layout to) {
  if (from == to) {
    return w;
  }
  std::vector<int> order;
  if (to == Layout::channels_last) {
    for (int axis = 2; axis < w.rank(); ++axis) {
      order.push_back(axis);
    }
    order.push_back(1);
    order.push_back(0);
  } else {
    order.push_back(w.rank() - 1);
    order.push_back(w.rank() - 2);
    for (int axis = 0; axis < w.rank() - 2; ++axis) {
      order.push_back(axis);
    }
  }
  return permuted(w, order);
}

}  // namespace fenestra

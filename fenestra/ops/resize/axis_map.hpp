// A linear map along one axis: every output cell is a weighted sum of at most two input cells, with
// rational weights.
//
// Resizing is one such map per spatial axis, padding by reflection and its like is one per padded
// axis. The map is a table of integers, so it is exact in every scalar; its transpose is the
// adjoint. Nothing here differentiates.
#pragma once

#include <fenestra/ops/kernel_scalar.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/shape.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace fenestra {

/// y[o] = (weight[o] * x[first[o]] + (whole - weight[o]) * x[second[o]]) / whole.
struct AxisMap {
  Index in = 0;
  std::vector<Index> first;   ///< a cell of x per output cell
  std::vector<Index> second;  ///< empty: y[o] = x[first[o]], a selection without weights
  std::vector<Index> weight;  ///< of the first cell, 0 to whole
  Index whole = 1;

  Index out() const { return static_cast<Index>(first.size()); }
  bool selects() const { return second.empty(); }
  /// The most terms that meet in one cell of the adjoint's result.
  Index fan_in() const {
    std::vector<Index> count(static_cast<std::size_t>(in));
    for (const auto* cells : {&first, &second}) {
      for (const Index cell : *cells) {
        ++count[static_cast<std::size_t>(cell)];
      }
    }
    return count.empty() ? 0 : *std::max_element(count.begin(), count.end());
  }
};

/// The tensor seen from the mapped axis: `outer` blocks of `in` or `out` rows of `inner` elements.
struct MappedAxis {
  Index outer = 1;
  Index inner = 1;

  MappedAxis(const Shape& shape, int axis) {
    for (int a = 0; a < shape.rank(); ++a) {
      if (a != axis) {
        (a < axis ? outer : inner) *= shape[a];
      }
    }
  }
};

/// The weights of a map as scalars: (first, second) for every output cell.
template <class T>
std::vector<std::pair<T, T>> map_weights(const AxisMap& map) {
  std::vector<std::pair<T, T>> weights;
  if constexpr (Field<T>) {
    const T whole = from_index<T>(map.whole);
    weights.reserve(map.weight.size());
    for (const Index weight : map.weight) {
      weights.emplace_back(from_index<T>(weight) / whole,
                           from_index<T>(map.whole - weight) / whole);
    }
  } else if (!map.selects()) {
    throw Error(
        ErrorCode::dtype_mismatch,
        "resize: a scalar without division has no weights\n  fix: mode nearest, or a field");
  }
  return weights;
}

// Compiled for float and double in axis_map.cpp. x is (outer, map.in, inner), y is (outer, map.out,
// inner).
template <KernelScalar T>
void axis_map_kernel(const T* x, T* y, const MappedAxis& view, const AxisMap& map);
/// y is the input, x the result, which need not be zero before.
template <KernelScalar T>
void axis_map_adjoint_kernel(const T* y, T* x, const MappedAxis& view, const AxisMap& map);

/// The map applied to axis `axis` of x.
template <class T>
Tensor<T> map_axis(const Tensor<T>& x, int axis, const AxisMap& map) {
  Shape shape = x.shape();
  shape[axis] = map.out();
  Tensor<T> y = Tensor<T>::uninitialised(shape);
  const MappedAxis view(shape, axis);
  T* out = y.mutable_data();
  if constexpr (KernelScalar<T>) {
    axis_map_kernel(x.data(), out, view, map);
  } else {
    const auto weights = map_weights<T>(map);
    for (Index i = 0; i < y.size(); ++i) {
      const Index block = i / view.inner / map.out() * map.in;
      const auto o = static_cast<std::size_t>(i / view.inner % map.out());
      const Index lane = i % view.inner;
      const T& a = x[(block + map.first[o]) * view.inner + lane];
      if (map.selects()) {
        out[i] = a;
      } else {
        out[i] = weights[o].first * a +
                 weights[o].second * x[(block + map.second[o]) * view.inner + lane];
      }
    }
  }
  return y;
}

/// The adjoint: every output cell's value, weighted, added to the cells it read, in the order of
/// the output cells.
template <class T>
Tensor<T> map_axis_adjoint(const Tensor<T>& y, int axis, const AxisMap& map) {
  Shape shape = y.shape();
  shape[axis] = map.in;
  const MappedAxis view(shape, axis);
  if constexpr (KernelScalar<T>) {
    Tensor<T> x = Tensor<T>::uninitialised(shape);
    axis_map_adjoint_kernel(y.data(), x.mutable_data(), view, map);
    return x;
  } else {
    Tensor<T> x(shape);
    T* out = x.mutable_data();
    const auto weights = map_weights<T>(map);
    for (Index i = 0; i < y.size(); ++i) {
      const Index block = i / view.inner / map.out() * map.in;
      const auto o = static_cast<std::size_t>(i / view.inner % map.out());
      const Index lane = i % view.inner;
      T& a = out[(block + map.first[o]) * view.inner + lane];
      if (map.selects()) {
        a = a + y[i];
      } else {
        a = a + weights[o].first * y[i];
        T& b = out[(block + map.second[o]) * view.inner + lane];
        b = b + weights[o].second * y[i];
      }
    }
    return x;
  }
}

}  // namespace fenestra

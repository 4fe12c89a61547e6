// A linear map along one axis: every output cell is a weighted sum of at most two input cells, with
// rational weights.
//
// Resizing is one such map per spatial axis, padding by reflection and its like is one per padded
// axis. The map is a table of integers, so it is exact in every scalar; its transpose is the
// adjoint. Nothing here differentiates.
#pragma once

#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/selection.hpp>
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

/// A map on one axis of a tensor, or its adjoint, with everything worked out that the elements do
/// not decide.
template <class T>
struct AxisStep {
  AxisMap map;
  std::vector<std::pair<T, T>> weights;
  MappedAxis view;
  Index size = 0;  ///< elements of the result

  /// Turns `shape` into the shape of the result.
  AxisStep(Shape& shape, int axis, AxisMap axis_map, bool adjoint)
      : map(std::move(axis_map)), weights(map_weights<T>(map)), view(shape, axis) {
    shape[axis] = adjoint ? map.in : map.out();
    size = shape.elements().value_or(0);
  }
};

// Compiled for float and double in kernels/axis_map.cpp. x is (outer, map.in, inner), y is (outer,
// map.out, inner).
template <KernelScalar T>
void axis_map_kernel(const T* x, T* y, const AxisStep<T>& step);
/// y is the input, x the result, which need not be zero before.
template <KernelScalar T>
void axis_map_adjoint_kernel(const T* y, T* x, const AxisStep<T>& step);

template <class T>
void map_axis(const T* x, T* y, const AxisStep<T>& step) {
  if constexpr (KernelScalar<T>) {
    axis_map_kernel(x, y, step);
  } else {
    const auto& [map, weights, view, size] = step;
    for (Index i = 0; i < size; ++i) {
      const Index block = i / view.inner / map.out() * map.in;
      const auto o = static_cast<std::size_t>(i / view.inner % map.out());
      const Index column = i % view.inner;
      const T& a = x[(block + map.first[o]) * view.inner + column];
      if (map.selects()) {
        y[i] = a;
      } else {
        y[i] = weights[o].first * a +
               weights[o].second * x[(block + map.second[o]) * view.inner + column];
      }
    }
  }
}

/// The adjoint: every output cell's value, weighted, added to the cells it read, in the order of
/// the output cells.
template <class T>
void map_axis_adjoint(const T* y, T* x, const AxisStep<T>& step) {
  if constexpr (KernelScalar<T>) {
    axis_map_adjoint_kernel(y, x, step);
  } else {
    const auto& [map, weights, view, size] = step;
    std::fill_n(x, size, T(0));
    const Index inputs = view.outer * map.out() * view.inner;
    for (Index i = 0; i < inputs; ++i) {
      const Index block = i / view.inner / map.out() * map.in;
      const auto o = static_cast<std::size_t>(i / view.inner % map.out());
      const Index column = i % view.inner;
      T& a = x[(block + map.first[o]) * view.inner + column];
      if (map.selects()) {
        a = a + y[i];
      } else {
        a = a + weights[o].first * y[i];
        T& b = x[(block + map.second[o]) * view.inner + column];
        b = b + weights[o].second * y[i];
      }
    }
  }
}

/// Maps on several axes, one after another.
template <class T>
struct AxisSteps {
  std::vector<AxisStep<T>> steps;
  Index size = 0;  ///< elements of the input
  bool adjoint = false;

  /// Elements of each of the two buffers between steps.
  Index between() const {
    Index most = 0;
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
      most = std::max(most, steps[i].size);
    }
    return most;
  }
  std::size_t scratch_bytes() const { return static_cast<std::size_t>(2 * between()) * sizeof(T); }
  /// `spare` has `scratch_bytes`; it may be null where they are 0.
  void run(const T* x, T* out, T* spare) const {
    if (steps.empty()) {
      std::copy_n(x, size, out);
      return;
    }
    T* buffers[2] = {spare, spare + between()};
    const T* from = x;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      T* to = i + 1 == steps.size() ? out : buffers[i % 2];
      adjoint ? map_axis_adjoint(from, to, steps[i]) : map_axis(from, to, steps[i]);
      from = to;
    }
  }
  void run(const T* x, T* out) const {
    Tensor<T> spare = Tensor<T>::uninitialised(Shape{2 * between()});
    run(x, out, spare.mutable_data());
  }
};

}  // namespace fenestra

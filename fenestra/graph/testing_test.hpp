// What the tests of graphs share: numbers to fill tensors with, a count of operations, and codes of
// errors. Not installed.
#pragma once

#include <fenestra/engine/compile.hpp>
#include <fenestra/graph/graph.hpp>
#include <fenestra/ops/all.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

namespace fenestra::graph {

/// Different numbers between -1 and 1, the same on every call.
template <class T>
Tensor<T> sample_tensor(const Shape& shape, int seed = 1) {
  Tensor<T> tensor(shape);
  T* out = tensor.mutable_data();
  double state = std::fmod(0.1 + 0.037 * seed, 1.0);
  for (Index i = 0; i < tensor.size(); ++i) {
    state = 3.99 * state * (1 - state);
    out[i] = static_cast<T>(2 * state - 1);
  }
  return tensor;
}

/// With what `body` is refused.
inline ErrorCode code_of(const auto& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::none;
}

inline std::size_t count_named(const Graph& graph, std::string_view name) {
  return static_cast<std::size_t>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
        return node.operation && node.operation->name() == name;
      }));
}

}  // namespace fenestra::graph

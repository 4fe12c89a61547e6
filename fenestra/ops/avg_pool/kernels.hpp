// The fast candidates of average pooling and its adjoint, for float and double. Internal: not
// installed.
#pragma once

#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/avg_pool/avg_pool.hpp>

#include <span>

namespace fenestra {

struct AvgPoolProblem {
  AvgPoolDirection direction = AvgPoolDirection::forward;
  AvgPoolGeometry geometry;
};

/// Dense tensors in the geometry's layout. `out` is overwritten whole.
template <class T>
struct AvgPoolArguments {
  const T* in = nullptr;  ///< x, y_bar
  T* out = nullptr;       ///< y, x_bar
};

template <class T>
using AvgPoolCandidate = kernels::Candidate<AvgPoolProblem, AvgPoolArguments<T>>;

/// Fastest first, the specification last.
template <class T>
std::span<const AvgPoolCandidate<T>> avg_pool_candidates();

}  // namespace fenestra

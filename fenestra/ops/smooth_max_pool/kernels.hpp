// The fast candidates of smooth max pooling and of the two linear maps its derivatives are made of.
// Internal: not installed.
#pragma once

#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/smooth_max_pool/geometry.hpp>

#include <span>

namespace fenestra {

struct SmoothProblem {
  SmoothDirection direction = SmoothDirection::forward;
  SmoothMaxPoolGeometry geometry;
};

/// Dense tensors in the geometry's layout. `out` is overwritten whole.
template <class T>
struct SmoothArguments {
  const T* x = nullptr;
  const T* v = nullptr;  ///< mix: like x; spread: like y; null for the others
  T beta = T(1);
  T* out = nullptr;
};

template <class T>
using SmoothCandidate = kernels::Candidate<SmoothProblem, SmoothArguments<T>>;

/// Fastest first, the specification last.
template <class T>
std::span<const SmoothCandidate<T>> smooth_max_pool_candidates();

}  // namespace fenestra

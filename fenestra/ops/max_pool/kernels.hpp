// The fast candidates of max pooling and of its winners' gather and scatter, for float and double.
// Internal: not installed.
#pragma once

#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/max_pool/geometry.hpp>
#include <fenestra/ops/max_pool/winners.hpp>

#include <cstdint>
#include <span>

namespace fenestra {

struct MaxPoolProblem {
  MaxPoolDirection direction = MaxPoolDirection::forward;
  MaxPoolGeometry geometry;
};

/// Dense tensors in the geometry's layout. `out` is overwritten whole.
template <class T>
struct MaxPoolArguments {
  const T* in = nullptr;                  ///< x, x_dot, y_bar
  const WinnerTap* winners_in = nullptr;  ///< gather and scatter
  T* out = nullptr;                       ///< y, y_dot, x_bar
  WinnerTap* winners_out = nullptr;       ///< forward; null where nobody asked
};

template <class T>
using MaxPoolCandidate = kernels::Candidate<MaxPoolProblem, MaxPoolArguments<T>>;

/// Fastest first, the plain loops of the specification last. Callers ensure `has_compact_winners`.
template <class T>
std::span<const MaxPoolCandidate<T>> max_pool_candidates();

}  // namespace fenestra

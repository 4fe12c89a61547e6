// The fast candidates of Lp pooling, for float and double. Internal: not installed.
//
// Forward only: its derivatives are elementwise operators around sums over windows, which are
// average pooling with `divisor_override = 1`.
#pragma once

#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/lp_pool/geometry.hpp>

#include <span>

namespace fenestra {

struct LpProblem {
  LpPoolGeometry geometry;
};

/// Dense tensors in the geometry's layout. `out` is overwritten whole.
template <class T>
struct LpArguments {
  const T* x = nullptr;
  T* out = nullptr;  ///< y
};

template <class T>
using LpCandidate = kernels::Candidate<LpProblem, LpArguments<T>>;

/// Fastest first, the specification last.
template <class T>
std::span<const LpCandidate<T>> lp_pool_candidates();

}  // namespace fenestra

// Sums of runs of numbers, on vectors. Internal: not installed.
//
// A run is summed in four vectors of parts, which are then added up in pairs: the order depends on
// its length and the instruction set alone, and rounding grows with the length of a part.
#pragma once

#include <fenestra/base/error.hpp>

namespace fenestra::kernels {

/// Sums of u and of u * h in one pass, h = (x - mean) * factor.
template <class T>
struct SumPair {
  T u;
  T uh;
};

/// For one instruction set.
template <class T>
struct RunSums {
  T (*plain)(const T* x, Index n);
  /// Of (x - mean)^2.
  T (*squares)(const T* x, T mean, Index n);
  SumPair<T> (*pair)(const T* u, const T* x, T mean, T factor, Index n);
};

/// Those of the instruction set in use.
template <class T>
const RunSums<T>& run_sums();
template <>
const RunSums<float>& run_sums();
template <>
const RunSums<double>& run_sums();

}  // namespace fenestra::kernels

// What softmax and cross entropy have in common: the greatest element of a line and the sum of the
// exponentials below it, a vector at a time. Internal: not installed.
#pragma once

#include <fenestra/tensor/shape.hpp>

namespace fenestra::detail {

/// Lines worked on together: their partial results are 2 * 64 numbers, a fraction of the
/// first-level cache.
inline constexpr Index kSoftmaxLines = 64;
/// Elements per range of lines. An exponential takes about 1 ns, so this is half a thread's
/// wake-up.
inline constexpr Index kSoftmaxGrain = 4096;

/// `count` lines whose elements are `step` apart and which lie side by side. A line has the same
/// results whatever lies beside it; only a line of its own (count = step = 1) is summed in another
/// order, in as many parts as a vector has lanes.
template <class T>
struct SoftmaxLines {
  const T* x = nullptr;
  Index extent = 0;
  Index step = 0;
  Index count = 0;            ///< at most kSoftmaxLines
  T* greatest = nullptr;      ///< [count]
  T* sum = nullptr;           ///< [count], of exp(x - greatest)
  T* exponentials = nullptr;  ///< exp(x - greatest) in the places of x, or null
};

template <class T>
void sum_exponentials(const SoftmaxLines<T>& lines);
template <>
void sum_exponentials(const SoftmaxLines<float>& lines);
template <>
void sum_exponentials(const SoftmaxLines<double>& lines);

}  // namespace fenestra::detail

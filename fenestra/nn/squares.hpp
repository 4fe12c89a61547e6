// Sums of squares whose bits depend on nothing but the numbers. Not installed: the inside of
// optimisers and clipping.
#pragma once

#include <fenestra/base/error.hpp>

namespace fenestra::nn::detail {

/// In double, by eight sums that are joined at the end: the order is the same on every machine, and
/// the compiler may keep them in a vector.
template <class T>
double sum_of_squares(const T* x, Index n) {
  constexpr Index kSums = 8;
  double sums[kSums] = {};
  Index i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (Index k = 0; k < kSums; ++k) {
      const double value = static_cast<double>(x[i + k]);
      sums[k] += value * value;
    }
  }
  for (Index k = 0; i + k < n; ++k) {
    const double value = static_cast<double>(x[i + k]);
    sums[k] += value * value;
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace fenestra::nn::detail

// Options of the normalisations.
#pragma once

#include <fenestra/tensor/layout.hpp>

namespace fenestra {

struct NormOptions {
  double eps = 1e-5;  ///< added to the variance; finite, not negative
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const NormOptions&, const NormOptions&) = default;
};

}  // namespace fenestra

// Options of the normalisations.
#pragma once

#include <fenestra/spec/options.hpp>
#include <fenestra/tensor/layout.hpp>

namespace fenestra {

struct NormOptions {
  double eps = 1e-5;  ///< added to the variance; finite, not negative
  Layout layout = Layout::channels_first;

  friend constexpr bool operator==(const NormOptions&, const NormOptions&) = default;

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    field("eps", &NormOptions::eps, {.help = "added to the variance", .always_printed = true});
    layout_field<NormOptions>(field);
  }
};

}  // namespace fenestra

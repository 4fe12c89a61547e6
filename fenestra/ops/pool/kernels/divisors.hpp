// What the kernels of average pooling divide by. Internal: not installed.
#pragma once

#include <fenestra/ops/pool/kernels/links.hpp>
#include <fenestra/ops/pool/reduction.hpp>

#include <algorithm>

namespace fenestra::pooling {

/// The divisors of all windows: products of one count per axis.
struct Divisors {
  bool include_pad = true;
  Index given = 0;    ///< the override; 0: none
  Index uniform = 0;  ///< of every window; 0: they differ

  Divisors() = default;
  Divisors(const Plan& plan, const AvgPoolGeometry& g)
      : include_pad(g.count_include_pad),
        given(g.divisor_override.given ? g.divisor_override.value : 0),
        uniform(given) {
    if (given != 0) {
      return;
    }
    Index product = 1;
    for (int axis = 0; axis < plan.windows.rank(); ++axis) {
      const WindowAxis& a = plan.windows[axis];
      // Counts only shrink towards the ends, so the first and the last window tell; bins that are
      // no windows differ.
      const Index first = count(a, 0);
      if (a.rule == ExtentRule::adaptive || first != a.kernel || count(a, a.out - 1) != first) {
        return;
      }
      product *= first;
    }
    uniform = product;
  }

  /// Cells of window `o` that count on one axis.
  Index count(const WindowAxis& a, Index o) const {
    return a.taps(a.window(o), include_pad ? Visit::declared : Visit::real).count();
  }
  /// The part of the divisor that the axes above the rows give to a row of windows.
  Index of_row(const Plan& plan, Index row) const {
    Index product = 1;
    for (int axis = plan.outer_axes() - 1; axis >= 0; --axis) {
      product *= count(plan.windows[axis], row % plan.windows[axis].out);
      row /= plan.windows[axis].out;
    }
    return product;
  }
  /// The part of the columns; 1 instead of 0, which only a window without a cell has: its sum is 0.
  Index of_column(const Plan& plan, Index column) const {
    return std::max<Index>(count(plan.last(), column), 1);
  }
};

}  // namespace fenestra::pooling

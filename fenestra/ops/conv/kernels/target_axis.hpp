// The cells of one axis that a correlation computes, forward or as an input gradient, and where
// they look. Internal: not installed.
#pragma once

#include <fenestra/base/checked.hpp>
#include <fenestra/spec/window.hpp>

#include <algorithm>

namespace fenestra::detail {

/// Target cells fall into phases that see the same taps: one phase forward, `stride` phases in an
/// input gradient. Cell `place` of a phase is target cell `place * phases + phase`, and looks
/// through a tap at source cell `first + place * step + shift(phase, tap)`.
struct TargetAxis {
  Index target = 1;
  Index source = 1;
  Index phases = 1;
  Index step = 1;   ///< source cells from place to place
  Index first = 0;  ///< the first source cell that place 0 sees in any phase, maybe outside
  Index reach = 0;  ///< source cells behind it that place 0 sees
  WindowAxis axis;
  bool transposed = false;

  TargetAxis() = default;
  TargetAxis(const WindowAxis& a, bool is_transposed) : axis(a), transposed(is_transposed) {
    target = transposed ? a.in : a.out;
    source = transposed ? a.out : a.in;
    if (!transposed) {
      step = target > 1 ? a.stride : 1;  // of one window the stride may be any number
      first = a.window(0).first;
      reach = a.span() - 1;
      return;
    }
    phases = std::max<Index>(std::min(a.stride, target), 1);
    first = a.cell_step(1 - a.span());
    reach = a.cell_step(phases - 1) - first;
  }

  Index places() const { return ceil_div(target, phases); }
  /// Places of a phase among those in [begin, end) of phase 0.
  Index places(Index phase, Index begin, Index end) const {
    return std::min(end, ceil_div(target - phase, phases)) - begin;
  }
  /// Where tap `t` looks, counted from `first`; -1 where no cell of the phase sees it.
  Index shift(Index phase, Index t) const {
    if (!transposed) {
      return axis.window(0).cell(t) - first;
    }
    const std::optional<Index> window = axis.window_through(t, phase);
    return window ? *window - first : -1;
  }
  /// Source cells that `count` places see, from the first to the last.
  Index seen(Index count) const { return (count - 1) * step + reach + 1; }
};

}  // namespace fenestra::detail

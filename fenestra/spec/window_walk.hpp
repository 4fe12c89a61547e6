// How kernels walk one axis of the window map: output after output, and phase after phase. Each is
// another view of a `WindowAxis`, which says where windows and taps are. Not installed.
#pragma once

#include <fenestra/base/checked.hpp>
#include <fenestra/spec/window_axis.hpp>

#include <cstdint>

namespace fenestra {

/// Positions 0, 1, ... dealt to some phases by turns: of a row of cells whose readers move by
/// `phases`, each reader finds neighbours. Position p is at place p / phases of phase p % phases.
struct Dealing {
  Index phases = 1;

  constexpr Index phase(Index position) const { return position % phases; }
  constexpr Index place(Index position) const { return position / phases; }
  constexpr Index position(Index phase, Index place) const { return place * phases + phase; }
  /// Places of a phase before position `end`; the next one is at `end` or behind it.
  constexpr Index places(Index phase, Index end) const {
    return (end + phases - 1 - phase) / phases;
  }
  /// Where a position lies in memory: with `pitch` numbers from phase to phase, and where `extent`
  /// positions are dealt and the phases follow one another.
  constexpr Index offset(Index position, Index pitch) const {
    return phases == 1 ? position : phase(position) * pitch + place(position);
  }
  constexpr Index packed(Index position, Index extent) const {
    const Index of = phase(position);
    const Index longer = extent % phases;  // so many phases have one place more than the others
    return of * (extent / phases) + (of < longer ? of : longer) + place(position);
  }
};

/// Windows whose outputs are computed one after another: window q looks through tap t at cell
/// base + q * step + t * tap_step, which counts where it lies in [0, extent).
struct WindowSeries {
  Index count = 1;
  Index step = 1;  ///< at least 1
  Index extent = 1;
  Index base = 0;
  Index taps = 1;
  Index tap_step = 0;  ///< may be negative

  constexpr Window window(Index q) const { return {base + q * step, tap_step, taps}; }
  constexpr bool has(Index cell) const {
    return static_cast<std::uint64_t>(cell) < static_cast<std::uint64_t>(extent);
  }
  /// Of `length` windows in a row of which the first looks at `cell`, those that find one.
  constexpr TapRange seeing(Index cell, Index length) const {
    // A division only at an end that is cut.
    const Index begin = cell < 0 ? steps_before(cell, step, 0) : 0;
    const bool whole = cell + (length - 1) * step < extent;
    const Index end = whole ? length : steps_before(cell, step, extent);
    return {begin < end ? begin : end, end};
  }
  /// From tap 0 of a window to its taps, and between those that are furthest apart.
  constexpr Index shift(Index tap) const { return tap * tap_step; }
  constexpr Index least_shift() const { return tap_step < 0 ? shift(taps - 1) : 0; }
  constexpr Index reach() const { return tap_step < 0 ? -shift(taps - 1) : shift(taps - 1); }
  /// Window q is cell q, and no cell is left over.
  constexpr bool is_identity() const {
    return taps == 1 && step == 1 && base == 0 && count == extent;
  }
};

/// The windows of an axis in order, over its cells.
constexpr WindowSeries window_series(const WindowAxis& a) {
  return {.count = a.out,
          .step = a.stride,
          .extent = a.in,
          .base = a.window(0).first,
          .taps = a.kernel,
          .tap_step = a.dilation};
}

/// The cells of a phase in order, over the windows: the taps are those of the phase. What an input
/// gradient is made of.
struct PhaseSeries {
  Progression cells;
  Progression taps;
  WindowSeries windows;
};
constexpr PhaseSeries phase_series(const WindowAxis& a, Index phase) {
  const Progression cells = a.phase_cells(phase);
  const Progression taps = a.phase_taps(phase);
  return {.cells = cells,
          .taps = taps,
          .windows = {
              .count = cells.count,
              .extent = a.out,
              .base = taps.count > 0 ? a.window_through(taps.first, cells.first).value_or(0) : 0,
              .taps = taps.count,
              .tap_step = -a.windows_apart()}};
}

/// The outputs of a correlation on one axis, forward or as an input gradient, and where they look.
/// Outputs fall into phases that see the same taps: one phase forward, `stride` phases in an input
/// gradient. Output `place * phases + phase` looks through a tap at source cell
/// `first + place * step + shift(phase, tap)`.
struct TargetAxis {
  Index target = 1;
  Index source = 1;
  Index phases = 1;
  Index step = 1;   ///< source cells from place to place
  Index first = 0;  ///< no phase sees a source cell before it from place 0; maybe outside
  Index reach = 0;  ///< source cells behind it that place 0 may see
  WindowAxis axis;
  bool transposed = false;

  constexpr TargetAxis() = default;
  constexpr TargetAxis(const WindowAxis& a, bool is_transposed)
      : axis(a), transposed(is_transposed) {
    target = transposed ? a.in : a.out;
    source = transposed ? a.out : a.in;
    if (!transposed) {
      step = target > 1 ? a.stride : 1;  // of one window the stride may be any number
      first = a.window(0).first;
      reach = a.span() - 1;
      return;
    }
    phases = a.stride < target ? a.stride : target;
    phases = phases > 1 ? phases : 1;
    first = a.cell_step(1 - a.span());
    reach = a.cell_step(phases - 1) - first;
  }

  constexpr Index places() const { return Dealing{phases}.places(0, target); }
  /// Places of a phase among those in [begin, end) of phase 0.
  constexpr Index places(Index phase, Index begin, Index end) const {
    const Index all = Dealing{phases}.places(phase, target);
    return (end < all ? end : all) - begin;
  }
  /// The outputs at these places of all phases.
  constexpr IndexRange outputs(const IndexRange& places) const {
    const Index end = places.end * phases;
    return {places.begin * phases, end < target ? end : target};
  }
  /// The same of another place.
  constexpr Index first_of(Index place) const { return first + place * step; }
  /// Where tap `t` looks, counted from there; -1 where no output of the phase sees it.
  constexpr Index shift(Index phase, Index t) const {
    if (!transposed) {
      return axis.window(0).cell(t) - first;
    }
    const std::optional<Index> window = axis.window_through(t, phase);
    return window ? *window - first : -1;
  }
  /// Source cells that `count` places may see, from the first to the last.
  constexpr Index seen(Index count) const { return (count - 1) * step + reach + 1; }
  /// Which of those that all places see exist, counted from `first`.
  constexpr TapRange existing() const {
    return taps_within({.first = first, .step = 1, .taps = seen(places())}, 0, source);
  }
  constexpr bool sees_source_only() const { return existing().count() == seen(places()); }
};

}  // namespace fenestra

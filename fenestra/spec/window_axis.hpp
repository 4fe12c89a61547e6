// One axis of the window map (window.hpp): which cell a tap of a window looks at, which windows see
// a cell, the phases of the stride, and what a range of outputs needs.
//
// A `WindowAxis` is one axis of a sliding window, resolved: `same` and `ceil` are gone, padding is
// low and high, the number of windows is a number. Forward operators, every gradient, the typed
// graph and the kernels read the same one. A transposed convolution is described by the axes of the
// convolution whose input gradient it is.
#pragma once

#include <fenestra/base/checked.hpp>
#include <fenestra/tensor/box.hpp>

#include <optional>

namespace fenestra {

/// How the number of windows followed from the sizes.
enum class ExtentRule {
  floor,       ///< whole windows only
  ceil,        ///< a last window may hang over the padded end, unless it starts beyond it
  transposed,  ///< given: the windows are the input of a transposed convolution
  adaptive,    ///< given: the windows divide the input evenly
};

/// One window on one axis: tap `t` looks at cell `first + t * step`, which may lie outside the
/// input.
struct Window {
  Index first = 0;
  Index step = 1;
  Index taps = 0;
  constexpr Index cell(Index tap) const { return first + tap * step; }
  /// The tap that looks at a cell which the window sees.
  constexpr Index tap(Index cell) const { return (cell - first) / step; }
};

/// `count` numbers from `first` on, each `step` behind the one before.
struct Progression {
  Index first = 0;
  Index step = 1;
  Index count = 0;
  constexpr Index at(Index i) const { return first + i * step; }
};

/// Taps `begin` .. `end` - 1 of a window.
struct TapRange {
  Index begin = 0;
  Index end = 0;
  constexpr Index count() const { return end - begin; }
};

/// How many of first, first + step, ... lie before `cell`; kernels mostly ask with a step of 1.
constexpr Index steps_before(Index first, Index step, Index cell) {
  if (first >= cell) {
    return 0;
  }
  return step == 1 ? cell - first : (cell - 1 - first) / step + 1;
}

/// The taps of `window` that look at cells low .. high - 1, found without visiting any. So one asks
/// of anything that is evenly spaced: `length` cells in a row from `first` on are {first, 1,
/// length}.
constexpr TapRange taps_within(const Window& window, Index low, Index high) {
  const Index begin = steps_before(window.first, window.step, low);
  const Index end = steps_before(window.first, window.step, high);
  const Index last = end < window.taps ? end : window.taps;
  return {begin < last ? begin : last, last};
}

/// Which taps of a window somebody asks for.
enum class Visit {
  real,      ///< those that find a cell of the input
  declared,  ///< or one of its declared padding
  all,
};

namespace detail {

/// divisor = gcd(a, m), and a * factor = divisor modulo m with 0 <= factor < m / divisor, or 0; for
/// a >= 0 and m > 0, by Euclid.
struct CommonDivisor {
  Index divisor = 1;
  Index factor = 0;
};
constexpr CommonDivisor common_divisor(Index a, Index m) {
  Index r = m;
  Index next_r = a % m;
  Index t = 0;
  Index next_t = 1;
  while (next_r != 0) {
    const Index q = r / next_r;
    const Index r_left = r - q * next_r;
    const Index t_left = t - q * next_t;
    r = next_r;
    t = next_t;
    next_r = r_left;
    next_t = t_left;
  }
  return {r, t < 0 ? t + m / r : t};
}

/// The least x >= 0 with a * x = b modulo m, or -1 where there is none; for a, b >= 0 and m > 0.
constexpr Index least_solution(Index a, Index b, Index m) {
  const CommonDivisor common = common_divisor(a, m);
  if (b % common.divisor != 0) {
    return -1;
  }
  __extension__ using Wide = __int128;
  const Index period = m / common.divisor;
  return static_cast<Index>(static_cast<Wide>(b / common.divisor % period) * common.factor %
                            period);
}

}  // namespace detail

struct AxisTile;

struct WindowAxis {
  Index in = 1;        ///< cells the windows slide over
  Index kernel = 1;    ///< taps of a window; 0 for `adaptive`, where windows differ
  Index stride = 1;    ///< 0 for `adaptive`
  Index dilation = 1;  ///< 1 = dense
  Index pad_low = 0;
  Index pad_high = 0;
  Index out = 1;  ///< number of windows
  ExtentRule rule = ExtentRule::floor;

  /// Cells from a window's first tap to its last, both counted.
  constexpr Index span() const { return dilation * (kernel - 1) + 1; }
  /// Cells of the input and of its declared padding.
  constexpr Index padded() const { return in + pad_low + pad_high; }
  /// The same windows with the least numbers: bins that all have one size slide by it; one window
  /// slides nowhere, so that a stride past the padded input is as good as any larger one; and one
  /// tap has no next. What is kept and walked by stride and dilation is then what windows need.
  constexpr WindowAxis simplified() const {
    WindowAxis a = *this;
    if (rule == ExtentRule::adaptive) {
      if (in % out != 0) {
        return a;
      }
      a.kernel = a.stride = in / out;
      a.rule = ExtentRule::floor;
    }
    a.stride = out == 1 ? least(a.stride, padded()) : a.stride;
    a.dilation = a.kernel == 1 ? 1 : a.dilation;
    return a;
  }

  constexpr Window window(Index o) const {
    if (rule == ExtentRule::adaptive) {
      const Index first = floor_div(o * in, out);
      return {.first = first, .step = 1, .taps = ceil_div((o + 1) * in, out) - first};
    }
    return {.first = o * stride - pad_low, .step = dilation, .taps = kernel};
  }
  /// True for a cell of the input.
  constexpr bool is_real(Index cell) const { return cell >= 0 && cell < in; }
  /// True for a cell of the input or of its declared padding; the overhang of `ceil` is neither.
  constexpr bool is_declared(Index cell) const { return cell >= -pad_low && cell < in + pad_high; }
  constexpr TapRange taps(const Window& window, Visit visit) const {
    switch (visit) {
      case Visit::real: return taps_within(window, 0, in);
      case Visit::declared: return taps_within(window, -pad_low, in + pad_high);
      case Visit::all: break;
    }
    return {0, window.taps};
  }

  // What a range reads. Ranges lie inside the axis; on a resolved axis nothing here overflows,
  // since no number is formed that lies further out than a window which starts at the padded end.

  /// The cells of the input from the first tap of the first of these windows to the last tap of the
  /// last; none where they see only padding.
  constexpr IndexRange needed_cells(const IndexRange& windows) const {
    if (windows.empty()) {
      return {};
    }
    const Window low = window(windows.begin);
    const Window high = window(windows.end - 1);
    return within(low.first, high.cell(high.taps - 1) + 1, in);
  }
  /// The windows that reach over one of these cells, from their first tap to their last: what the
  /// cells are computed from where the windows are the input. With gaps between taps some of them
  /// may touch no cell.
  constexpr IndexRange needed_windows(const IndexRange& cells) const {
    if (cells.empty()) {
      return {};
    }
    if (rule == ExtentRule::adaptive) {
      return within(floor_div(cells.begin * out, in), ceil_div(cells.end * out, in), out);
    }
    return within(ceil_div(cells.begin + pad_low - span() + 1, stride),
                  floor_div(cells.end - 1 + pad_low, stride) + 1,
                  out);
  }

  /// Cells from the first tap of the first to the last tap of the last of so many windows in a row,
  /// and how many windows in a row so many cells hold; less than 1 where they do not hold one.
  constexpr Index spanned(Index windows) const { return (windows - 1) * stride + span(); }
  constexpr Index windows_within(Index cells) const {
    return floor_div(cells - span(), stride) + 1;
  }
  /// At most as many windows reach over one of so many cells in a row.
  constexpr Index windows_over(Index cells) const { return (cells + span() - 2) / stride + 1; }
  /// Cells that neighbouring windows share, gaps counted.
  constexpr Index shared() const { return span() > stride ? span() - stride : 0; }
  /// The windows all of whose taps find cells of the input, and those that find one through `tap`.
  constexpr IndexRange inner_windows() const {
    return {step_from(0, 0), least(cell_step(in - span()) + 1, out)};
  }
  constexpr IndexRange windows_of_tap(Index tap) const {
    const TapRange range =
        taps_within({.first = window(0).cell(tap), .step = stride, .taps = out}, 0, in);
    return {range.begin, range.end};
  }
  /// The windows that see a cell of the input.
  constexpr Progression windows_of_cell(Index cell) const {
    const IndexRange range = needed_windows({cell, cell + 1});
    if (dilation == 1 || range.empty()) {
      return {range.begin, 1, range.count()};
    }
    const Index residue = detail::least_solution(stride, cell + pad_low, dilation);
    if (residue < 0) {
      return {};
    }
    const Index step = windows_apart();
    const Index first = range.begin + (residue - range.begin % step + step) % step;
    return {first, step, first < range.end ? (range.end - 1 - first) / step + 1 : 0};
  }
  /// No cell is seen by more windows, and no window has more taps that `visit` asks for.
  constexpr Index most_windows() const {
    if (rule == ExtentRule::adaptive) {
      return ceil_div(out, in) + 1;
    }
    return least(least(windows_over(1), most_phase_taps()), out);
  }
  constexpr Index most_taps(Visit visit) const {
    if (rule == ExtentRule::adaptive) {
      return ceil_div(in, out) + 1;
    }
    const Index cells = visit == Visit::real ? in : padded();
    return visit == Visit::all ? kernel : least(kernel, ceil_div(cells, dilation));
  }

  // Stride phases, for windows that slide. Cells are counted in strides from the first padded cell
  // on, taps from the first cell of their window on: so many whole steps, and the phase is what is
  // left. Window `o` looks at a cell through a tap where the phase of both is the same and the step
  // of the cell is `o` plus that of the tap.

  constexpr Index cell_step(Index cell) const { return floor_div(cell + pad_low, stride); }
  constexpr Index cell_phase(Index cell) const { return cell + pad_low - cell_step(cell) * stride; }
  constexpr Index cell_at(Index step, Index phase) const { return step * stride + phase - pad_low; }
  constexpr Index tap_step(Index tap) const { return tap * dilation / stride; }
  constexpr Index tap_phase(Index tap) const { return tap * dilation % stride; }
  /// The step of the last tap.
  constexpr Index last_step() const { return tap_step(kernel - 1); }

  /// The window that looks at a cell through a tap, if there could be one: it may be before the
  /// first or behind the last.
  constexpr std::optional<Index> window_through(Index tap, Index cell) const {
    const Index start = cell - tap * dilation;
    const Index o = cell_step(start);
    return cell_at(o, 0) == start ? std::optional(o) : std::nullopt;
  }
  /// Taps of equal phase, and windows that see the same cell, are so far apart. The first
  /// `tap_phases` taps have all phases that taps have.
  constexpr Index taps_apart() const {
    return stride / detail::common_divisor(dilation, stride).divisor;
  }
  constexpr Index windows_apart() const {
    return dilation / detail::common_divisor(stride, dilation).divisor;
  }
  constexpr Index tap_phases() const { return least(kernel, taps_apart()); }
  /// No phase has more taps: so many windows see a cell away from the border.
  constexpr Index most_phase_taps() const { return ceil_div(kernel, taps_apart()); }
  /// The cells of the input that are of a phase, and the taps that see them.
  constexpr Progression phase_cells(Index phase) const {
    const Index first = first_cell(phase);
    return {first, stride, first < in ? (in - 1 - first) / stride + 1 : 0};
  }
  constexpr Progression phase_taps(Index phase) const {
    const Index first = detail::least_solution(dilation, phase, stride);
    if (first < 0 || first >= kernel) {
      return {};
    }
    const Index apart = taps_apart();
    return {first, apart, (kernel - 1 - first) / apart + 1};
  }
  /// The first cell of a phase from cell 0 on, and the first step whose cell of the phase is `cell`
  /// or behind it.
  constexpr Index first_cell(Index phase) const { return cell_at(step_from(0, phase), phase); }
  constexpr Index step_from(Index cell, Index phase) const {
    return ceil_div(cell + pad_low - phase, stride);
  }
  /// The steps that have cells of the input, and those cells.
  constexpr IndexRange steps() const { return {cell_step(0), cell_step(in - 1) + 1}; }
  constexpr IndexRange step_cells(const IndexRange& steps) const {
    return within(cell_at(steps.begin, 0), cell_at(steps.end, 0), in);
  }
  /// From the first to the last window that taps could see the cells of these steps from, had the
  /// axis windows there: the first may be before window 0, the last behind the last.
  constexpr IndexRange windows_of_steps(const IndexRange& steps) const {
    return {steps.begin - last_step(), steps.end};
  }
  /// The steps all of whose cells are cells of the input, and of these the steps all of whose cells
  /// every tap of their phase sees in some window.
  constexpr IndexRange whole_steps() const { return {step_from(0, 0), cell_step(in)}; }
  constexpr IndexRange inner_steps() const {
    const IndexRange whole = whole_steps();
    return {whole.begin > last_step() ? whole.begin : last_step(), least(whole.end, out)};
  }

  /// `in` of a transposed convolution without output padding, and one more than the largest output
  /// padding: stride or dilation, whichever is larger.
  constexpr Index base_extent() const { return spanned(out) - pad_low - pad_high; }
  constexpr Index output_padding_limit() const { return stride > dilation ? stride : dilation; }

  /// The same operator on what a range of outputs needs. Outputs are windows, or cells where the
  /// operator is the transposed one.
  constexpr AxisTile needed(const IndexRange& outputs) const;
  constexpr AxisTile needed_transposed(const IndexRange& cells) const;

  friend constexpr bool operator==(const WindowAxis&, const WindowAxis&) = default;

 private:
  static constexpr Index least(Index a, Index b) { return a < b ? a : b; }
  static constexpr IndexRange within(Index begin, Index end, Index extent) {
    begin = begin > 0 ? begin : 0;
    end = end < extent ? end : extent;
    return begin < end ? IndexRange{begin, end} : IndexRange{};
  }
};

/// A part of an operator along one axis: what it computes, what it reads, and the axis of the
/// operator that does so. Its padding is what is left of the padding of the whole where the part
/// touches the border, and none elsewhere, so a tile is the same operator with another geometry.
struct AxisTile {
  IndexRange outputs;  ///< at least those that were asked for
  IndexRange inputs;   ///< never none
  WindowAxis axis;     ///< `in` and `out` count the cells and windows of these ranges
};

/// Outputs are added only where the operator could not exist without them: windows that see nothing
/// but padding take the nearest that sees a cell along, and bins, which differ, are taken whole.
constexpr AxisTile WindowAxis::needed(const IndexRange& outputs) const {
  if (rule == ExtentRule::transposed) {
    return needed_transposed(outputs);
  }
  const AxisTile whole{{0, out}, {0, in}, *this};
  if (rule == ExtentRule::adaptive) {
    return whole;
  }
  IndexRange windows = outputs;
  if (needed_cells(windows).empty()) {
    const IndexRange sighted = needed_windows({0, in});
    if (sighted.empty()) {
      return whole;
    }
    windows = windows.end <= sighted.begin ? IndexRange{windows.begin, sighted.begin + 1}
                                           : IndexRange{sighted.end - 1, windows.end};
  }
  AxisTile tile{windows, needed_cells(windows), *this};
  const Index begin = window(windows.begin).first;
  const Index end = window(windows.end - 1).first + span();
  const Index beyond = end - tile.inputs.end;  // high padding, and the overhang of `ceil`
  tile.axis.in = tile.inputs.count();
  tile.axis.out = windows.count();
  tile.axis.pad_low = tile.inputs.begin - begin;
  tile.axis.pad_high = beyond < pad_high ? beyond : pad_high;
  return tile;
}

/// As many windows are added as it takes to begin at or before the first cell.
constexpr AxisTile WindowAxis::needed_transposed(const IndexRange& cells) const {
  const Index covering = floor_div(cells.begin + pad_low, stride);
  const Index reaching = ceil_div(cells.begin + pad_low - span() + 1, stride);
  const Index last = floor_div(cells.end - 1 + pad_low, stride);
  const Index first = reaching < covering ? reaching : covering;
  AxisTile tile{cells, {first > 0 ? first : 0, (last < out ? last : out - 1) + 1}, *this};
  if (tile.inputs.begin >= out) {
    tile.inputs.begin = out - 1;
  }
  const Index begin = window(tile.inputs.begin).first;
  const Index end = window(tile.inputs.end - 1).first + span();
  tile.axis.in = cells.count();
  tile.axis.out = tile.inputs.count();
  tile.axis.pad_low = cells.begin - begin;
  tile.axis.pad_high = end > cells.end ? end - cells.end : 0;
  return tile;
}

}  // namespace fenestra

// Stride phases, and how many windows and cells go with each other, against plain loops over
// (window, tap), exhaustively on the axes of window_axes_test.hpp.
//
// The loops look at the cells of windows only; they divide by no stride.
#include <fenestra/spec/window.hpp>
#include <fenestra/spec/window_axes_test.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace fenestra {
namespace {

constexpr WindowAxis kStrided{
    .in = 9, .kernel = 3, .stride = 2, .pad_low = 1, .pad_high = 1, .out = 5};
static_assert(kStrided.cell_step(0) == 0 && kStrided.cell_phase(0) == 1 &&
              kStrided.cell_at(1, 0) == 1 && kStrided.cell_step(-2) == -1);
static_assert(kStrided.phase_cells(0).first == 1 && kStrided.phase_cells(0).count == 4 &&
              kStrided.phase_taps(0).count == 2 && kStrided.phase_taps(1).first == 1);
static_assert(kStrided.window_through(0, 1) == 1 && kStrided.window_through(2, 1) == 0 &&
              !kStrided.window_through(1, 1));
static_assert(kStrided.inner_windows() == IndexRange{1, 4});

// Factors whose product does not fit in 64 bits.
constexpr Index kHuge = std::numeric_limits<Index>::max() / 8;
static_assert(detail::least_solution(kHuge - 2, kHuge - 1, kHuge) ==
              detail::least_solution(kHuge - 2, 2 * kHuge - 1, kHuge));
static_assert(detail::common_divisor(kHuge - 1, kHuge).divisor == 1);
static_assert(detail::least_solution(4, 3, 6) == -1 && detail::least_solution(4, 2, 6) == 2);

/// The phase of a cell as the loops know it: how far it is behind the start of the last window that
/// begins at or before it, were there windows on both sides without end.
struct Position {
  Index step = 0;
  Index phase = 0;
};
Position walked(const WindowAxis& a, Index distance) {
  Position at;
  for (; distance < 0; distance += a.stride) {
    --at.step;
  }
  for (; distance >= a.stride; distance -= a.stride) {
    ++at.step;
  }
  at.phase = distance;
  return at;
}

std::string phase_difference(const WindowAxis& a) {
  for (Index cell = -a.span() - a.pad_low; cell < a.in + a.pad_high + a.span(); ++cell) {
    const Position at = walked(a, cell + a.pad_low);
    if (a.cell_step(cell) != at.step || a.cell_phase(cell) != at.phase ||
        a.cell_at(at.step, at.phase) != cell) {
      return "cell in steps";
    }
    for (Index phase = 0; phase < a.stride; ++phase) {
      Index step = a.cell_step(cell) - 1;
      while (a.cell_at(step, phase) < cell) {
        ++step;
      }
      if (a.step_from(cell, phase) != step) {
        return "step_from";
      }
    }
  }
  for (Index tap = 0; tap < a.kernel; ++tap) {
    const Position at = walked(a, tap * a.dilation);
    if (a.tap_step(tap) != at.step || a.tap_phase(tap) != at.phase) {
      return "tap in steps";
    }
  }
  std::vector<Index> phases_of_taps;
  Index most_taps = 0;
  for (Index phase = 0; phase < a.stride; ++phase) {
    std::vector<Index> cells, taps;
    for (Index cell = 0; cell < a.in; ++cell) {
      if (walked(a, cell + a.pad_low).phase == phase) {
        cells.push_back(cell);
      }
    }
    for (Index tap = 0; tap < a.kernel; ++tap) {
      if (walked(a, tap * a.dilation).phase == phase) {
        taps.push_back(tap);
      }
    }
    if (!taps.empty()) {
      phases_of_taps.push_back(taps.front());
    }
    most_taps = std::max(most_taps, static_cast<Index>(taps.size()));
    if (listed(a.phase_cells(phase)) != cells || listed(a.phase_taps(phase)) != taps) {
      return "cells and taps of a phase";
    }
    if (!cells.empty() && a.first_cell(phase) != cells.front()) {
      return "first cell of a phase";
    }
  }
  std::sort(phases_of_taps.begin(), phases_of_taps.end());
  if (listed(IndexRange{0, a.tap_phases()}) != phases_of_taps) {
    return "phases of the first taps";
  }
  return most_taps == a.most_phase_taps() ? "" : "most taps of a phase";
}

std::string window_difference(const WindowAxis& a) {
  Index most_windows = 0;
  for (Index cell = 0; cell < a.in; ++cell) {
    std::vector<Index> windows;
    for (Index o = 0; o < a.out; ++o) {
      for (Index tap = 0; tap < a.kernel; ++tap) {
        const bool sees = a.window(o).cell(tap) == cell;
        const std::optional<Index> through = a.window_through(tap, cell);
        if (sees != (through == o) || (sees && a.window(o).tap(cell) != tap)) {
          return "window_through";
        }
        if (sees) {
          windows.push_back(o);
        }
      }
    }
    if (listed(a.windows_of_cell(cell)) != windows) {
      return "windows_of_cell";
    }
    most_windows = std::max(most_windows, static_cast<Index>(windows.size()));
  }
  if (a.most_windows() < most_windows) {
    return "most_windows";
  }
  std::vector<Index> inner;
  Index most_real = 0;
  Index most_declared = 0;
  for (Index o = 0; o < a.out; ++o) {
    Index real = 0;
    Index declared = 0;
    for (Index tap = 0; tap < a.kernel; ++tap) {
      real += a.is_real(a.window(o).cell(tap)) ? 1 : 0;
      declared += a.is_declared(a.window(o).cell(tap)) ? 1 : 0;
    }
    // Gaps of a window may straddle the input; its ends say whether it lies inside.
    if (a.is_real(a.window(o).first) && a.is_real(a.window(o).cell(a.kernel - 1))) {
      inner.push_back(o);
    }
    most_real = std::max(most_real, real);
    most_declared = std::max(most_declared, declared);
  }
  if (listed(a.inner_windows()) != inner) {
    return "inner_windows";
  }
  if (a.most_taps(Visit::real) < most_real || a.most_taps(Visit::declared) < most_declared ||
      a.most_taps(Visit::all) != a.kernel) {
    return "most_taps";
  }
  for (Index tap = 0; tap < a.kernel; ++tap) {
    std::vector<Index> windows;
    for (Index o = 0; o < a.out; ++o) {
      if (a.is_real(a.window(o).cell(tap))) {
        windows.push_back(o);
      }
    }
    if (listed(a.windows_of_tap(tap)) != windows) {
      return "windows_of_tap";
    }
  }
  return "";
}

/// The windows, with those before the first and behind the last, that look at a cell of the steps
/// through some tap; the cells need not exist.
IndexRange windows_without_end(const WindowAxis& a, Index begin, Index end) {
  IndexRange windows;
  for (Index o = begin - a.span(); o < end; ++o) {
    for (Index tap = 0; tap < a.kernel; ++tap) {
      const Index cell = a.window(o).cell(tap);
      if (cell >= a.cell_at(begin, 0) && cell < a.cell_at(end, 0)) {
        windows = hull(windows, {o, o + 1});
      }
    }
  }
  return windows;
}

std::string step_difference(const WindowAxis& a) {
  const IndexRange steps = a.steps();
  if (a.cell_step(0) != steps.begin || a.cell_step(a.in - 1) != steps.end - 1) {
    return "steps";
  }
  std::vector<Index> inner;
  std::vector<Index> whole_steps;
  for (Index begin = steps.begin - 1; begin <= steps.end; ++begin) {
    for (Index end = begin; end <= steps.end + 1; ++end) {
      std::vector<Index> cells;
      for (Index cell = 0; cell < a.in; ++cell) {
        if (a.cell_step(cell) >= begin && a.cell_step(cell) < end) {
          cells.push_back(cell);
        }
      }
      if (listed(a.step_cells({begin, end})) != cells) {
        return "step_cells";
      }
      if (end > begin && a.windows_of_steps({begin, end}) != windows_without_end(a, begin, end)) {
        return "windows_of_steps";
      }
    }
    bool seen = true;
    for (Index tap = 0; tap < a.kernel; ++tap) {
      const Index o = begin - a.tap_step(tap);
      seen = seen && o >= 0 && o < a.out;
    }
    bool whole = true;
    for (Index phase = 0; phase < a.stride; ++phase) {
      whole = whole && a.is_real(a.cell_at(begin, phase));
    }
    if (whole) {
      whole_steps.push_back(begin);
    }
    if (whole && seen) {
      inner.push_back(begin);
    }
  }
  if (listed(a.whole_steps()) != whole_steps) {
    return "whole_steps";
  }
  return listed(a.inner_steps()) == inner ? "" : "inner_steps";
}

std::string count_difference(const WindowAxis& a) {
  for (Index windows = 1; windows <= 4; ++windows) {
    const Window first = a.window(0);
    const Window last = a.window(windows - 1);
    if (a.spanned(windows) != last.cell(a.kernel - 1) - first.first + 1) {
      return "spanned";
    }
  }
  for (Index cells = a.span(); cells < a.span() + 2 * a.stride; ++cells) {
    Index windows = 0;
    while (a.spanned(windows + 1) <= cells) {
      ++windows;
    }
    if (a.windows_within(cells) != windows) {
      return "windows_within";
    }
  }
  if (a.windows_within(a.span() - 1) >= 1) {
    return "a window in less than its span";
  }
  Index shared = 0;
  for (Index cell = a.window(0).first; cell <= a.window(0).cell(a.kernel - 1); ++cell) {
    shared += cell >= a.window(1).first ? 1 : 0;
  }
  if (a.shared() != shared) {
    return "shared";
  }
  // Windows without end, and as many cells as wanted from any phase on.
  for (Index cells = 1; cells <= 2 * a.stride + 1; ++cells) {
    Index most = 0;
    for (Index begin = 0; begin < a.stride; ++begin) {
      Index windows = 0;
      for (Index o = -a.span() - 1; o <= a.stride + cells; ++o) {
        const Index start = o * a.stride;
        windows += start < begin + cells && start + a.span() > begin ? 1 : 0;
      }
      most = std::max(most, windows);
    }
    if (a.windows_over(cells) != most) {
      return "windows_over";
    }
  }
  return "";
}

TEST(WindowPhase, CellsTapsAndWindowsGoTogetherAsPlainLoopsSay) {
  Index axes = 0;
  Index failures = 0;
  for_each_axis([&](const WindowAxis& a) {
    ++axes;
    for (const std::string& difference :
         {phase_difference(a), window_difference(a), step_difference(a), count_difference(a)}) {
      if (!difference.empty() && ++failures <= 10) {
        ADD_FAILURE() << difference << ": " << describe(a);
      }
    }
  });
  EXPECT_EQ(failures, 0);
  EXPECT_GE(axes, 30'000);
}

/// Whether the windows of two axes look at the same cells, and the cells know it.
bool alike(const WindowAxis& a, const WindowAxis& b) {
  bool same = a.in == b.in && a.out == b.out;
  for (Index o = 0; same && o < a.out; ++o) {
    const Window p = a.window(o), q = b.window(o);
    same = p.taps == q.taps;
    for (Index tap = 0; same && tap < p.taps; ++tap) {
      same = p.cell(tap) == q.cell(tap) && a.is_declared(p.cell(tap)) == b.is_declared(q.cell(tap));
    }
  }
  for (Index cell = 0; same && cell < a.in; ++cell) {
    same = listed(a.windows_of_cell(cell)) == listed(b.windows_of_cell(cell));
  }
  return same;
}

TEST(WindowPhase, ASimplifiedAxisHasTheSameWindowsInLeastNumbers) {
  Index changed = 0;
  for_each_axis([&](const WindowAxis& a) {
    const WindowAxis simple = a.simplified();
    EXPECT_TRUE(alike(a, simple)) << describe(a);
    EXPECT_EQ(simple.simplified(), simple) << describe(a);
    EXPECT_TRUE(simple.out > 1 || simple.stride <= simple.padded()) << describe(a);
    for (Index cell = -a.pad_low; cell < a.in + a.pad_high; ++cell) {
      EXPECT_EQ(simple.cell_step(cell), a.cell_step(cell)) << describe(a);
    }
    EXPECT_TRUE(simple.kernel > 1 || simple.dilation == 1) << describe(a);
    changed += simple == a ? 0 : 1;
  });
  EXPECT_GT(changed, 1'000);
  for (Index in = 1; in <= 20; ++in) {
    for (Index out = 1; out <= 20; ++out) {
      const WindowAxis a = resolve_adaptive(in, out, 0).axis;
      const WindowAxis simple = a.simplified();
      EXPECT_TRUE(alike(a, simple)) << in << " cells, " << out << " bins";
      EXPECT_EQ(simple.rule == ExtentRule::adaptive, in % out != 0);
    }
  }
}

TEST(WindowPhase, TheExtentOfATransposedAxisIsItsBaseAndItsOutputPadding) {
  for_each_axis([&](const WindowAxis& a) {
    if (a.rule == ExtentRule::transposed) {
      const Index extra = a.in - a.base_extent();
      EXPECT_GE(extra, 0) << describe(a);
      EXPECT_LT(extra, a.output_padding_limit()) << describe(a);
    }
  });
}

TEST(WindowPhase, BinsKnowTheWindowsOfACellAndTheMostOfBoth) {
  for (Index in = 1; in <= 20; ++in) {
    for (Index out = 1; out <= 20; ++out) {
      const WindowAxis a = resolve_adaptive(in, out, 0).axis;
      for (Index cell = 0; cell < in; ++cell) {
        std::vector<Index> windows;
        for (Index o = 0; o < out; ++o) {
          const Window window = a.window(o);
          EXPECT_LE(window.taps, a.most_taps(Visit::all));
          if (cell >= window.first && cell < window.first + window.taps) {
            windows.push_back(o);
          }
        }
        ASSERT_EQ(listed(a.windows_of_cell(cell)), windows) << in << " cells, " << out << " bins";
        EXPECT_LE(static_cast<Index>(windows.size()), a.most_windows());
      }
    }
  }
}

}  // namespace
}  // namespace fenestra

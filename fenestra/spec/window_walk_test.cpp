// The views by which kernels walk an axis, against plain loops over (window, tap), exhaustively on
// the axes of window_axes_test.hpp; and distances in tensors against the cells of for_each_tap.
//
// The loops look at the cells of windows only; they divide by no stride.
#include <fenestra/spec/window_axes_test.hpp>
#include <fenestra/spec/window_walk.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fenestra {
namespace {

static_assert(Dealing{3}.phase(7) == 1 && Dealing{3}.place(7) == 2 &&
              Dealing{3}.position(1, 2) == 7);
static_assert(Dealing{3}.offset(7, 10) == 12 && Dealing{1}.offset(7, 10) == 7);
static_assert(steps_before(-3, 2, 2) == 3 && steps_before(2, 2, 2) == 0);

TEST(WindowWalk, PositionsAreDealtByTurns) {
  for (Index phases = 1; phases <= 6; ++phases) {
    const Dealing dealing{phases};
    for (Index extent = 0; extent <= 20; ++extent) {
      // Cards, one to each phase in turn.
      std::vector<std::vector<Index>> hands(static_cast<std::size_t>(phases));
      Index phase = 0;
      for (Index position = 0; position < extent; ++position) {
        std::vector<Index>& hand = hands[static_cast<std::size_t>(phase)];
        const auto place = static_cast<Index>(hand.size());
        EXPECT_EQ(dealing.phase(position), phase);
        EXPECT_EQ(dealing.place(position), place);
        EXPECT_EQ(dealing.position(phase, place), position);
        EXPECT_EQ(dealing.offset(position, 100), 100 * phase + place);
        hand.push_back(position);
        phase = phase + 1 < phases ? phase + 1 : 0;
      }
      Index before = 0;
      for (phase = 0; phase < phases; ++phase) {
        const std::vector<Index>& hand = hands[static_cast<std::size_t>(phase)];
        EXPECT_EQ(dealing.places(phase, extent), static_cast<Index>(hand.size()));
        for (const Index position : hand) {
          EXPECT_EQ(dealing.packed(position, extent), before++);
        }
      }
    }
  }
}

TEST(WindowWalk, EvenlySpacedCellsAreCountedWithoutVisitingAny) {
  for (Index first = -9; first <= 9; ++first) {
    for (Index step = 1; step <= 4; ++step) {
      for (Index taps = 0; taps <= 6; ++taps) {
        for (Index extent = 1; extent <= 7; ++extent) {
          const WindowSeries series{.step = step, .extent = extent};
          std::vector<Index> inside;
          for (Index tap = 0; tap < taps; ++tap) {
            const Index cell = first + tap * step;
            EXPECT_EQ(series.has(cell), cell >= 0 && cell < extent);
            if (cell >= 0 && cell < extent) {
              inside.push_back(tap);
            }
          }
          const TapRange found = series.seeing(first, taps);
          ASSERT_EQ(listed(IndexRange{found.begin, found.end}), inside)
              << first << " " << step << " " << taps << " " << extent;
          EXPECT_TRUE(found.begin >= 0 && found.end <= taps && found.count() >= 0);
        }
      }
    }
  }
}

/// The window, before the first or behind the last too, that looks at `cell` through `tap`.
std::optional<Index> looking(const WindowAxis& a, Index tap, Index cell) {
  Index o = -a.span() - a.in - a.pad_low;
  while (a.window(o).cell(tap) < cell) {
    ++o;
  }
  return a.window(o).cell(tap) == cell ? std::optional(o) : std::nullopt;
}

std::string series_difference(const WindowAxis& a) {
  const WindowSeries forward = window_series(a);
  bool identity = a.kernel == 1 && a.in == a.out;
  for (Index o = 0; o < a.out; ++o) {
    for (Index tap = 0; tap < a.kernel; ++tap) {
      const Index cell = a.window(o).cell(tap);
      identity = identity && cell == o;
      if (forward.window(o).cell(tap) != cell || forward.has(cell) != a.is_real(cell) ||
          forward.window(o).first + forward.shift(tap) != cell) {
        return "windows in order";
      }
    }
  }
  // One window may have any stride; such an axis counts only where the stride says so.
  if (forward.count != a.out || (a.out > 1 && forward.is_identity() != identity)) {
    return "an identity";
  }
  for (Index phase = 0; phase < a.stride; ++phase) {
    const PhaseSeries s = phase_series(a, phase);
    if (s.windows.count != s.cells.count || s.windows.taps != s.taps.count) {
      return "cells and taps of a phase";
    }
    for (Index i = 0; i < s.cells.count; ++i) {
      const Window window = s.windows.window(i);
      Index least = 0;
      Index most = 0;
      for (Index j = 0; j < s.taps.count; ++j) {
        const std::optional<Index> o = looking(a, s.taps.at(j), s.cells.at(i));
        if (window.cell(j) != o || s.windows.has(*o) != (*o >= 0 && *o < a.out)) {
          return "windows of a cell of a phase";
        }
        least = std::min(least, *o - window.first);
        most = std::max(most, *o - window.first);
      }
      if (s.taps.count > 0 &&
          (s.windows.least_shift() != least || s.windows.reach() != most - least)) {
        return "reach of a phase";
      }
    }
  }
  return "";
}

std::string target_difference(const WindowAxis& a, bool transposed) {
  const TargetAxis t(a, transposed);
  const auto source_of = [&](Index output, Index tap) {
    return transposed ? looking(a, tap, output) : std::optional(a.window(output).cell(tap));
  };
  if (t.target != (transposed ? a.in : a.out) || t.source != (transposed ? a.out : a.in)) {
    return "extents";
  }
  std::vector<Index> per_phase(static_cast<std::size_t>(t.phases), 0);
  Index most = 0;
  Index least_seen = t.first;
  for (Index output = 0, phase = 0, place = 0; output < t.target; ++output) {
    for (Index tap = 0; tap < a.kernel; ++tap) {
      const std::optional<Index> source = source_of(output, tap);
      const Index shift = t.shift(phase, tap);
      if (source.has_value() != (shift >= 0) || (source && t.first_of(place) + shift != *source)) {
        return "shift";
      }
      if (source) {
        most = std::max(most, shift);
        least_seen = std::min(least_seen, *source);
        if (shift > t.reach || *source >= t.first + t.seen(place + 1)) {
          return "reach";
        }
      }
    }
    ++per_phase[static_cast<std::size_t>(phase)];
    if (t.outputs({place, place + 1}).begin != output - phase ||
        t.outputs({place, place + 1}).end != std::min(output - phase + t.phases, t.target)) {
      return "outputs of a place";
    }
    if (++phase == t.phases) {
      phase = 0;
      ++place;
    }
  }
  if (least_seen < t.first || (!transposed && most != t.reach)) {
    return "first";
  }
  if (t.places() != per_phase[0]) {
    return "places";
  }
  for (Index phase = 0; phase < t.phases; ++phase) {
    const Index count = per_phase[static_cast<std::size_t>(phase)];
    for (Index begin = 0; begin < count; ++begin) {
      for (Index end = begin; end <= t.places(); ++end) {
        if (t.places(phase, begin, end) != std::min(end, count) - begin) {
          return "places of a phase";
        }
      }
    }
  }
  std::vector<Index> existing;
  for (Index i = 0; i < t.seen(t.places()); ++i) {
    if (t.first + i >= 0 && t.first + i < t.source) {
      existing.push_back(i);
    }
  }
  const TapRange found = t.existing();
  if (listed(IndexRange{found.begin, found.end}) != existing ||
      t.sees_source_only() != (static_cast<Index>(existing.size()) == t.seen(t.places()))) {
    return "existing";
  }
  return "";
}

TEST(WindowWalk, ViewsOfAnAxisLookWhereItsWindowsDo) {
  Index axes = 0;
  Index failures = 0;
  for_each_axis([&](const WindowAxis& a) {
    ++axes;
    for (const std::string& difference :
         {series_difference(a), target_difference(a, false), target_difference(a, true)}) {
      if (!difference.empty() && ++failures <= 10) {
        ADD_FAILURE() << difference << ": " << describe(a);
      }
    }
  });
  EXPECT_EQ(failures, 0);
  EXPECT_GE(axes, 30'000);
}

TEST(WindowWalk, DistancesLeadFromTheFirstTapOfTheFirstWindowToTheCell) {
  std::vector<WindowAxis> axes;
  for (const Index stride : {1, 2, 3}) {
    for (const Index dilation : {1, 2}) {
      for (const Index kernel : {1, 3}) {
        const AxisRequest r{.in = 6,
                            .kernel = kernel,
                            .stride = stride,
                            .dilation = dilation,
                            .pad_low = 1,
                            .pad_high = 1};
        axes.push_back(resolve_sliding(r, 0, ExtentRule::floor).axis);
      }
    }
  }
  for (const WindowAxis& outer : axes) {
    for (const WindowAxis& inner : axes) {
      Windows windows;
      windows.push_back(outer);
      windows.push_back(inner);
      const Index pitch[] = {inner.in, 1};
      const std::uint64_t wrapping[] = {static_cast<std::uint64_t>(inner.in), 1};
      const Index origin = outer.window(0).first * pitch[0] + inner.window(0).first;
      for (Index o = 0; o < windows.out_cells(); ++o) {
        for_each_tap(windows, o, Visit::real, [&](const Tap& tap) {
          ASSERT_EQ(
              origin + window_distance(windows, o, pitch) + tap_distance(windows, tap.tap, pitch),
              tap.cell);
          ASSERT_EQ(static_cast<std::uint64_t>(origin) + window_distance(windows, o, wrapping) +
                        tap_distance(windows, tap.tap, wrapping),
                    static_cast<std::uint64_t>(tap.cell));
        });
      }
    }
  }
}

}  // namespace
}  // namespace fenestra

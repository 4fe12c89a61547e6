// The window map against brute force, exhaustively on one axis: the input from 0 to 8 and every
// other field from 0 to 7, three million geometries, a million of them valid.
//
// The brute force slides a window over an explicit list of cells, or scatters taps into an explicit
// array, and counts; it shares no arithmetic with the library.
#include <fenestra/spec/window.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace fenestra {
namespace {

// Known answers, at compile time.

constexpr Index sliding(AxisRequest request, ExtentRule rule) {
  return resolve_sliding(request, 0, rule).axis.out;
}
static_assert(sliding({.in = 6, .kernel = 1, .stride = 2}, ExtentRule::ceil) == 3);
static_assert(sliding({.in = 5, .kernel = 3, .stride = 3, .pad_low = 1, .pad_high = 1},
                      ExtentRule::ceil) == 2);
static_assert(sliding({.in = 32, .kernel = 8, .stride = 4}, ExtentRule::floor) == 7);
static_assert(sliding({.in = 3, .kernel = 2, .stride = 2}, ExtentRule::ceil) == 2);
static_assert(sliding({.in = 7, .kernel = 3, .stride = 3}, ExtentRule::ceil) == 3);
static_assert(sliding({.in = 6, .kernel = 7, .stride = 2}, ExtentRule::ceil) == 1);
static_assert(resolve_sliding({.in = 6, .kernel = 8, .stride = 2}, 0, ExtentRule::ceil)
                  .fault.code == ErrorCode::kernel_exceeds_input);
static_assert(resolve_sliding({.in = 6, .kernel = 7, .stride = 2}, 0, ExtentRule::floor)
                  .fault.code == ErrorCode::kernel_exceeds_input);
static_assert(sliding({.in = 32, .kernel = 3, .stride = 2, .pad_low = 1, .pad_high = 1},
                      ExtentRule::floor) == 16);

constexpr Index transposed(AxisRequest request, Index output_padding) {
  return resolve_transposed(request, 0, output_padding, {}).axis.in;
}
static_assert(transposed({.in = 1, .kernel = 3, .pad_low = 1, .pad_high = 1}, 0) == 1);
static_assert(transposed({.in = 3, .kernel = 3, .stride = 2}, 0) == 7);
static_assert(transposed({.in = 3, .kernel = 3, .stride = 2, .pad_low = 1, .pad_high = 1}, 0) == 5);
static_assert(transposed({.in = 3, .kernel = 3, .stride = 2, .pad_low = 1, .pad_high = 1}, 1) == 6);

constexpr bool bin_is(Index in, Index out, Index j, Index begin, Index end) {
  const Window w = resolve_adaptive(in, out, 0).axis.window(j);
  return w.first == begin && w.cell(w.taps) == end;
}
static_assert(bin_is(10, 3, 0, 0, 4) && bin_is(10, 3, 1, 3, 7) && bin_is(10, 3, 2, 6, 10));
static_assert(bin_is(7, 1, 0, 0, 7), "one bin is a global pool");
static_assert(bin_is(2, 3, 0, 0, 1) && bin_is(2, 3, 1, 0, 2) && bin_is(2, 3, 2, 1, 2),
              "more bins than cells");

// A sum of visited cells in a constant expression: the map itself is constexpr.
constexpr Index visited(const Windows& windows, Index o) {
  Index sum = 0;
  for_each_tap(windows, o, [&](const Tap& tap) { sum += tap.cell; });
  return sum;
}
constexpr Windows two_axes() {
  Windows windows;
  windows.push_back(resolve_sliding({.in = 3, .kernel = 2}, 0, ExtentRule::floor).axis);
  windows.push_back(
      resolve_sliding({.in = 4, .kernel = 2, .stride = 2}, 1, ExtentRule::floor).axis);
  return windows;
}
static_assert(two_axes().out_cells() == 4 && visited(two_axes(), 3) == 6 + 7 + 10 + 11);

template <Windows windows>
constexpr int rank_of = windows.rank();
static_assert(rank_of<two_axes()> == 2, "windows are a template argument");

// Brute force.

constexpr Index kLargest = 7;

struct Cell {
  Index real = -1;  ///< index in the input, -1 for padding and overhang
  bool declared = false;
};

/// The padded input as a list, with room for a window that hangs over its end.
std::vector<Cell> list_of_cells(const AxisRequest& r) {
  std::vector<Cell> cells;
  for (Index i = 0; i < r.pad_low; ++i) {
    cells.push_back({.declared = true});
  }
  for (Index i = 0; i < r.in; ++i) {
    cells.push_back({.real = i, .declared = true});
  }
  for (Index i = 0; i < r.pad_high; ++i) {
    cells.push_back({.declared = true});
  }
  return cells;
}

/// Places in that list of the taps of one window.
std::vector<Index> taps_from(Index start, const AxisRequest& r) {
  std::vector<Index> places;
  Index place = start;
  for (Index t = 0; t < r.kernel; ++t) {
    places.push_back(place);
    place += r.dilation;
  }
  return places;
}

/// Starts of all windows. Floor: as long as the window lies inside. Ceil: until one has reached the
/// last cell, and the last of them goes if it starts behind the input, on the high padding or
/// beyond; a first one that does not lie inside must have left it by less than a stride.
std::vector<Index> starts_of(const AxisRequest& r, bool ceil) {
  const Index end = static_cast<Index>(list_of_cells(r).size());
  std::vector<Index> starts;
  if (taps_from(0, r).back() >= end + (ceil ? r.stride - 1 : 0)) {
    return starts;
  }
  for (Index p = 0; ceil || taps_from(p, r).back() < end; p += r.stride) {
    starts.push_back(p);
    if (ceil && taps_from(p, r).back() >= end - 1) {
      break;
    }
  }
  if (ceil && starts.back() >= r.pad_low + r.in) {
    starts.pop_back();
  }
  return starts;
}

/// The first thing wrong with the numbers of a request, in the order of the fields.
ErrorCode complaint_about(const AxisRequest& r) {
  if (r.in < 1) {
    return ErrorCode::invalid_extent;
  }
  if (r.kernel < 1) {
    return ErrorCode::invalid_kernel;
  }
  if (r.stride < 1) {
    return ErrorCode::invalid_stride;
  }
  return r.dilation < 1 ? ErrorCode::invalid_dilation : ErrorCode::none;
}

std::string describe(const AxisRequest& r, const std::string& more) {
  return "i=" + std::to_string(r.in) + " k=" + std::to_string(r.kernel) +
         " s=" + std::to_string(r.stride) + " d=" + std::to_string(r.dilation) +
         " pl=" + std::to_string(r.pad_low) + " pr=" + std::to_string(r.pad_high) + more;
}

/// Calls f for every request with an input from 0 to 8 and all other fields from 0 to 7.
template <class F>
void for_each_request(F&& f) {
  for (Index in = 0; in <= kLargest + 1; ++in) {
    for (Index kernel = 0; kernel <= kLargest; ++kernel) {
      for (Index stride = 0; stride <= kLargest; ++stride) {
        for (Index dilation = 0; dilation <= kLargest; ++dilation) {
          for (Index low = 0; low <= kLargest; ++low) {
            for (Index high = 0; high <= kLargest; ++high) {
              f(AxisRequest{.in = in,
                            .kernel = kernel,
                            .stride = stride,
                            .dilation = dilation,
                            .pad_low = low,
                            .pad_high = high});
            }
          }
        }
      }
    }
  }
}

/// "" where the axis and the brute force agree.
std::string sliding_difference(const AxisRequest& r, bool ceil) {
  const auto [axis, fault] = resolve_sliding(r, 0, ceil ? ExtentRule::ceil : ExtentRule::floor);
  if (const ErrorCode code = complaint_about(r); code != ErrorCode::none) {
    return fault.code == code ? "" : "fault";
  }
  const std::vector<Index> starts = starts_of(r, ceil);
  if (starts.empty()) {
    return fault.code == ErrorCode::kernel_exceeds_input ? "" : "a window that does not fit";
  }
  if (fault || axis.out != static_cast<Index>(starts.size())) {
    return "extent";
  }
  Windows windows;
  windows.push_back(axis);
  const std::vector<Cell> cells = list_of_cells(r);
  for (Index o = 0; o < axis.out; ++o) {
    const std::vector<Index> places = taps_from(starts[static_cast<std::size_t>(o)], r);
    std::vector<Tap> taps;
    for_each_tap(windows, o, [&](const Tap& tap) { taps.push_back(tap); });
    if (taps.size() != places.size()) {
      return "number of taps";
    }
    for (std::size_t t = 0; t < places.size(); ++t) {
      const auto place = static_cast<std::size_t>(places[t]);
      const Cell cell = place < cells.size() ? cells[place] : Cell{};
      const Index mapped = axis.window(o).cell(static_cast<Index>(t));
      if (mapped + r.pad_low != places[t] || axis.is_real(mapped) != (cell.real >= 0) ||
          axis.is_declared(mapped) != cell.declared) {
        return "cell of a tap";
      }
      if (taps[t].tap != static_cast<Index>(t) || taps[t].cell != cell.real ||
          taps[t].declared != cell.declared) {
        return "for_each_tap";
      }
    }
  }
  return "";
}

/// Scatters every tap of every input cell into an array just long enough, crops it and adds the
/// output padding.
std::string transposed_difference(const AxisRequest& r, Index output_padding) {
  const auto [axis, fault] = resolve_transposed(r, 0, output_padding, {});
  if (const ErrorCode code = complaint_about(r); code != ErrorCode::none) {
    return fault.code == code ? "" : "fault";
  }
  if (output_padding >= r.stride && output_padding >= r.dilation) {
    return fault.code == ErrorCode::invalid_output_padding ? "" : "output padding accepted";
  }
  std::vector<std::vector<Index>> landed;  // per input cell, the place of each tap
  Index length = 0;
  for (Index i = 0, start = 0; i < r.in; ++i, start += r.stride) {
    landed.push_back(taps_from(start, r));
    length = std::max(length, landed.back().back() + 1);
  }
  std::vector<Index>
      array;  // what is left of the places after cropping; -1 where nothing was scattered
  for (Index place = r.pad_low; place < length - r.pad_high + output_padding; ++place) {
    array.push_back(place < length ? place : -1);
  }
  if (array.empty()) {
    return fault.code == ErrorCode::empty_output ? "" : "empty output accepted";
  }
  const auto extent = static_cast<Index>(array.size());
  if (fault || axis.in != extent || axis.out != r.in) {
    return "extent";
  }
  const auto by_size = resolve_transposed(r, 0, 0, extent);
  if (by_size.fault || by_size.axis != axis) {
    return "the same extent by output size";
  }
  Windows windows;
  windows.push_back(axis);
  for (Index i = 0; i < r.in; ++i) {
    const std::vector<Index>& places = landed[static_cast<std::size_t>(i)];
    std::size_t t = 0;
    bool same = true;
    for_each_tap(windows, i, [&](const Tap& tap) {
      const auto found = std::find(array.begin(), array.end(), places[t]);
      const Index cell = found == array.end() ? -1 : found - array.begin();
      const Index mapped = axis.window(i).cell(tap.tap);
      same = same && tap.tap == static_cast<Index>(t) && tap.cell == cell &&
             axis.is_real(mapped) == (cell >= 0) && (cell < 0 || mapped == cell);
      ++t;
    });
    if (!same || t != places.size()) {
      return "index map";
    }
  }
  return "";
}

TEST(Window, EveryOneDimensionalGeometryEqualsBruteForceOverAMillionOfThem) {
  Index combinations = 0;
  Index valid = 0;
  Index failures = 0;
  const auto count =
      [&](const std::string& difference, const AxisRequest& r, const std::string& more) {
        ++combinations;
        if (!difference.empty() && ++failures <= 10) {
          ADD_FAILURE() << difference << ": " << describe(r, more);
        }
      };
  for_each_request([&](const AxisRequest& r) {
    for (const bool ceil : {false, true}) {
      count(sliding_difference(r, ceil), r, ceil ? " ceil" : "");
      valid += resolve_sliding(r, 0, ceil ? ExtentRule::ceil : ExtentRule::floor).fault ? 0 : 1;
    }
    for (Index op = 0; op <= kLargest; ++op) {
      count(transposed_difference(r, op), r, " op=" + std::to_string(op));
      valid += resolve_transposed(r, 0, op, {}).fault ? 0 : 1;
    }
  });
  EXPECT_EQ(failures, 0);
  EXPECT_GE(valid, 1'000'000) << "of " << combinations;
  RecordProperty("combinations", std::to_string(combinations));
  RecordProperty("valid", std::to_string(valid));
}

TEST(Window, AnAdaptiveBinHoldsExactlyTheCellsItsShareOfTheInputTouches) {
  for (Index in = 1; in <= 64; ++in) {
    for (Index out = 1; out <= 64; ++out) {
      const auto [axis, fault] = resolve_adaptive(in, out, 0);
      ASSERT_FALSE(fault);
      Windows windows;
      windows.push_back(axis);
      for (Index j = 0; j < out; ++j) {
        // Bin j is the stretch [j*in/out, (j+1)*in/out) of the input, cell c is [c, c+1): they
        // meet.
        std::vector<Index> needed;
        for (Index c = 0; c < in; ++c) {
          if (c * out < (j + 1) * in && (c + 1) * out > j * in) {
            needed.push_back(c);
          }
        }
        std::vector<Index> got;
        for_each_tap(windows, j, [&](const Tap& tap) {
          got.push_back(tap.cell);
          EXPECT_TRUE(tap.declared);
        });
        ASSERT_EQ(got, needed) << in << " cells, bin " << j << " of " << out;
      }
    }
  }
}

TEST(Window, SamePaddingGivesOneWindowPerStrideWithTheLeastPaddingOddCellHigh) {
  for (Index in = 1; in <= 12; ++in) {
    for (Index kernel = 1; kernel <= 6; ++kernel) {
      for (Index stride = 1; stride <= 6; ++stride) {
        for (Index dilation = 1; dilation <= 4; ++dilation) {
          AxisRequest r{.in = in, .kernel = kernel, .stride = stride, .dilation = dilation};
          r.same = true;
          const auto [axis, fault] = resolve_sliding(r, 0, ExtentRule::floor);
          ASSERT_FALSE(fault);
          Index wanted = 0;
          for (Index p = 0; p < in; p += stride) {
            ++wanted;
          }
          ASSERT_EQ(axis.out, wanted);
          ASSERT_TRUE(axis.pad_high == axis.pad_low || axis.pad_high == axis.pad_low + 1);
          // One cell less of padding, if there is any, loses a window.
          r.same = false;
          r.pad_low = axis.pad_low;
          r.pad_high = axis.pad_high;
          ASSERT_EQ(static_cast<Index>(starts_of(r, false).size()), wanted);
          if (axis.pad_high > 0) {
            --r.pad_high;
            ASSERT_LT(static_cast<Index>(starts_of(r, false).size()), wanted) << describe(r, "");
          }
        }
      }
    }
  }
}

TEST(Window, SamePaddingOfATransposedAxisGivesInputTimesStrideWhereTheKernelReachesThatFar) {
  for (Index in = 1; in <= 6; ++in) {
    for (Index kernel = 1; kernel <= 6; ++kernel) {
      for (Index stride = 1; stride <= 6; ++stride) {
        AxisRequest r{.in = in, .kernel = kernel, .stride = stride};
        r.same = true;
        const auto [axis, fault] = resolve_transposed(r, 0, 0, {});
        ASSERT_FALSE(fault);
        ASSERT_EQ(axis.in, kernel >= stride ? in * stride : (in - 1) * stride + kernel);
      }
    }
  }
}

TEST(Window, OnlyTheSizesReachedByAnOutputPaddingAreAccepted) {
  const AxisRequest r{
      .in = 3, .kernel = 3, .stride = 2, .dilation = 3, .pad_low = 1, .pad_high = 1};
  // (3 - 1)*2 - 1 - 1 + 7 = 9, and output padding 0, 1 or 2: below the dilation, 3.
  for (Index size = -2; size <= 20; ++size) {
    const auto [axis, fault] = resolve_transposed(r, 4, 0, size);
    if (size >= 9 && size <= 11) {
      EXPECT_FALSE(fault);
      EXPECT_EQ(axis.in, size);
    } else {
      EXPECT_EQ(fault, (Fault{ErrorCode::invalid_output_size, Argument::output_size, 4, size, 9}));
    }
  }
}

TEST(Window, EveryFieldChangesTheHash) {
  const WindowAxis base =
      resolve_sliding({.in = 9, .kernel = 3, .stride = 2}, 0, ExtentRule::floor).axis;
  Windows one;
  one.push_back(base);
  for (const auto member : {&WindowAxis::in,
                            &WindowAxis::kernel,
                            &WindowAxis::stride,
                            &WindowAxis::dilation,
                            &WindowAxis::pad_low,
                            &WindowAxis::pad_high,
                            &WindowAxis::out}) {
    WindowAxis changed = base;
    changed.*member += 1;
    Windows other;
    other.push_back(changed);
    EXPECT_NE(other, one);
    EXPECT_NE(hash_value(other), hash_value(one));
  }
  Windows again;
  again.push_back(base);
  EXPECT_EQ(again, one);
  EXPECT_EQ(hash_value(again), hash_value(one));
}

}  // namespace
}  // namespace fenestra

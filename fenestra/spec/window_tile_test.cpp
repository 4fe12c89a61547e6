// What a range of outputs needs, against brute force, exhaustively on one axis: inputs from 1 to 6,
// kernels, strides from 1 to 4, dilations from 1 to 3, paddings from 0 to 4, output paddings from 0
// to 3, and every range of outputs of each.
//
// The brute force walks the taps of the whole; a tile must have the same taps at the same cells.
#include <fenestra/spec/window.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace fenestra {
namespace {

constexpr WindowAxis conv_axis(Index in, Index kernel, Index stride, Index padding) {
  return resolve_sliding({.in = in,
                          .kernel = kernel,
                          .stride = stride,
                          .pad_low = padding,
                          .pad_high = padding},
                         0,
                         ExtentRule::floor)
      .axis;
}

// Known answers: a 3x3 window with padding 1 takes a cell more on both sides, but for the border.
constexpr AxisTile kInside = conv_axis(100, 3, 1, 1).needed({10, 20});
static_assert(kInside.inputs == IndexRange{9, 21} && kInside.axis.pad_low == 0 &&
              kInside.axis.pad_high == 0 && kInside.axis.in == 12 && kInside.axis.out == 10);
constexpr AxisTile kBorder = conv_axis(100, 3, 1, 1).needed({0, 20});
static_assert(kBorder.inputs == IndexRange{0, 21} && kBorder.axis.pad_low == 1 &&
              kBorder.axis.pad_high == 0);
static_assert(conv_axis(100, 3, 1, 1).needed({0, 100}).axis == conv_axis(100, 3, 1, 1));
constexpr WindowAxis kDoubling =
    resolve_transposed({.in = 50, .kernel = 2, .stride = 2}, 0, 0, {}).axis;
static_assert(kDoubling.needed({10, 21}).inputs == IndexRange{5, 11} &&
              kDoubling.needed({11, 21}).axis.pad_low == 1);
static_assert(resolve_adaptive(10, 3, 0).axis.needed_cells({1, 2}) == IndexRange{3, 7});
static_assert(resolve_adaptive(10, 3, 0).axis.needed_windows({3, 4}) == IndexRange{0, 2});

// The largest axes that resolve: an overflow would not be a constant.
constexpr Index kHuge = std::numeric_limits<Index>::max() / 4;
static_assert(conv_axis(kHuge, 3, kHuge / 2, 1).needed({1, 2}).inputs ==
              IndexRange{kHuge / 2 - 1, kHuge / 2 + 2});
static_assert(resolve_transposed({.in = 3, .kernel = 2, .stride = kHuge / 2}, 0, 0, {})
                  .axis.needed({kHuge / 2, kHuge / 2 + 1})
                  .inputs == IndexRange{1, 2});

Windows alone(const WindowAxis& axis) {
  Windows windows;
  windows.push_back(axis);
  return windows;
}

std::vector<Tap> taps_of(const WindowAxis& axis, Index o) {
  std::vector<Tap> taps;
  for_each_tap(alone(axis), o, [&](const Tap& tap) { taps.push_back(tap); });
  return taps;
}

/// Counts what is wrong and says the first few.
class Complaints {
 public:
  void add(const std::string& what, const WindowAxis& a, const IndexRange& outputs) {
    if (++count_ <= 10) {
      ADD_FAILURE() << what << ": i=" << a.in << " k=" << a.kernel << " s=" << a.stride
                    << " d=" << a.dilation << " pl=" << a.pad_low << " pr=" << a.pad_high
                    << " o=" << a.out << " outputs " << outputs.begin << ":" << outputs.end;
    }
  }

 private:
  Index count_ = 0;
};

template <class F>
void for_each_range(Index extent, F&& f) {
  for (Index begin = 0; begin < extent; ++begin) {
    for (Index end = begin + 1; end <= extent; ++end) {
      f(IndexRange{begin, end});
    }
  }
}

template <class F>
void for_each_request(F&& f) {
  for (Index in = 1; in <= 6; ++in) {
    for (Index kernel = 1; kernel <= 4; ++kernel) {
      for (Index stride = 1; stride <= 4; ++stride) {
        for (Index dilation = 1; dilation <= 3; ++dilation) {
          for (Index low = 0; low <= 4; ++low) {
            for (Index high = 0; high <= 4; ++high) {
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

/// The request that a tile's axis came from, if a caller had made it.
AxisRequest request_of(const WindowAxis& a, Index in) {
  return {.in = in,
          .kernel = a.kernel,
          .stride = a.stride,
          .dilation = a.dilation,
          .pad_low = a.pad_low,
          .pad_high = a.pad_high};
}

TEST(WindowTile, WindowsOfATileSeeTheCellsThatTheySeeInTheWhole) {
  Complaints complaints;
  Index tiles = 0;
  Index grown = 0;
  const auto check = [&](const WindowAxis& a, const IndexRange& asked) {
    ++tiles;
    // From the first tap to the last, and of these the cells that exist.
    Index low = std::numeric_limits<Index>::max();
    Index high = std::numeric_limits<Index>::min();
    for (Index o = asked.begin; o < asked.end; ++o) {
      for (Index t = 0; t < a.kernel; ++t) {
        low = std::min(low, o * a.stride + t * a.dilation - a.pad_low);
        high = std::max(high, o * a.stride + t * a.dilation - a.pad_low);
      }
    }
    IndexRange cells;
    for (Index c = 0; c < a.in; ++c) {
      if (c >= low && c <= high) {
        cells = hull(cells, {c, c + 1});
      }
    }
    if (a.needed_cells(asked) != cells) {
      complaints.add("needed cells", a, asked);
    }
    const AxisTile tile = a.needed(asked);
    if (!tile.outputs.contains(asked) || tile.inputs.empty() ||
        (!cells.empty() && (tile.outputs != asked || tile.inputs != cells))) {
      return complaints.add("ranges", a, asked);
    }
    grown += tile.outputs == asked ? 0 : 1;
    if (tile.axis.in != tile.inputs.count() || tile.axis.out != tile.outputs.count()) {
      return complaints.add("extents", a, asked);
    }
    for (Index o = 0; o < tile.axis.out; ++o) {
      const std::vector<Tap> part = taps_of(tile.axis, o);
      const std::vector<Tap> whole = taps_of(a, tile.outputs.begin + o);
      bool same = part.size() == whole.size();
      for (std::size_t t = 0; same && t < part.size(); ++t) {
        same = part[t].tap == whole[t].tap && part[t].declared == whole[t].declared &&
               (part[t].cell < 0) == (whole[t].cell < 0) &&
               (part[t].cell < 0 || part[t].cell + tile.inputs.begin == whole[t].cell);
      }
      if (!same) {
        return complaints.add("taps", a, asked);
      }
    }
    // Of `ceil` the last window goes where it begins in the padding, so there a tile that ends with
    // such a one is no request.
    const auto again = resolve_sliding(request_of(tile.axis, tile.axis.in), 0, a.rule);
    if (a.rule == ExtentRule::floor && (again.fault || again.axis != tile.axis)) {
      complaints.add("no geometry of its own", a, asked);
    }
  };
  for_each_request([&](const AxisRequest& r) {
    for (const ExtentRule rule : {ExtentRule::floor, ExtentRule::ceil}) {
      const auto [axis, fault] = resolve_sliding(r, 0, rule);
      if (!fault) {
        for_each_range(axis.out, [&](const IndexRange& asked) { check(axis, asked); });
      }
    }
  });
  EXPECT_GT(tiles, 100'000);
  EXPECT_GT(grown, 1'000) << "windows in the padding";
}

TEST(WindowTile, CellsOfATransposedTileAreReachedByTheTapsThatReachThemInTheWhole) {
  Complaints complaints;
  Index tiles = 0;
  const auto check = [&](const WindowAxis& a,
                         const std::vector<std::vector<Tap>>& whole,
                         const IndexRange& asked) {
    ++tiles;
    IndexRange windows;
    for (Index o = 0; o < a.out; ++o) {
      const Index first = o * a.stride - a.pad_low;
      const Index end = first + a.dilation * (a.kernel - 1) + 1;
      if (first < asked.end && end > asked.begin) {
        windows = hull(windows, {o, o + 1});
      }
    }
    if (a.needed_windows(asked) != windows) {
      complaints.add("needed windows", a, asked);
    }
    const AxisTile tile = a.needed_transposed(asked);
    if (tile.outputs != asked || tile.inputs.empty() || !tile.inputs.contains(windows) ||
        tile.inputs.count() > windows.count() + 1 || tile.inputs.end > a.out) {
      return complaints.add("ranges", a, asked);
    }
    for (Index o = 0; o < a.out; ++o) {
      const bool inside = o >= tile.inputs.begin && o < tile.inputs.end;
      const std::vector<Tap> part =
          inside ? taps_of(tile.axis, o - tile.inputs.begin) : std::vector<Tap>();
      for (std::size_t t = 0; t < static_cast<std::size_t>(a.kernel); ++t) {
        const Index cell = whole[static_cast<std::size_t>(o)][t].cell;
        const bool wanted = cell >= asked.begin && cell < asked.end;
        const bool found = inside && part[t].cell >= 0;
        if (wanted != found || (wanted && part[t].cell + asked.begin != cell)) {
          return complaints.add("taps", a, asked);
        }
      }
    }
    const auto again = resolve_transposed(request_of(tile.axis, tile.axis.out), 0, 0, tile.axis.in);
    if (again.fault || (a.rule == ExtentRule::transposed && again.axis != tile.axis)) {
      complaints.add("no geometry of its own", a, asked);
    }
  };
  for_each_request([&](const AxisRequest& r) {
    const auto check_all = [&](const WindowAxis& axis) {
      std::vector<std::vector<Tap>> whole;
      for (Index o = 0; o < axis.out; ++o) {
        whole.push_back(taps_of(axis, o));
      }
      for_each_range(axis.in, [&](const IndexRange& asked) { check(axis, whole, asked); });
    };
    for (Index op = 0; op < 4; ++op) {
      if (const auto [axis, fault] = resolve_transposed(r, 0, op, {}); !fault) {
        check_all(axis);
      }
    }
    // The input gradient of a convolution is the same map.
    if (const auto [axis, fault] = resolve_sliding(r, 0, ExtentRule::floor); !fault) {
      check_all(axis);
    }
  });
  EXPECT_GT(tiles, 100'000);
}

TEST(WindowTile, BinsNeedTheCellsTheyHaveAndCellsTheBinsThatHaveThem) {
  for (Index in = 1; in <= 16; ++in) {
    for (Index out = 1; out <= 16; ++out) {
      const WindowAxis axis = resolve_adaptive(in, out, 0).axis;
      for_each_range(out, [&](const IndexRange& asked) {
        IndexRange cells;
        for (Index o = asked.begin; o < asked.end; ++o) {
          for (const Tap& tap : taps_of(axis, o)) {
            cells = hull(cells, {tap.cell, tap.cell + 1});
          }
        }
        EXPECT_EQ(axis.needed_cells(asked), cells) << in << " " << out;
        EXPECT_EQ(axis.needed(asked).axis, axis);
        EXPECT_EQ(axis.needed(asked).inputs, (IndexRange{0, in}));
      });
      for_each_range(in, [&](const IndexRange& asked) {
        IndexRange bins;
        for (Index o = 0; o < out; ++o) {
          for (const Tap& tap : taps_of(axis, o)) {
            if (tap.cell >= asked.begin && tap.cell < asked.end) {
              bins = hull(bins, {o, o + 1});
            }
          }
        }
        EXPECT_EQ(axis.needed_windows(asked), bins) << in << " " << out;
      });
    }
  }
}

}  // namespace
}  // namespace fenestra

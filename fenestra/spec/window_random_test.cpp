// Random geometries of one to five dimensions, with groups and layouts: extents against counting,
// the index map against nested loops, and problem strings that lead back. RapidCheck shrinks what
// fails.
#include <fenestra/ops/conv/geometry.hpp>
#include <fenestra/ops/conv_transpose/geometry.hpp>
#include <fenestra/ops/max_unpool/geometry.hpp>
#include <fenestra/ops/pool/reduction.hpp>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

namespace fenestra {
namespace {

// Ten times RapidCheck's own number of cases: they take a millisecond. Before main, where
// RapidCheck reads it.
[[maybe_unused]] const int kCases = setenv("RC_PARAMS", "max_success=1000", 0);

Index any(Index low, Index high) { return *rc::gen::inRange<Index>(low, high + 1); }
bool any_flag() { return any(0, 1) == 1; }
Layout any_layout() { return any_flag() ? Layout::channels_last : Layout::channels_first; }

/// The numbers of one axis as a user would give them; `in` is large enough for the kernel.
struct Axis {
  Index in, kernel, stride, dilation, low, high;
};

Axis any_axis(int rank) {
  const Index most = rank <= 2 ? 9 : (rank == 3 ? 5 : 3);
  Axis a{any(1, most), any(1, 3), any(1, 3), any(1, rank <= 3 ? 3 : 2), any(0, 3), any(0, 3)};
  Index last_tap = 0;
  for (Index t = 1; t < a.kernel; ++t) {
    last_tap += a.dilation;
  }
  a.in = std::max(a.in, last_tap + 1 - a.low - a.high);
  return a;
}

struct Axes {
  std::vector<Axis> list;
  Shape in, kernel;
  PerAxis kernels, strides, dilations;
  Padding padding;

  Axes() {
    padding.low = padding.high = PerAxis();
    const auto rank = static_cast<int>(any(1, 5));
    for (int axis = 0; axis < rank; ++axis) {
      const Axis a = any_axis(rank);
      list.push_back(a);
      in.push_back(a.in);
      kernel.push_back(a.kernel);
      kernels.push_back(a.kernel);
      strides.push_back(a.stride);
      dilations.push_back(a.dilation);
      padding.push_back({a.low, a.high});
    }
  }
  int rank() const { return static_cast<int>(list.size()); }
};

struct Activation {
  bool batched = any_flag();
  Index batch = any(0, 3);
  Layout layout = any_layout();

  Shape shape(Index channels, const Shape& spatial) const {
    Shape s;
    if (batched) {
      s.push_back(batch);
    }
    if (layout == Layout::channels_first) {
      s.push_back(channels);
    }
    for (const Index extent : spatial) {
      s.push_back(extent);
    }
    if (layout == Layout::channels_last) {
      s.push_back(channels);
    }
    return s;
  }
};

Shape weight_shape(Index out, Index in, const Shape& kernel, Layout layout) {
  Shape s;
  if (layout == Layout::channels_first) {
    s.push_back(out);
    s.push_back(in);
  }
  for (const Index k : kernel) {
    s.push_back(k);
  }
  if (layout == Layout::channels_last) {
    s.push_back(in);
    s.push_back(out);
  }
  return s;
}

Index last_tap(const Axis& a, Index start) {
  for (Index t = 1; t < a.kernel; ++t) {
    start += a.dilation;
  }
  return start;
}

/// Windows counted one by one.
Index count_windows(const Axis& a, bool ceil) {
  const Index end = a.low + a.in + a.high;
  Index count = 0;
  for (Index p = 0; ceil || last_tap(a, p) < end; p += a.stride) {
    ++count;
    if (ceil && last_tap(a, p) >= end - 1) {
      return p >= a.low + a.in ? count - 1 : count;
    }
  }
  return count;
}

Shape count_all(const Axes& axes, bool ceil) {
  Shape out;
  for (const Axis& a : axes.list) {
    out.push_back(count_windows(a, ceil));
  }
  return out;
}

/// Calls f(position) for every position below `extents`, row-major, by recursion.
template <class F>
void for_each_position(const Shape& extents, F&& f, Shape position = {}) {
  if (position.rank() == extents.rank()) {
    f(position);
    return;
  }
  for (Index i = 0; i < extents[position.rank()]; ++i) {
    Shape next = position;
    next.push_back(i);
    for_each_position(extents, f, next);
  }
}

/// Every tap of every window against o*s + t*d - pl, cell by cell.
void check_index_map(const Windows& windows, const Axes& axes, const Shape& out, const Shape& in) {
  Index o = 0;
  for_each_position(out, [&](const Shape& at) {
    std::vector<Tap> taps;
    for_each_tap(windows, o++, [&](const Tap& tap) { taps.push_back(tap); });
    std::size_t t = 0;
    for_each_position(axes.kernel, [&](const Shape& tap) {
      bool real = true;
      bool declared = true;
      Index flat = 0;
      for (int axis = 0; axis < axes.rank(); ++axis) {
        const Axis& a = axes.list[static_cast<std::size_t>(axis)];
        const Index cell = at[axis] * a.stride + tap[axis] * a.dilation - a.low;
        real = real && 0 <= cell && cell < in[axis];
        declared = declared && -a.low <= cell && cell < in[axis] + a.high;
        flat = flat * in[axis] + cell;
      }
      RC_ASSERT(t < taps.size());
      RC_ASSERT(taps[t].tap == static_cast<Index>(t));
      RC_ASSERT(taps[t].cell == (real ? flat : -1));
      RC_ASSERT(taps[t].declared == declared);
      ++t;
    });
    RC_ASSERT(t == taps.size());
  });
  RC_ASSERT(o == windows.out_cells());
}

template <class Geometry, class Parse>
void check_string(const Geometry& g, Parse&& parse) {
  const std::string text = to_string(g);
  const Geometry again = parse(Problem(text));
  RC_ASSERT(again == g);
  RC_ASSERT(hash_value(again) == hash_value(g));
  RC_ASSERT(to_string(again) == text);
}

RC_GTEST_PROP(RandomGeometry, AConvolutionHasTheWindowsOneCounts, ()) {
  const Axes axes;
  const Activation x;
  const Index groups = any(1, 3);
  const Index group_in = any(0, 2);
  const Index out_channels = groups * any(0, 2);
  const auto bias = any_flag() ? std::optional(Shape{out_channels}) : std::nullopt;
  const ConvGeometry g = conv_geometry(x.shape(groups * group_in, axes.in),
                                       weight_shape(out_channels, group_in, axes.kernel, x.layout),
                                       bias,
                                       {.stride = axes.strides,
                                        .padding = axes.padding,
                                        .dilation = axes.dilations,
                                        .groups = groups,
                                        .layout = x.layout});
  const Shape out = count_all(axes, false);
  RC_ASSERT(g.y_shape() == x.shape(out_channels, out));
  RC_ASSERT(g.x_shape() == x.shape(groups * group_in, axes.in));
  RC_ASSERT(g.w_shape() == weight_shape(out_channels, group_in, axes.kernel, x.layout));
  check_index_map(g.windows, axes, out, axes.in);
  check_string(g, parse_conv);
}

RC_GTEST_PROP(RandomGeometry, ATransposedConvolutionHoldsEveryScatteredCell, ()) {
  const Axes axes;
  const Activation x;
  const Index groups = any(1, 3);
  const Index in_channels = groups * any(0, 2);
  const Index group_out = any(0, 2);
  Shape out;
  PerAxis output_padding;
  for (const Axis& a : axes.list) {
    const Index extra = any(0, std::max(a.stride, a.dilation) - 1);
    output_padding.push_back(extra);
    Index length = 0;
    for (Index i = 0; i < a.in; ++i) {
      length = last_tap(a, i * a.stride) + 1;
    }
    out.push_back(length - a.low - a.high + extra);
  }
  RC_PRE(std::all_of(out.begin(), out.end(), [](Index extent) { return extent > 0; }));
  const Shape w = weight_shape(in_channels, group_out, axes.kernel, x.layout);
  ConvTransposeOptions options{.stride = axes.strides,
                               .padding = axes.padding,
                               .dilation = axes.dilations,
                               .output_padding = output_padding,
                               .groups = groups,
                               .layout = x.layout};
  const auto bias = any_flag() ? std::optional(Shape{groups * group_out}) : std::nullopt;
  const auto g = conv_transpose_geometry(x.shape(in_channels, axes.in), w, bias, options);
  RC_ASSERT(g.y_shape() == x.shape(groups * group_out, out));
  RC_ASSERT(g.x_shape() == x.shape(in_channels, axes.in));
  check_index_map(g.conv.windows, axes, axes.in, out);
  check_string(g, parse_conv_transpose);
  // The same sizes by output size.
  options.output_padding = 0;
  options.output_size = PerAxis();
  for (const Index extent : out) {
    options.output_size.push_back(extent);
  }
  RC_ASSERT(conv_transpose_geometry(x.shape(in_channels, axes.in), w, bias, options) == g);
}

RC_GTEST_PROP(RandomGeometry, APoolHasTheWindowsOneCountsInFloorAndCeilMode, ()) {
  const Axes axes;
  const Activation x;
  const Index channels = any(0, 3);
  const bool ceil = any_flag();
  const AvgPoolOptions options{
      .kernel = axes.kernels,
      .stride = axes.strides,
      .padding = axes.padding,
      .dilation = axes.dilations,
      .ceil_mode = ceil,
      .count_include_pad = any_flag(),
      .divisor_override = any_flag() ? OptionalIndex(any(1, 9)) : OptionalIndex(),
      .layout = x.layout};
  const Shape shape = x.shape(channels, axes.in);
  const AvgPoolGeometry g = avg_pool_geometry(shape, options);
  const Shape out = count_all(axes, ceil);
  RC_ASSERT(g.pool.x_shape() == shape);
  RC_ASSERT(g.pool.y_shape() == x.shape(channels, out));
  check_index_map(g.pool.windows, axes, out, axes.in);
  check_string(g, parse_reduced<AverageReduction>);
  // The other fixed-window pools see the same windows.
  const MaxPoolGeometry max =
      max_pool_geometry(shape,
                        {.kernel = axes.kernels,
                         .stride = axes.strides,
                         .padding = axes.padding,
                         .dilation = axes.dilations,
                         .ceil_mode = ceil,
                         .pad_cells = any_flag() ? PadCells::zero : PadCells::ignore,
                         .layout = x.layout});
  const auto smooth = smooth_max_pool_geometry(shape,
                                               {.kernel = axes.kernels,
                                                .stride = axes.strides,
                                                .padding = axes.padding,
                                                .dilation = axes.dilations,
                                                .ceil_mode = ceil,
                                                .beta = static_cast<double>(any(1, 1000)) / 7,
                                                .normalised = any_flag(),
                                                .layout = x.layout});
  const LpPoolGeometry lp = lp_pool_geometry(shape,
                                             {.kernel = axes.kernels,
                                              .stride = axes.strides,
                                              .padding = axes.padding,
                                              .dilation = axes.dilations,
                                              .ceil_mode = ceil,
                                              .p = static_cast<double>(any(1, 1000)) / 7,
                                              .layout = x.layout});
  RC_ASSERT(max.pool == g.pool);
  RC_ASSERT(smooth.pool == g.pool);
  RC_ASSERT(lp.pool == g.pool);
  check_string(max, parse_reduced<MaxReduction>);
  check_string(smooth, parse_reduced<SmoothMaxReduction>);
  check_string(lp, parse_reduced<LpReduction>);
}

RC_GTEST_PROP(RandomGeometry, AdaptivePoolsAndUnpoolsHaveTheSizesAskedFor, ()) {
  const Axes axes;
  const Activation x;
  const Index channels = any(0, 3);
  Shape out;
  PerAxis size;
  for (int axis = 0; axis < axes.rank(); ++axis) {
    size.push_back(any(1, 8));
    out.push_back(size[axis]);
  }
  const Shape shape = x.shape(channels, axes.in);
  const auto max = adaptive_max_pool_geometry(shape, {.output_size = size, .layout = x.layout});
  const auto mean = adaptive_avg_pool_geometry(shape, {.output_size = size, .layout = x.layout});
  const auto unpool = max_unpool_geometry(shape, {.output_size = size, .layout = x.layout});
  RC_ASSERT(max.pool.y_shape() == x.shape(channels, out));
  RC_ASSERT(mean.pool == max.pool);
  RC_ASSERT(unpool.y_shape() == x.shape(channels, out));
  check_string(max, [](const Problem& problem) {
    return MaxPoolGeometry{{}, parse_adaptive_pool("adaptive_max_pool", problem)};
  });
  check_string(mean, [](const Problem& problem) {
    return AvgPoolGeometry{{}, parse_adaptive_pool("adaptive_avg_pool", problem)};
  });
  check_string(unpool, parse_max_unpool);
}

RC_GTEST_PROP(RandomGeometry, UnpoolingLeadsBackToTheSizesOfAPoolThatLosesNothing, ()) {
  const Axes axes;
  Shape in;
  PerAxis stride;
  Padding padding;
  padding.low = padding.high = PerAxis();
  // Windows that end with the padded input: i + pl + pr = (o - 1)s + k.
  for (const Axis& a : axes.list) {
    const Index low = std::min(a.low, a.kernel - 1);
    const Index high = std::min(a.high, a.kernel - 1);
    in.push_back((a.in + low + high) * a.stride + a.kernel - low - high);
    stride.push_back(a.stride);
    padding.push_back({low, high});
  }
  const Activation x;
  const auto pool = max_pool_geometry(
      x.shape(2, in),
      {.kernel = axes.kernels, .stride = stride, .padding = padding, .layout = x.layout});
  const auto unpool = max_unpool_geometry(
      pool.pool.y_shape(),
      {.kernel = axes.kernels, .stride = stride, .padding = padding, .layout = x.layout});
  RC_ASSERT(unpool.y_shape() == pool.pool.x_shape());
}

}  // namespace
}  // namespace fenestra

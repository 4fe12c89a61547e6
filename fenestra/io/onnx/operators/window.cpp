// Convolutions and pools. Every way of saying where windows lie becomes a pair of paddings per
// axis.
#include <fenestra/engine/operation.hpp>
#include <fenestra/io/onnx/call.hpp>
#include <fenestra/io/onnx/integers.hpp>
#include <fenestra/nn/layers/reach.hpp>
#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/conv_transpose/conv_transpose.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/max_unpool/max_unpool.hpp>
#include <fenestra/ops/pad/pad.hpp>
#include <fenestra/ops/pool/pool.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace fenestra::onnx {

namespace {

// Of attributes: products of two such numbers are numbers.
constexpr Index kLargest = Index{1} << 31;

/// The attributes of windows over `rank` axes, one number for each.
struct WindowAttributes {
  std::vector<Index> kernel;
  std::vector<Index> strides;
  std::vector<Index> dilations;
  std::vector<Index> low;
  std::vector<Index> high;
  std::string auto_pad;

  int rank() const { return static_cast<int>(kernel.size()); }
  /// What the window map is asked for `extent` cells of an axis, without padding.
  AxisRequest request(std::size_t axis, Index extent) const {
    return {
        .in = extent, .kernel = kernel[axis], .stride = strides[axis], .dilation = dilations[axis]};
  }
  /// What one cell of the output sees, by the reach of one axis.
  template <class F>
  nn::LayerReach reach(F of_axis) const {
    nn::LayerReach result;
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      result.axes.push_back(of_axis(kernel[i], strides[i], dilations[i]));
    }
    return result;
  }
  bool is_same() const { return auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER"; }
  /// `total` cells on both sides together; an odd one goes to the side that the mode names.
  void pad_by(std::size_t axis, Index total) {
    low[axis] = auto_pad == "SAME_LOWER" ? total - total / 2 : total / 2;
    high[axis] = total - low[axis];
  }
  Padding padding() const {
    Padding result;
    result.low = result.high = PerAxis();
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      result.push_back({low[i], high[i]});
    }
    return result;
  }
};

PerAxis per_axis(const std::vector<Index>& values) {
  PerAxis result;
  for (const Index value : values) {
    result.push_back(value);
  }
  return result;
}

template <class T>
WindowAttributes window_attributes(const Call<T>& c, std::vector<Index> kernel) {
  WindowAttributes w;
  w.kernel = std::move(kernel);
  const std::size_t rank = w.kernel.size();
  const auto list = [&](std::string_view name, std::size_t count, Index otherwise) {
    std::vector<Index> values = c.integers(name);
    if (values.empty()) {
      values.assign(count, otherwise);
    }
    if (values.size() != count) {
      c.refuse("attribute " + std::string(name) + " has " + std::to_string(values.size()) +
                   " numbers, needed " + std::to_string(count),
               "x of another rank, or a correct model",
               ErrorCode::rank_mismatch);
    }
    return values;
  };
  w.strides = list("strides", rank, 1);
  w.dilations = list("dilations", rank, 1);
  w.auto_pad = c.text("auto_pad", "NOTSET");
  if (w.auto_pad != "NOTSET" && w.auto_pad != "VALID" && !w.is_same() && !w.auto_pad.empty()) {
    c.refuse_attribute("auto_pad", w.auto_pad);
  }
  w.low.assign(rank, 0);
  w.high.assign(rank, 0);
  if (w.auto_pad == "NOTSET" || w.auto_pad.empty()) {
    const std::vector<Index> pads = list("pads", 2 * rank, 0);
    w.low.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
    w.high.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
  }
  const auto within = [&](const std::vector<Index>& values, Index least) {
    return std::all_of(values.begin(), values.end(), [&](Index value) {
      return value >= least && value <= kLargest;
    });
  };
  if (!within(w.kernel, 1) || !within(w.strides, 1) || !within(w.dilations, 1) ||
      !within(w.low, 0) || !within(w.high, 0)) {
    c.refuse("a kernel, stride, dilation or padding is out of range",
             "kernels, strides and dilations from 1 on, paddings from 0 on",
             ErrorCode::invalid_kernel);
  }
  return w;
}

/// Of operators whose output is ceil(in / stride) where the padding is "same".
template <class T>
WindowAttributes sliding_windows(const Call<T>& c, std::vector<Index> kernel) {
  const Shape x = c.shape(0);
  if (x.rank() != static_cast<int>(kernel.size()) + 2) {
    c.refuse("x = " + to_string(x) + " for windows of " + std::to_string(kernel.size()) + " axes",
             "a batch, channels, and one axis for each of the window",
             ErrorCode::rank_mismatch);
  }
  WindowAttributes w = window_attributes(c, std::move(kernel));
  for (std::size_t i = 0; w.is_same() && i < w.kernel.size(); ++i) {
    AxisRequest request = w.request(i, x[static_cast<int>(i) + 2]);
    request.same = true;
    const WindowAxis axis = resolve_sliding(request, static_cast<int>(i), ExtentRule::floor).axis;
    w.pad_by(i, axis.pad_low + axis.pad_high);
  }
  return w;
}

/// The extents of a weight's windows; the attribute, where it is there, says the same.
template <class T>
std::vector<Index> weight_kernel(const Call<T>& c) {
  const Shape w = c.shape(1);
  if (w.rank() < 3) {
    c.refuse("w = " + to_string(w), "a weight of at least three axes", ErrorCode::rank_mismatch);
  }
  const std::vector<Index> kernel(w.begin() + 2, w.end());
  if (c.given("kernel_shape") && c.integers("kernel_shape") != kernel) {
    c.refuse("attribute kernel_shape differs from w = " + to_string(w), "equal extents");
  }
  return kernel;
}

template <class T>
std::optional<Shape> bias_shape(const Call<T>& c) {
  return c.has(2) ? std::optional(c.shape(2)) : std::nullopt;
}

template <class T>
Results<T> conv_rule(Call<T>& c) {
  const WindowAttributes w = sliding_windows(c, weight_kernel(c));
  c.reach = w.reach(nn::window_reach);
  const ConvOptions options{.stride = per_axis(w.strides),
                            .padding = w.padding(),
                            .dilation = per_axis(w.dilations),
                            .groups = c.integer("group", 1)};
  c.require_budget(conv_geometry(c.shape(0), c.shape(1), bias_shape(c), options).y_shape());
  return c.same(c.has(2) ? conv(c.value(0), c.value(1), c.value(2), options)
                         : conv(c.value(0), c.value(1), options));
}

/// Cells taken off the ends, negative: cells of zeros added.
template <class T>
Value<T> cropped(Value<T> y, const WindowAttributes& w) {
  std::vector<LowHigh> pads;
  std::vector<AxisRange> kept;
  AxisList axes;
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    const int axis = static_cast<int>(i) + 2;
    axes.push_back(axis);
    pads.emplace_back(std::max<Index>(-w.low[i], 0), std::max<Index>(-w.high[i], 0));
    const Index left = std::max<Index>(w.low[i], 0);
    kept.push_back({axis, left, y.shape()[axis] - left - std::max<Index>(w.high[i], 0), 1});
  }
  return pad(slice(y, kept), pads, {.axes = axes});
}

template <class T>
Results<T> conv_transpose_rule(Call<T>& c) {
  WindowAttributes w = window_attributes(c, weight_kernel(c));
  c.reach = w.reach(nn::transposed_reach);
  const Shape x = c.shape(0);
  std::vector<Index> extra = c.integers("output_padding");
  extra.resize(w.kernel.size(), 0);
  std::vector<Index> wanted = c.integers("output_shape");
  if (wanted.size() > w.kernel.size()) {  // old models name batch and channels too
    wanted.erase(wanted.begin(), wanted.end() - static_cast<std::ptrdiff_t>(w.kernel.size()));
  }
  if (x.rank() != w.rank() + 2) {
    c.refuse("x = " + to_string(x) + ", w = " + to_string(c.shape(1)),
             "equal ranks",
             ErrorCode::rank_mismatch);
  }
  bool plain = true;
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    const Index extent = x[static_cast<int>(i) + 2];
    if (extra[i] < 0 || extra[i] > kLargest || extent > kLargest ||
        (i < wanted.size() && (wanted[i] < 0 || wanted[i] > kLargest))) {
      c.refuse("output_padding or output_shape is out of range",
               "numbers from 0 on",
               ErrorCode::invalid_output_padding);
    }
    // An axis that cannot be resolved is refused by the operator below.
    const ResolvedAxis unpadded =
        resolve_transposed(w.request(i, extent), static_cast<int>(i), 0, OptionalIndex());
    const Index whole = unpadded.axis.in + extra[i];
    if (i < wanted.size()) {
      const Index total = whole - wanted[i];
      const Index half = (total - (total % 2 != 0 && total < 0 ? 1 : 0)) / 2;  // rounded down
      w.low[i] = w.auto_pad == "SAME_UPPER" ? half : total - half;
      w.high[i] = total - w.low[i];
    } else if (w.is_same()) {
      w.pad_by(i, whole - extent * w.strides[i]);
    }
    plain = plain && w.low[i] >= 0 && w.high[i] >= 0 &&
            extra[i] < std::max(w.strides[i], w.dilations[i]);
  }
  ConvTransposeOptions options{.stride = per_axis(w.strides),
                               .padding = w.padding(),
                               .dilation = per_axis(w.dilations),
                               .output_padding = per_axis(extra),
                               .groups = c.integer("group", 1)};
  if (plain) {
    c.require_budget(conv_transpose_geometry(x, c.shape(1), bias_shape(c), options).y_shape());
    return c.same(c.has(2) ? conv_transpose(c.value(0), c.value(1), c.value(2), options)
                           : conv_transpose(c.value(0), c.value(1), options));
  }
  // Cells that the windows do not reach hold the bias alone.
  options.padding = 0;
  options.output_padding = 0;
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    w.high[i] -= extra[i];
  }
  Shape result = conv_transpose_geometry(x, c.shape(1), std::nullopt, options).y_shape();
  c.require_budget(result);
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    result[static_cast<int>(i) + 2] -= w.low[i] + w.high[i];
  }
  c.require_budget(result);
  Value<T> y = cropped(conv_transpose(c.value(0), c.value(1), options), w);
  if (c.has(2)) {
    y = y + reshape(c.value(2), channel_shape(c.shape(2)[0], w.rank(), Layout::channels_first));
  }
  return c.same(y);
}

// --- Pools ---------------------------------------------------------------------------------------

template <class T, class Options>
Options pool_options(Call<T>& c) {
  const WindowAttributes w = sliding_windows(c, c.required("kernel_shape").ints);
  c.reach = w.reach(nn::window_reach);
  Options options;
  options.kernel = per_axis(w.kernel);
  options.stride = per_axis(w.strides);
  options.padding = w.padding();
  options.dilation = per_axis(w.dilations);
  options.ceil_mode = c.flag("ceil_mode");
  // Windows that do not fit are refused by the pool.
  const auto [geometry, fault] = resolve_pool(c.shape(0), options, w.rank());
  if (!fault) {
    c.require_budget(geometry.y_shape());
  }
  return options;
}

/// Cells of one sample and channel as cells of all of `x`, counted by rows or by columns: the
/// numbers of MaxPool's second output, of shape `y`.
struct WholeCells {
  static constexpr std::string_view name = "whole_cells";
  Shape x;
  Shape y;
  bool columns_first = false;

  const Shape& result_shape() const { return y; }
  static std::size_t scratch_bytes() { return 0; }
  void run(const Selection& cells, Index* out, void*) const {
    Index plane = 1;
    Index of_plane = 1;
    for (int axis = 2; axis < x.rank(); ++axis) {
      plane *= x[axis];
      of_plane *= y[axis];
    }
    const Index* cell = cells.indices().data();
    const Index n = y.elements().value_or(0);
    for (Index i = 0; i < n; ++i) {
      out[i] = i / of_plane * plane + (columns_first ? by_columns(cell[i], plane) : cell[i]);
    }
  }
  friend bool operator==(const WholeCells&, const WholeCells&) = default;

 private:
  /// The first spatial axis runs fastest.
  Index by_columns(Index cell, Index plane) const {
    Index counted = 0;
    for (int axis = x.rank() - 1; axis >= 2; --axis) {
      plane /= x[axis];
      counted += cell % x[axis] * plane;
      cell /= x[axis];
    }
    return counted;
  }
};

Indices whole_cells(const Indices& cells, const WholeCells& map) {
  if (const graph::Data* traced = cells.traced()) {
    return {cells.level(), graph::apply_to_data(map, *traced)};
  }
  Tensor<Index> result = Tensor<Index>::uninitialised(map.y);
  map.run(cells.plain(), result.mutable_data(), nullptr);
  return result;
}

template <class T>
Results<T> max_pool_rule(Call<T>& c) {
  const auto options = pool_options<T, MaxPoolOptions>(c);
  const Value<T> x = c.value(0);
  const int rank = x.rank() - 2;
  if (!c.wants(1)) {
    return c.same(max_pool(x, options, rank));
  }
  const MaxPoolResult<Value<T>> found = max_pool_with_indices(x, options, rank);
  const WholeCells whole{x.shape(), found.y.shape(), c.flag("storage_order")};
  Results<T> results = c.same(found.y);
  results.emplace_back(whole_cells(Indices(found.indices), whole));
  return results;
}

template <class T>
Results<T> average_pool_rule(Call<T>& c) {
  auto options = pool_options<T, AvgPoolOptions>(c);
  options.count_include_pad = c.flag("count_include_pad");
  return c.same(avg_pool(c.value(0), options, c.at(0).rank() - 2));
}

template <class T>
Results<T> lp_pool_rule(Call<T>& c) {
  auto options = pool_options<T, LpPoolOptions>(c);
  options.p = c.since >= 2 ? static_cast<double>(c.integer("p", 2)) : c.real("p", 2);
  return c.same(lp_pool(c.value(0), options, c.at(0).rank() - 2));
}

/// The axes behind batch and channels.
template <class T>
ReduceOptions whole_planes(Call<T>& c) {
  c.reach.whole = true;
  ReduceOptions options{.keep = true};
  for (int axis = 2; axis < c.at(0).rank(); ++axis) {
    options.axes.push_back(axis);
  }
  if (options.axes.empty()) {
    c.refuse("x = " + to_string(c.shape(0)) + " has no spatial axis",
             "at least three axes",
             ErrorCode::rank_mismatch);
  }
  return options;
}

template <class T>
Results<T> global_lp_pool(Call<T>& c) {
  const double p = c.since >= 2 ? static_cast<double>(c.integer("p", 2)) : c.real("p", 2);
  const ReduceOptions options = whole_planes(c);
  const Value<T> x = c.value(0);
  if (p == 2) {
    return c.same(sqrt(sum(x * x, options)));
  }
  return c.same(power(sum(power(abs(x), p), options), 1 / p));
}

/// Indices are those of the tensor that the attributes alone would give; a larger one is asked for
/// by its shape.
template <class T>
Results<T> max_unpool_rule(Call<T>& c) {
  const WindowAttributes w = window_attributes(c, c.required("kernel_shape").ints);
  c.reach = w.reach(nn::transposed_reach);
  const Value<T> x = c.value(0);
  const int rank = x.rank() - 2;
  MaxUnpoolOptions options{
      .kernel = per_axis(w.kernel), .stride = per_axis(w.strides), .padding = w.padding()};
  const MaxUnpoolGeometry g = max_unpool_geometry(x.shape(), options, rank);
  c.require_budget(g.y_shape());
  const Index plane = std::max<Index>(g.out.elements().value_or(0), 1);
  const Indices cells =
      cell_positions(c.at(1).indices(), {.inner = 1, .extent = plane, .shape = x.shape()});
  const Value<T> y = cells.level() == 0 ? max_unpool(x, cells.plain().indices(), options, rank)
                                        : max_unpool(x, cells, options, rank);
  if (!c.has(2)) {
    return c.same(y);
  }
  const Shape wanted = shape_of(c.list(2));
  c.require_budget(wanted);
  std::vector<LowHigh> pads;
  for (int axis = 0; axis < y.rank(); ++axis) {
    const Index more = axis < wanted.rank() ? wanted[axis] - y.shape()[axis] : -1;
    if (more < 0) {
      c.refuse("output_shape " + to_string(wanted) + " is less than " + to_string(y.shape()),
               "at least that",
               ErrorCode::shape_mismatch);
    }
    pads.emplace_back(0, more);
  }
  return c.same(pad(y, pads));
}

}  // namespace

void add_windows(OperatorList& list) {
  list.family("window");
  list.add("Conv", {1, 11, 22}, []<class T>(Call<T>& c) -> Results<T> { return conv_rule(c); });
  list.add("ConvTranspose", {1, 11, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return conv_transpose_rule(c);
  });
  list.add("MaxPool", {1, 8, 10, 11, 12, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return max_pool_rule(c);
  });
  list.add("AveragePool", {1, 7, 10, 11, 19, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return average_pool_rule(c);
  });
  list.add("LpPool", {1, 2, 11, 18, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return lp_pool_rule(c);
  });
  list.add("GlobalAveragePool", {1, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return c.same(mean(c.value(0), whole_planes(c)));
  });
  list.add("GlobalMaxPool", {1, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return c.same(max_over(c.value(0), whole_planes(c)));
  });
  list.add("GlobalLpPool", {1, 2, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return global_lp_pool(c);
  });
  list.add("MaxUnpool", {9, 11, 22}, []<class T>(Call<T>& c) -> Results<T> {
    return max_unpool_rule(c);
  });
}

}  // namespace fenestra::onnx

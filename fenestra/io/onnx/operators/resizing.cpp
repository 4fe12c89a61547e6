// Resize and Upsample, after the text of the standard: coordinates in double, one map per axis.
//
// Along an axis every output cell is a weighted sum of a few cells of x. Where that is what the
// library's own `resize` computes (whole factors, nearest or linear), it does it; else the cells
// are taken and added up.
#include <fenestra/io/onnx/call.hpp>
#include <fenestra/io/onnx/integers.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/gather/gather.hpp>
#include <fenestra/ops/resize/resize.hpp>
#include <fenestra/ops/where/where.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace fenestra::onnx {

namespace {

struct Settings {
  std::string mode = "nearest";  ///< nearest, linear, cubic
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";
  double cubic_a = -0.75;
  double outside_value = 0;  ///< of tf_crop_and_resize
  bool excludes_outside = false;
  bool antialias = false;
};

/// One axis of a resize.
struct Axis {
  Index in = 1;
  Index out = 1;
  double scale = 1;
  double roi_start = 0;
  double roi_end = 1;

  bool keeps() const { return in == out && scale == 1; }
};

/// Cells of x and their weights.
struct Taps {
  std::vector<std::pair<Index, double>> cells;
  bool outside = false;
};

/// Where cell `o` of y lies on the axis of x.
double coordinate(const Settings& s, const Axis& a, Index o) {
  const double x = static_cast<double>(o);
  const double in = static_cast<double>(a.in);
  const double length = a.scale * in;  // with its fraction, as the official vectors have it
  const double half = (x + 0.5) / a.scale - 0.5;
  if (s.coordinates == "half_pixel") {
    return half;
  }
  if (s.coordinates == "half_pixel_symmetric") {
    const double adjustment = static_cast<double>(a.out) / length;
    return in / 2 * (1 - adjustment) + half;
  }
  if (s.coordinates == "pytorch_half_pixel") {
    return a.out > 1 ? half : 0;
  }
  if (s.coordinates == "align_corners") {
    return length == 1 ? 0 : x * (in - 1) / (length - 1);
  }
  if (s.coordinates == "asymmetric") {
    return x / a.scale;
  }
  if (s.coordinates == "tf_half_pixel_for_nn") {
    return (x + 0.5) / a.scale;
  }
  if (s.coordinates == "tf_crop_and_resize") {
    return a.out > 1 ? a.roi_start * (in - 1) +
                           x * (a.roi_end - a.roi_start) * (in - 1) / static_cast<double>(a.out - 1)
                     : 0.5 * (a.roi_start + a.roi_end) * (in - 1);
  }
  throw Error(ErrorCode::unsupported,
              "attribute coordinate_transformation_mode = " + s.coordinates +
                  " is not known\n  fix: a model with another one");
}

Index nearest_cell(const Settings& s, double x) {
  const double below = std::floor(x);
  if (s.nearest == "floor") {
    return static_cast<Index>(below);
  }
  if (s.nearest == "ceil") {
    return static_cast<Index>(std::ceil(x));
  }
  if (s.nearest == "round_prefer_floor") {
    return static_cast<Index>(std::ceil(x - 0.5));
  }
  if (s.nearest == "round_prefer_ceil") {
    return static_cast<Index>(std::floor(x + 0.5));
  }
  throw Error(ErrorCode::unsupported,
              "attribute nearest_mode = " + s.nearest + " is not known\n  fix: another one");
}

double cubic_weight(double distance, double a) {
  const double d = std::abs(distance);
  if (d <= 1) {
    return ((a + 2) * d - (a + 3)) * d * d + 1;
  }
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

Taps taps_of(const Settings& s, const Axis& a, Index o) {
  Taps taps;
  double x = coordinate(s, a, o);
  const double last = static_cast<double>(a.in - 1);
  taps.outside = s.coordinates == "tf_crop_and_resize" && (x < 0 || x > last);
  x = std::isnan(x) ? 0 : std::clamp(x, -0x1p40, 0x1p40);
  const auto clamped = [&](Index cell) { return std::clamp<Index>(cell, 0, a.in - 1); };
  if (s.mode == "nearest") {
    taps.cells.emplace_back(clamped(nearest_cell(s, x)), 1.0);
    return taps;
  }
  // With antialiasing the filter is as wide as the cells of y are on x.
  const double stretch = s.antialias ? std::min(a.scale, 1.0) : 1.0;
  const bool linear = s.mode == "linear";
  const double reach = (linear ? 1 : 2) / stretch;
  const Index begin = static_cast<Index>(std::floor(x - reach)) + 1;
  const Index end =
      stretch < 1 ? static_cast<Index>(std::ceil(x + reach)) : begin + (linear ? 2 : 4);
  double total = 0;
  for (Index cell = begin; cell < end; ++cell) {
    const double distance = (x - static_cast<double>(cell)) * stretch;
    const double weight =
        linear ? std::max(1 - std::abs(distance), 0.0) : cubic_weight(distance, s.cubic_a);
    const bool is_outside = cell < 0 || cell >= a.in;
    if (s.excludes_outside && is_outside) {
      continue;
    }
    total += weight;
    taps.cells.emplace_back(clamped(cell), weight);
  }
  if (s.excludes_outside || stretch < 1) {
    for (auto& tap : taps.cells) {
      tap.second /= total;
    }
  }
  return taps;
}

template <class T>
Value<T> along(const Value<T>& x, const std::vector<Taps>& taps, int axis) {
  std::size_t most = 0;
  for (const Taps& of_cell : taps) {
    most = std::max(most, of_cell.cells.size());
  }
  const Shape line{static_cast<Index>(taps.size())};
  Shape across = line;
  for (int i = axis + 1; i < x.rank(); ++i) {
    across.push_back(1);
  }
  std::optional<Value<T>> sum;
  for (std::size_t k = 0; k < most; ++k) {
    Tensor<Index> cells(line);
    Tensor<T> weights(across);
    bool all_one = true;
    for (std::size_t o = 0; o < taps.size(); ++o) {
      const auto& found = taps[o].cells;
      cells.mutable_data()[o] = k < found.size() ? found[k].first : 0;
      weights.mutable_data()[o] = k < found.size() ? static_cast<T>(found[k].second) : T(0);
      all_one = all_one && k < found.size() && found[k].second == 1;
    }
    const Value<T> taken = take(x, Indices(cells), axis);
    const Value<T> term = all_one ? taken : Value<T>(taken * Value<T>(weights));
    sum = sum ? *sum + term : term;
  }
  return sum ? *sum : x;
}

/// Whether the library's resize means the same: exact factors, and its own coordinates.
bool is_plain(const Settings& s, const std::vector<Axis>& axes) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Axis& a = axes[i];
    if ((i < 2 && !a.keeps()) || a.in < 1 ||
        a.scale != static_cast<double>(a.out) / static_cast<double>(a.in)) {
      return false;
    }
  }
  if (axes.size() < 3 || axes.size() > 10 || s.antialias || s.excludes_outside) {
    return false;
  }
  return (s.mode == "nearest" && s.coordinates == "asymmetric" && s.nearest == "floor") ||
         (s.mode == "linear" &&
          (s.coordinates == "half_pixel" || s.coordinates == "align_corners"));
}

template <class T>
Value<T> resized(const Value<T>& x, const Settings& s, const std::vector<Axis>& axes) {
  if (is_plain(s, axes)) {
    ResizeOptions options;
    options.size = PerAxis();
    for (std::size_t i = 2; i < axes.size(); ++i) {
      options.size.push_back(axes[i].out);
    }
    options.mode = s.mode == "nearest" ? ResizeMode::nearest : ResizeMode::bilinear;
    options.align_corners = s.coordinates == "align_corners";
    return resize(x, options);
  }
  Value<T> y = x;
  Tensor<T> outside(Shape{}, T(0));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].keeps() && s.coordinates != "tf_crop_and_resize") {
      continue;
    }
    std::vector<Taps> taps;
    Shape across{axes[i].out};
    for (std::size_t later = i + 1; later < axes.size(); ++later) {
      across.push_back(1);
    }
    Tensor<T> mask(across);
    bool some = false;
    for (Index o = 0; o < axes[i].out; ++o) {
      taps.push_back(taps_of(s, axes[i], o));
      mask.mutable_data()[o] = taps.back().outside ? T(1) : T(0);
      some = some || taps.back().outside;
    }
    y = along(y, taps, static_cast<int>(i));
    if (some) {
      outside = maximum(outside, mask);
    }
  }
  if (s.coordinates == "tf_crop_and_resize") {
    return where(Value<T>(outside), scalar_constant<Value<T>>(static_cast<T>(s.outside_value)), y);
  }
  return y;
}

/// The real numbers of an input, in double.
template <class T>
std::vector<double> reals(const Call<T>& c, std::size_t i) {
  std::vector<double> numbers;
  if (!c.has(i)) {
    return numbers;
  }
  if (!c.at(i).is_known()) {
    c.refuse_unknown("input " + std::to_string(i), "run it outside compile, or constants");
  }
  for (const T number : detached(c.at(i).value()).plain().values()) {
    numbers.push_back(static_cast<double>(number));
  }
  return numbers;
}

/// Sizes as near to the given ones as one factor for all axes allows.
void keep_aspect(const std::string& policy, std::vector<Axis*>& axes) {
  double factor = axes[0]->scale;
  for (const Axis* axis : axes) {
    factor = policy == "not_larger" ? std::min(factor, axis->scale) : std::max(factor, axis->scale);
  }
  for (Axis* axis : axes) {
    axis->scale = factor;
    axis->out = static_cast<Index>(std::floor(factor * static_cast<double>(axis->in) + 0.5));
  }
}

template <class T>
Results<T> apply_resize(Call<T>& c,
                        const Settings& settings,
                        const std::vector<double>& scales,
                        const std::vector<Index>& sizes,
                        const std::vector<double>& roi) {
  const Shape x = c.shape(0);
  std::vector<int> named;
  if (c.given("axes")) {
    named = resolve_axes(c.integers("axes"), x.rank());
  } else {
    for (int axis = 0; axis < x.rank(); ++axis) {
      named.push_back(axis);
    }
  }
  const std::size_t count = sizes.empty() ? scales.size() : sizes.size();
  if (count != named.size() || (!roi.empty() && roi.size() != 2 * named.size())) {
    c.refuse(std::to_string(count) + " scales or sizes for " + std::to_string(named.size()) +
                 " axes of " + to_string(x),
             "one for each axis",
             ErrorCode::rank_mismatch);
  }
  std::vector<Axis> axes;
  for (const Index extent : x) {
    axes.push_back({extent, extent, 1, 0, 1});
  }
  std::vector<Axis*> changed;
  for (std::size_t i = 0; i < named.size(); ++i) {
    Axis& axis = axes[static_cast<std::size_t>(named[i])];
    const double in = static_cast<double>(axis.in);
    axis.scale = sizes.empty() ? scales[i] : static_cast<double>(sizes[i]) / in;
    if (!roi.empty()) {
      axis.roi_start = roi[i];
      axis.roi_end = roi[named.size() + i];
    }
    const double extent = sizes.empty()
                              ? std::floor(in * (settings.coordinates == "tf_crop_and_resize"
                                                     ? axis.scale * (axis.roi_end - axis.roi_start)
                                                     : axis.scale))
                              : static_cast<double>(sizes[i]);
    if (!(axis.scale > 0) || !(extent >= 0) || extent > 0x1p40 || (axis.in == 0 && extent > 0)) {
      c.refuse("axis " + std::to_string(named[i]) + " of " + to_string(x) + " times " +
                   std::to_string(axis.scale),
               "a factor above zero",
               ErrorCode::invalid_output_size);
    }
    axis.out = static_cast<Index>(extent);
    changed.push_back(&axis);
  }
  for (std::size_t i = 2; i < axes.size(); ++i) {
    const double cells = settings.mode == "nearest" ? 1 : (settings.mode == "linear" ? 2 : 4);
    c.reach.axes.push_back({axes[i].scale == 1 ? 1 : cells, 1 / axes[i].scale});
  }
  const std::string policy = c.text("keep_aspect_ratio_policy", "stretch");
  if (!sizes.empty() && policy != "stretch") {
    keep_aspect(policy, changed);
  }
  Shape y;
  for (const Axis& axis : axes) {
    y.push_back(axis.out);
  }
  c.require_budget(y);
  return c.same(resized(c.value(0), settings, axes));
}

template <class T>
Results<T> resize_rule(Call<T>& c) {
  Settings s;
  s.mode = c.text("mode", "nearest");
  if (s.mode != "nearest" && s.mode != "linear" && s.mode != "cubic") {
    c.refuse_attribute("mode", s.mode);
  }
  if (c.since < 11) {
    s.coordinates = "asymmetric";
    s.nearest = "floor";
    return apply_resize(c, s, reals(c, 1), {}, {});
  }
  s.coordinates = c.text("coordinate_transformation_mode", "half_pixel");
  s.nearest = c.text("nearest_mode", "round_prefer_floor");
  s.cubic_a = c.real("cubic_coeff_a", -0.75);
  s.outside_value = c.real("extrapolation_value", 0);
  s.excludes_outside = c.flag("exclude_outside");
  s.antialias = c.flag("antialias");
  const std::vector<Index> sizes = c.has(3) ? c.list(3) : std::vector<Index>();
  const std::vector<double> roi =
      s.coordinates == "tf_crop_and_resize" ? reals(c, 1) : std::vector<double>();
  return apply_resize(c, s, sizes.empty() ? reals(c, 2) : std::vector<double>(), sizes, roi);
}

template <class T>
Results<T> upsample_rule(Call<T>& c) {
  Settings s;
  s.mode = c.text("mode", "nearest");
  s.mode = s.mode == "bilinear" ? "linear" : s.mode;
  if (s.mode != "nearest" && s.mode != "linear") {
    c.refuse_attribute("mode", s.mode);
  }
  s.coordinates = "asymmetric";
  s.nearest = "floor";
  std::vector<double> scales;
  if (c.since >= 9) {
    scales = reals(c, 1);
  } else if (c.since >= 7) {
    const std::vector<float>& given = c.required("scales").floats;
    scales.assign(given.begin(), given.end());
  } else {
    scales = {1, 1, c.real("height_scale", 1), c.real("width_scale", 1)};
  }
  return apply_resize(c, s, scales, {}, {});
}

}  // namespace

void add_resizing(OperatorList& list) {
  list.family("movement");
  list.add("Resize", {10, 11, 13, 18, 19}, []<class T>(Call<T>& c) -> Results<T> {
    return resize_rule(c);
  });
  list.add("Upsample", {1, 7, 9, 10}, []<class T>(Call<T>& c) -> Results<T> {
    return upsample_rule(c);
  });
}

}  // namespace fenestra::onnx

// GridSample and RoiAlign: pictures read between their cells. Which cells are read must be known;
// how much each counts may be differentiated.
#include <fenestra/io/onnx/call.hpp>
#include <fenestra/io/onnx/integers.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/where/where.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace fenestra::onnx {

namespace {

/// x mirrored into [low, high].
template <class T>
Value<T> mirrored(const Value<T>& x, double low, double high) {
  const double length = high - low;
  if (length <= 0) {
    return x * 0.0 + low;
  }
  const Value<T> position = mod(x - low, scalar_constant<Value<T>>(static_cast<T>(2 * length)));
  return (length - abs(position - length)) + low;
}
Index mirrored(Index cell, double low, double high) {
  const double length = high - low;
  if (length <= 0) {
    return 0;
  }
  const double x = static_cast<double>(cell) - low;
  const double rest = x - 2 * length * std::floor(x / (2 * length));
  return static_cast<Index>(std::floor(length - std::abs(rest - length) + low));
}

/// One spatial axis: the coordinates of the samples and the cells next below them.
template <class T>
struct Line {
  Index extent = 1;
  Value<T> at;      ///< (N, Ho, Wo), in cells
  Tensor<T> below;  ///< its floor
  double low = 0;   ///< borders for mirroring
  double high = 0;
};

struct GridSettings {
  bool aligned = false;
  std::string mode;
  std::string padding;
  int taps() const { return mode == "cubic" ? 4 : mode == "linear" ? 2 : 1; }
};

template <class T>
Line<T> line_of(const Value<T>& grid, Index extent, const GridSettings& s) {
  Line<T> line;
  line.extent = extent;
  const double n = static_cast<double>(extent);
  line.low = s.aligned ? 0 : -0.5;
  line.high = s.aligned ? n - 1 : n - 0.5;
  line.at = s.aligned ? (grid + 1) * ((n - 1) / 2) : ((grid + 1) * n - 1) * 0.5;
  if (s.mode != "cubic" && s.padding == "border") {
    line.at = clip(line.at, 0, n - 1);
  } else if (s.mode != "cubic" && s.padding == "reflection") {
    line.at = clip(mirrored(line.at, line.low, line.high), 0, n - 1);
  }
  if (s.mode == "nearest") {
    line.at = round(line.at);
  }
  line.below = floor(detached(line.at)).tensor();
  return line;
}

/// How much the cell `below + offset` counts.
template <class T>
Value<T> tap_weight(const Line<T>& line, Index offset, const GridSettings& s) {
  // Without an absolute value, whose slope at a cell would be none.
  const Value<T> beyond = line.at - Value<T>(line.below);
  const Value<T> distance = offset <= 0 ? Value<T>(beyond - offset) : Value<T>(offset - beyond);
  if (s.mode == "linear") {
    return 1 - distance;
  }
  constexpr double kA = -0.75;
  if (offset == 0 || offset == 1) {
    return (distance * (kA + 2) - (kA + 3)) * distance * distance + 1;
  }
  return ((distance * kA - 5 * kA) * distance + 8 * kA) * distance - 4 * kA;
}

/// The cell that is read for `below + offset`, or -1 for none.
template <class T>
Index tap_cell(const Line<T>& line, Index sample, Index offset, const GridSettings& s) {
  const T below = line.below[sample];
  if (!(std::abs(below) < static_cast<T>(0x1p40))) {
    return -1;
  }
  const Index cell = static_cast<Index>(below) + offset;
  if (cell >= 0 && cell < line.extent) {
    return cell;
  }
  if (s.padding == "zeros") {
    return -1;
  }
  return std::clamp<Index>(
      s.padding == "reflection" ? mirrored(cell, line.low, line.high) : cell, 0, line.extent - 1);
}

template <class T>
Results<T> grid_sample(Call<T>& c) {
  GridSettings s;
  s.aligned = c.flag("align_corners");
  s.mode = c.text("mode", c.since >= 20 ? "linear" : "bilinear");
  s.mode = s.mode == "bilinear" ? "linear" : s.mode == "bicubic" ? "cubic" : s.mode;
  s.padding = c.text("padding_mode", "zeros");
  const Value<T> x = c.value(0);
  const Value<T> grid = c.value(1);
  const Shape from = x.shape();
  if (x.rank() != 4 || grid.rank() != 4 || grid.shape()[3] != 2 || grid.shape()[0] != from[0]) {
    c.refuse("x = " + to_string(from) + ", grid = " + to_string(grid.shape()),
             "x (N, C, H, W) and a grid (N, h, w, 2)",
             ErrorCode::shape_mismatch);
  }
  if (!c.at(1).is_known()) {
    c.refuse_unknown("which cells are read", "run the network outside compile and vmap");
  }
  const Shape places{from[0], grid.shape()[1], grid.shape()[2]};
  const auto component = [&](Index i) { return reshape(slice(grid, 3, i, 1), places); };
  const Line<T> rows = line_of(component(1), from[2], s);
  const Line<T> columns = line_of(component(0), from[3], s);
  const Index count = places.elements().value_or(0);
  const Index per_sample = places[1] * places[2];
  const Shape to{from[0], from[1], places[1], places[2]};
  c.require_budget(to);
  const Shape one{from[0], 1, places[1], places[2]};
  std::optional<Value<T>> sum;
  const Index first = s.mode == "cubic" ? -1 : 0;
  for (Index i = first; i < first + s.taps(); ++i) {
    for (Index j = first; j < first + s.taps(); ++j) {
      Tensor<Index> cells(to);
      Tensor<T> inside(one);
      for (Index k = 0; k < count; ++k) {
        const Index row = tap_cell(rows, k, i, s);
        const Index column = tap_cell(columns, k, j, s);
        const bool is_inside = row >= 0 && column >= 0;
        inside.mutable_data()[k] = is_inside ? T(1) : T(0);
        const Index sample = k / per_sample;
        for (Index channel = 0; channel < from[1]; ++channel) {
          const Index plane = sample * from[1] + channel;
          cells.mutable_data()[plane * per_sample + k % per_sample] =
              is_inside ? (plane * from[2] + row) * from[3] + column : 0;
        }
      }
      Value<T> term = picked(x, cells) * Value<T>(inside);
      if (s.mode != "nearest") {
        term = term * reshape(tap_weight(rows, i, s) * tap_weight(columns, j, s), one);
      }
      sum = sum ? *sum + term : term;
    }
  }
  return c.same(*sum);
}

// --- Regions -------------------------------------------------------------------------------------

constexpr int kMostPoints = 1 << 12;

/// Two cells of an axis and their weights; none where the point is outside.
struct Between {
  Index cell[2] = {0, 0};
  double weight[2] = {0, 0};
};

Between between(double at, Index extent) {
  Between result;
  if (at < -1 || at > static_cast<double>(extent)) {
    return result;
  }
  at = std::max(at, 0.0);
  result.cell[0] = std::min(static_cast<Index>(at), extent - 1);
  result.cell[1] = std::min(result.cell[0] + 1, extent - 1);
  at = result.cell[0] == extent - 1 ? static_cast<double>(extent - 1) : at;
  result.weight[1] = at - static_cast<double>(result.cell[0]);
  result.weight[0] = 1 - result.weight[1];
  return result;
}

template <class T>
Results<T> roi_align(Call<T>& c) {
  const Value<T> x = c.value(0);
  const Shape from = x.shape();
  if (!c.at(1).is_known() || from.rank() != 4 || c.at(1).rank() != 2 || c.shape(1)[1] != 4) {
    c.refuse("x = " + to_string(from) + ", rois = " + to_string(c.shape(1)),
             "x (N, C, H, W) and known rois (n, 4)",
             ErrorCode::shape_mismatch);
  }
  const Tensor<T> rois = detached(c.value(1)).plain();
  const std::vector<Index> samples = c.list(2);
  const Index out[2] = {c.integer("output_height", 1), c.integer("output_width", 1)};
  const Index count = rois.shape()[0];
  if (static_cast<Index>(samples.size()) != count || out[0] < 1 || out[1] < 1) {
    c.refuse(std::to_string(samples.size()) + " batch indices for " + std::to_string(count) +
                 " rois, output " + std::to_string(out[0]) + " x " + std::to_string(out[1]),
             "one for each, and at least one cell",
             ErrorCode::shape_mismatch);
  }
  c.require_budget(Shape{count, from[1], out[0], out[1]});
  const Index ratio = c.integer("sampling_ratio", 0);
  const double factor = c.real("spatial_scale", 1);
  const bool half =
      c.since >= 16 && c.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const bool greatest = c.text("mode", "avg") == "max";
  std::vector<Value<T>> regions;
  for (Index r = 0; r < count; ++r) {
    const Index sample = samples[static_cast<std::size_t>(r)];
    if (sample < 0 || sample >= from[0]) {
      c.refuse("batch index " + std::to_string(sample) + " of " + std::to_string(from[0]),
               "indices of samples",
               ErrorCode::invalid_index);
    }
    double begin[2];
    double step[2];
    Index grid[2];
    for (int axis = 0; axis < 2; ++axis) {
      const double offset = half ? 0.5 : 0;
      begin[axis] = static_cast<double>(rois[r * 4 + 1 - axis]) * factor - offset;
      const double end = static_cast<double>(rois[r * 4 + 3 - axis]) * factor - offset;
      const double length = half ? end - begin[axis] : std::max(end - begin[axis], 1.0);
      step[axis] = length / static_cast<double>(out[axis]);
      if (!(std::abs(step[axis]) < kMostPoints) || ratio > kMostPoints) {
        c.refuse("a region with more than " + std::to_string(kMostPoints) + " points per cell",
                 "smaller regions",
                 ErrorCode::memory_limit);
      }
      grid[axis] =
          ratio > 0 ? ratio : std::max<Index>(static_cast<Index>(std::ceil(step[axis])), 1);
    }
    const Shape to{1, from[1], out[0], out[1]};
    std::optional<Value<T>> result;
    for (Index point = 0; point < grid[0] * grid[1]; ++point) {
      const Index offset[2] = {point / grid[1], point % grid[1]};
      std::vector<Between> lines[2];
      for (int axis = 0; axis < 2; ++axis) {
        for (Index o = 0; o < out[axis]; ++o) {
          const double inside =
              (static_cast<double>(offset[axis]) + 0.5) / static_cast<double>(grid[axis]);
          lines[axis].push_back(between(
              begin[axis] + (static_cast<double>(o) + inside) * step[axis], from[2 + axis]));
        }
      }
      std::optional<Value<T>> sum;
      for (int corner = 0; corner < 4; ++corner) {
        Tensor<Index> cells(to);
        Tensor<T> weights(Shape{out[0], out[1]});
        for (Index i = 0; i < cells.size(); ++i) {
          const Between& row = lines[0][static_cast<std::size_t>(i / out[1] % out[0])];
          const Between& column = lines[1][static_cast<std::size_t>(i % out[1])];
          const Index plane = sample * from[1] + i / (out[0] * out[1]);
          cells.mutable_data()[i] =
              (plane * from[2] + row.cell[corner / 2]) * from[3] + column.cell[corner % 2];
          weights.mutable_data()[i % (out[0] * out[1])] =
              static_cast<T>(row.weight[corner / 2] * column.weight[corner % 2]);
        }
        const Value<T> term = picked(x, cells) * Value<T>(weights);
        sum = sum ? *sum + term : term;
      }
      result = !result ? *sum : greatest ? Value<T>(maximum(*result, *sum)) : *result + *sum;
    }
    regions.push_back(greatest ? *result : divide_by_count(*result, grid[0] * grid[1]));
  }
  if (regions.empty()) {
    return c.same(Value<T>(Tensor<T>(Shape{0, from[1], out[0], out[1]})));
  }
  return c.same(concat(regions, 0));
}

}  // namespace

void add_sampling(OperatorList& list) {
  list.family("selection");
  list.add(
      "GridSample", {16, 20, 22}, []<class T>(Call<T>& c) -> Results<T> { return grid_sample(c); });
  list.add(
      "RoiAlign", {10, 16, 22}, []<class T>(Call<T>& c) -> Results<T> { return roi_align(c); });
}

}  // namespace fenestra::onnx

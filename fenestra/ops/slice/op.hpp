// The descriptor of the slice family, slice and slice_adjoint: see ops/operator.hpp for the
// contract.
#pragma once

#include <fenestra/ops/engine_operator.hpp>
#include <fenestra/ops/slice/slice.hpp>
#include <fenestra/spec/problem.hpp>

#include <string>
#include <vector>

namespace fenestra {

enum class SliceFunction {
  slice,    ///< x has the whole shape, y that of the region
  adjoint,  ///< the other way round
};

struct SliceGeometry {
  SliceFunction f = SliceFunction::slice;
  Shape shape;  ///< of the whole
  Region region;

  /// One range per axis, which is what the free functions take.
  std::vector<AxisRange> ranges() const {
    std::vector<AxisRange> list;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      list.push_back({axis, region.begin[axis], region.count[axis], region.step[axis]});
    }
    return list;
  }
  friend bool operator==(const SliceGeometry&, const SliceGeometry&) = default;
};

inline std::string to_string(const SliceGeometry& g) {
  std::string text = g.f == SliceFunction::slice ? "f=slice" : "f=adjoint";
  text += " shape=" + problem_text(g.shape);
  if (g.shape.rank() > 0) {
    text += " begin=" + list_text(g.region.begin) + " count=" + list_text(g.region.count) +
            " step=" + list_text(g.region.step);
  }
  return text;
}

struct Slice : EngineOperator<Slice> {
  using Geometry = SliceGeometry;
  static constexpr std::string_view name = "slice";
  static constexpr std::string_view summary =
      "slice and its adjoint: the cells of a region, and zeros with a region filled";
  static constexpr std::string_view example =
      "f=slice shape=2x3x8x8 begin=0,0,1,0 count=2,3,6,4 step=1,1,1,2";
  static constexpr OwnField own_fields[] = {
      {.name = "shape", .meaning = "shape of the whole", .is_shape = true},
      {.name = "begin",
       .meaning = "first cell on each axis: 0,1",
       .otherwise = "0, or the last one where step < 0"},
      {.name = "count", .meaning = "cells on each axis: 2,6", .otherwise = "as many as there are"},
      {.name = "step", .meaning = "from one cell to the next: 1,2", .otherwise = "1 on each axis"}};

  /// The lists have one value per axis; `begin` defaults to 0, `step` to 1, `count` to what fits.
  static Geometry parse(std::string_view text) {
    static constexpr std::string_view kFunctions[] = {"slice", "adjoint"};
    Problem problem(text);
    Geometry g;
    if (problem.has("f")) {
      g.f = static_cast<SliceFunction>(problem.choice("f", kFunctions));
    }
    g.shape = problem.shape("shape");
    const std::vector<Index> begin = list_of(problem, "begin", g.shape);
    const std::vector<Index> count = list_of(problem, "count", g.shape);
    const std::vector<Index> step = list_of(problem, "step", g.shape);
    problem.finish(name);
    std::vector<AxisRange> ranges;
    for (int axis = 0; axis < g.shape.rank(); ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      AxisRange range{.axis = axis};
      range.step = step.empty() ? 1 : step[at];
      range.begin = begin.empty() ? (range.step < 0 ? g.shape[axis] - 1 : 0) : begin[at];
      range.count = count.empty() ? default_count(range, g.shape[axis]) : count[at];
      ranges.push_back(range);
    }
    g.region = resolve_region(name, g.shape, ranges);
    return g;
  }

  static Geometry random(Random& random) {
    Geometry g;
    g.f = random.chance(2) ? SliceFunction::adjoint : SliceFunction::slice;
    const int rank = random.chance(10) ? 0 : random_rank(random);
    for (int axis = 0; axis < rank; ++axis) {
      const Index extent = random.chance(15) ? 0 : random.between(1, rank > 3 ? 3 : 6);
      const Index step = (random.chance(4) ? -1 : 1) * random.between(1, 3);
      const Index begin = random.between(0, extent > 0 ? extent - 1 : 0);
      const Index most = default_count({.begin = begin, .step = step}, extent);
      g.shape.push_back(extent);
      g.region.begin.push_back(begin);
      g.region.count.push_back(random.between(random.chance(10) || most == 0 ? 0 : 1, most));
      g.region.step.push_back(step);
    }
    return g;
  }

  static std::vector<TensorInfo> inputs(const Geometry& g) {
    return {{"x", g.f == SliceFunction::slice ? g.shape : g.region.count}};
  }
  static TensorInfo output(const Geometry& g) {
    return {"y", g.f == SliceFunction::slice ? g.region.count : g.shape};
  }
  static Algebra algebra(const Geometry&) { return Algebra::multilinear; }
  /// Copies: no rounding at all.
  static Index terms(const Geometry&) { return 0; }

  template <class V>
  static V call(const Geometry& g, const std::vector<V>& in, const std::vector<Tensor<Index>>&) {
    const std::vector<AxisRange> ranges = g.ranges();
    return g.f == SliceFunction::slice
               ? fenestra::slice(in[0], std::span<const AxisRange>(ranges))
               : fenestra::slice_adjoint(in[0], g.shape, std::span<const AxisRange>(ranges));
  }

 private:
  static std::vector<Index> list_of(Problem& problem, std::string_view key, const Shape& shape) {
    std::vector<Index> list = problem.integers(key);
    const auto count = static_cast<Index>(list.size());
    if (count != 0 && count != shape.rank()) {
      throw Error(std::string(name),
                  {.code = ErrorCode::rank_mismatch, .got = count, .needed = shape.rank()},
                  "slice: " + std::string(key) + " has " + std::to_string(count) +
                      " values for shape " + to_string(shape) + "\n  fix: one value per axis");
    }
    return list;
  }
  static Index default_count(const AxisRange& range, Index extent) {
    if (range.begin < 0 || range.begin >= extent || range.step == 0) {
      return 0;
    }
    return (range.step > 0 ? (extent - 1 - range.begin) / range.step : range.begin / -range.step) +
           1;
  }
};

static_assert(Operator<Slice>);

}  // namespace fenestra

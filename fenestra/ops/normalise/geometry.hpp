// Which elements share statistics and which share an affine pair, for batch, group and layer norm.
//
// x is seen under a `view` shape in which both are a matter of broadcasting: `stat` and `affine`
// are the view with 1 on the axes that share. The kernels walk the same arrangement as runs of
// memory.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/ops/geometry.hpp>
#include <fenestra/ops/normalise/options.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/tensor/box.hpp>
#include <fenestra/tensor/layout.hpp>
#include <fenestra/tensor/shape.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace fenestra {

/// How the elements of a group lie in memory. Group s begins at
///   (s / inner_groups) * outer_stride + (s % inner_groups) * inner_stride
/// and has `runs` runs of `length` elements, `run_stride` apart. The affine index of element i of a
/// run is (s % affine_groups) * affine_stride + i / piece. `columns` (batch norm with channels
/// last) stands for rows of consecutive groups instead: runs = rows, groups = length of a row.
struct NormRuns {
  Index groups = 0;
  Index inner_groups = 1;
  Index outer_stride = 0;
  Index inner_stride = 0;
  Index runs = 1;
  Index run_stride = 0;
  Index length = 0;
  Index piece = 1;
  Index affine_groups = 1;
  Index affine_stride = 0;
  bool columns = false;

  constexpr Index begin(Index s) const {
    return s / inner_groups * outer_stride + s % inner_groups * inner_stride;
  }
  constexpr Index affine_begin(Index s) const { return s % affine_groups * affine_stride; }
  friend constexpr bool operator==(const NormRuns&, const NormRuns&) = default;
};

struct NormGeometry {
  Shape x;
  Shape view;
  Shape stat;
  Shape affine;
  Shape parameters;  ///< of gamma and beta as the caller has them
  Index count = 0;   ///< elements that share statistics
  double eps = 0;
  NormRuns runs;

  /// Nothing to normalise, and so nothing that a result could depend on.
  constexpr bool is_empty() const { return x.elements() == 0; }
  Index stat_cells() const { return stat.elements().value_or(0); }
  Index affine_cells() const { return affine.elements().value_or(0); }
  /// Whether one affine pair belongs to one group, so that gamma leaves the sums over the group.
  bool affine_is_stat() const { return stat == affine; }
  /// Whether statistics are shared by all rows of axis 0 of the view.
  bool is_shared() const { return stat.rank() > 0 && stat[0] == 1; }
  /// The same statistics on `rows` rows of axis 0 of the view.
  NormGeometry piece(Index rows) const {
    NormGeometry some = *this;
    some.view[0] = rows;
    if (is_shared()) {
      some.runs.runs = rows;
      return some;
    }
    some.stat[0] = rows;
    some.runs.groups = runs.groups / view[0] * rows;
    if (runs.inner_groups == runs.groups) {
      some.runs.inner_groups = some.runs.groups;
    }
    return some;
  }
  /// The same statistics on a part of the view: rows of axis 0, or of the cells of channels; none
  /// of other parts.
  std::optional<NormGeometry> tile(const Box& box) const {
    const bool by_cells = is_shared() && !runs.columns && view.rank() == 3;
    for (int axis = 1; axis < view.rank(); ++axis) {
      if (!(by_cells && axis == 2) && box[axis] != IndexRange{0, view[axis]}) {
        return std::nullopt;
      }
    }
    NormGeometry part = piece(box.count[0]);
    if (by_cells) {
      const Index cells = box.count[2];
      part.view[2] = cells;
      part.runs.inner_stride = cells;
      part.runs.run_stride = view[1] * cells;
      part.runs.length = cells;
      part.runs.piece = cells;
    }
    return part;
  }
  friend bool operator==(const NormGeometry&, const NormGeometry&) = default;
};

namespace detail {

constexpr Fault check_eps(double eps) {
  return eps >= 0 && eps - eps == 0 ? Fault{} : Fault{.code = ErrorCode::invalid_option};
}
/// Whether x is a batch with channels, and eps a number to add.
constexpr Fault check_norm(const Shape& x, double eps) {
  if (x.rank() < 2) {
    return {
        .code = ErrorCode::rank_mismatch, .argument = Argument::x, .got = x.rank(), .needed = 2};
  }
  if (const Fault fault = check_elements(Argument::x, x)) {
    return fault;
  }
  return check_eps(eps);
}
constexpr Fault check_group_count(Index channels, Index groups) {
  if (groups >= 1 && channels % groups == 0) {
    return {};
  }
  return {.code = groups < 1 ? ErrorCode::invalid_groups : ErrorCode::channels_not_divisible,
          .argument = Argument::groups,
          .got = groups,
          .needed = channels};
}

/// Batch, channels and cells of x by layout.
constexpr ActivationMap norm_map(const Shape& x, Layout layout) {
  const bool first = layout == Layout::channels_first;
  ActivationMap map{x[0], first ? x[1] : x[x.rank() - 1], 1, layout};
  for (int axis = first ? 2 : 1; axis < x.rank() - (first ? 0 : 1); ++axis) {
    map.cells *= x[axis];
  }
  return map;
}

[[noreturn]] inline void throw_norm(std::string_view op,
                                    const Shape& x,
                                    double eps,
                                    const Fault& fault) {
  const std::string name(op);
  std::string text = name + ": x = " + to_string(x);
  const std::string got = std::to_string(fault.got);
  const std::string needed = std::to_string(fault.needed);
  if (fault.argument == Argument::x && fault.code != ErrorCode::rank_mismatch) {
    require_elements(op, "x", Argument::x, x);
  }
  if (fault.argument == Argument::groups) {
    text += " has " + needed + " channels, groups = " + got +
            "\n  fix: a number of groups that divides the channels";
  } else if (fault.code == ErrorCode::invalid_option) {
    text = name + ": eps = " + std::to_string(eps) + "\n  fix: a finite number, zero or above";
  } else if (op == "layer_norm") {
    text = name + ": " + got + " trailing axes of x = " + to_string(x) + "\n  fix: between 1 and " +
           needed;
  } else {
    text += "\n  fix: a batch with channels, (N, C, ...) or (N, ..., C)";
  }
  throw Error(name, fault, text);
}

}  // namespace detail

/// One group per channel.
constexpr Resolved<NormGeometry> resolve_batch_norm(const Shape& x, const NormOptions& options) {
  if (const Fault fault = detail::check_norm(x, options.eps)) {
    return {{}, fault};
  }
  const ActivationMap m = detail::norm_map(x, options.layout);
  NormGeometry g;
  g.x = x;
  g.eps = options.eps;
  g.count = m.batch * m.cells;
  g.parameters = Shape{m.channels};
  // Without space both layouts are the same rows of channels.
  if (options.layout == Layout::channels_last || m.cells == 1) {
    g.view = Shape{m.batch * m.cells, m.channels};
    g.stat = g.affine = Shape{1, m.channels};
    g.runs = {.groups = m.channels,
              .runs = m.batch * m.cells,
              .run_stride = m.channels,
              .length = m.channels,
              .columns = true};
    return {g, {}};
  }
  g.view = Shape{m.batch, m.channels, m.cells};
  g.stat = g.affine = Shape{1, m.channels, 1};
  g.runs = {.groups = m.channels,
            .inner_groups = m.channels,
            .inner_stride = m.cells,
            .runs = m.batch,
            .run_stride = m.channels * m.cells,
            .length = m.cells,
            .piece = m.cells,
            .affine_groups = m.channels,
            .affine_stride = 1};
  return {g, {}};
}

/// One group per sample and group of channels.
constexpr Resolved<NormGeometry> resolve_group_norm(const Shape& x,
                                                    Index groups,
                                                    const NormOptions& options) {
  if (const Fault fault = detail::check_norm(x, options.eps)) {
    return {{}, fault};
  }
  const ActivationMap m = detail::norm_map(x, options.layout);
  if (const Fault fault = detail::check_group_count(m.channels, groups)) {
    return {{}, fault};
  }
  const Index part = m.channels / groups;
  NormGeometry g;
  g.x = x;
  g.eps = options.eps;
  g.count = part * m.cells;
  g.parameters = Shape{m.channels};
  if (options.layout == Layout::channels_last) {
    g.view = Shape{m.batch, m.cells, groups, part};
    g.stat = Shape{m.batch, 1, groups, 1};
    g.affine = Shape{1, 1, groups, part};
    g.runs = {.groups = m.batch * groups,
              .inner_groups = groups,
              .outer_stride = m.cells * m.channels,
              .inner_stride = part,
              .runs = m.cells,
              .run_stride = m.channels,
              .length = part,
              .affine_groups = groups,
              .affine_stride = part};
    return {g, {}};
  }
  g.view = Shape{m.batch, groups, part, m.cells};
  g.stat = Shape{m.batch, groups, 1, 1};
  g.affine = Shape{1, groups, part, 1};
  g.runs = {.groups = m.batch * groups,
            .inner_groups = m.batch * groups > 0 ? m.batch * groups : 1,
            .inner_stride = part * m.cells,
            .length = part * m.cells,
            .piece = m.cells > 0 ? m.cells : 1,
            .affine_groups = groups,
            .affine_stride = part};
  return {g, {}};
}

/// One group per index of the leading axes; the last `axes` are normalised.
constexpr Resolved<NormGeometry> resolve_layer_norm(const Shape& x, int axes, double eps) {
  if (const Fault fault = detail::check_eps(eps)) {
    return {{}, fault};
  }
  if (axes < 1 || axes > x.rank()) {
    return {{},
            {.code = ErrorCode::rank_mismatch,
             .argument = Argument::x,
             .got = axes,
             .needed = x.rank()}};
  }
  if (const Fault fault = check_elements(Argument::x, x)) {
    return {{}, fault};
  }
  NormGeometry g;
  g.x = x;
  g.eps = eps;
  Index rows = 1;
  g.count = 1;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const bool inside = axis >= x.rank() - axes;
    (inside ? g.count : rows) *= x[axis];
    if (inside) {
      g.parameters.push_back(x[axis]);
    }
  }
  g.view = Shape{rows, g.count};
  g.stat = Shape{rows, 1};
  g.affine = Shape{1, g.count};
  g.runs = {.groups = rows,
            .inner_groups = rows > 0 ? rows : 1,
            .inner_stride = g.count,
            .length = g.count};
  return {g, {}};
}

// As `resolve_*`, but a fault is thrown as an `Error`.

constexpr NormGeometry batch_norm_geometry(const Shape& x, const NormOptions& options) {
  const auto [geometry, fault] = resolve_batch_norm(x, options);
  if (fault) {
    detail::throw_norm("batch_norm", x, options.eps, fault);
  }
  return geometry;
}
constexpr NormGeometry group_norm_geometry(const Shape& x,
                                           Index groups,
                                           const NormOptions& options) {
  const auto [geometry, fault] = resolve_group_norm(x, groups, options);
  if (fault) {
    detail::throw_norm("group_norm", x, options.eps, fault);
  }
  return geometry;
}
constexpr NormGeometry layer_norm_geometry(const Shape& x, int axes, double eps) {
  const auto [geometry, fault] = resolve_layer_norm(x, axes, eps);
  if (fault) {
    detail::throw_norm("layer_norm", x, eps, fault);
  }
  return geometry;
}

}  // namespace fenestra

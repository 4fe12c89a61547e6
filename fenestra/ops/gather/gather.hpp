// Elements and slices of a tensor by integers, on any value type.
//
//   gather(x, indices, axis)  y[.., j, ..] = x[.., indices[.., j, ..], ..]: one for each result
//   take(x, indices, axis)    y = slices of x along the axis, one for each of the indices
//
// Indices count from 0, negative ones from the end. Both are `take` by flat cells (reduce/select),
// whose adjoint adds up what was chosen more than once.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/apply.hpp>
#include <fenestra/ops/axis.hpp>
#include <fenestra/ops/gather/call.hpp>
#include <fenestra/ops/reduce/select.hpp>
#include <fenestra/spec/options.hpp>

#include <string>

namespace fenestra {

/// What a call of either means in terms of flat cells of x.
struct GatherGeometry {
  Shape x;
  int axis = -1;
  Shape indices;
  bool slices = false;  ///< `take`: the indices choose slices

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    using O = GatherGeometry;
    field("axis", &O::axis, {.help = help::kAxis, .always_printed = true});
    field("slices",
          &O::slices,
          {.help = "whether an index takes a whole slice", .place = Place::nowhere});
  }

  constexpr std::string_view op() const { return slices ? "take" : "gather"; }
  constexpr Shape y_shape() const {
    if (!slices) {
      return indices;
    }
    Shape y;
    for (int i = 0; i < x.rank(); ++i) {
      if (i != axis) {
        y.push_back(x[i]);
        continue;
      }
      for (const Index extent : indices) {
        y.push_back(extent);
      }
    }
    return y;
  }
  friend bool operator==(const GatherGeometry&, const GatherGeometry&) = default;
};

/// Throws where there is no such axis, or the indices do not fit x.
FENESTRA_API GatherGeometry gather_geometry(const Shape& x,
                                            const Shape& indices,
                                            int axis,
                                            bool slices);

/// Integers of every kind as flat cells, after checking them; those of a program are checked when
/// they are given. Compiled in rules.cpp.
FENESTRA_API Selection gather_cells(const GatherGeometry& g, const Selection& indices);
FENESTRA_API Indices gather_cells(const GatherGeometry& g, const Indices& indices);
FENESTRA_API Shape item_shape(const Selection& indices);
FENESTRA_API Shape item_shape(const Indices& indices);
namespace graph {
FENESTRA_API Data gather_cells(const GatherGeometry& g, const Data& indices);
FENESTRA_API Shape item_shape(const Data& indices);
}  // namespace graph

namespace detail {

template <AnyValue V>
V gathered(const V& x, const IndicesOf<V>& indices, int axis, bool slices) {
  const GatherGeometry g = gather_geometry(x.shape(), item_shape(indices), axis, slices);
  return fenestra::take(x, gather_cells(g, indices), g.y_shape());
}

}  // namespace detail

inline namespace generic {

template <AnyValue V>
V gather(const V& x, const IndicesOf<V>& indices, int axis) {
  return detail::gathered(x, indices, axis, false);
}

template <AnyValue V>
V take(const V& x, const IndicesOf<V>& indices, int axis) {
  return detail::gathered(x, indices, axis, true);
}

}  // namespace generic

}  // namespace fenestra

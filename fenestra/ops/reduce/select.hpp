// Maxima over axes: the winners, and the linear pair that follows them.
//
//   take(x, cells, shape)    y[i] = x[cells[i]]
//   place(y, cells, shape)   x[cells[i]] += y[i]
//
// The first element that no later one beats wins; NaN beats every number. Value and derivatives
// follow that one winner.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/ops/elementwise/broadcast.hpp>
#include <fenestra/spec/scalar.hpp>

#include <algorithm>

namespace fenestra {

template <AnyValue V>
constexpr V take(const V& x, const IndicesOf<V>& cells, const Shape& shape);
template <AnyValue V>
constexpr V place(const V& y, const IndicesOf<V>& cells, const Shape& shape);

/// Flat indices into a tensor of `from`, one for each element of `to`, trusted: whoever makes the
/// indices checks them.
struct TakePrimitive : PrimitiveBase<TakePrimitive> {
  static constexpr std::string_view name = "take";
  Shape from;
  Shape to;

  constexpr Shape result_shape(const Shape&) const { return to; }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection> data,
           T* out,
           const SelectionBuffer&) const {
    const Index* cells = data[0].indices().data();
    const Index n = to.elements().value_or(0);
    for (Index i = 0; i < n; ++i) {
      out[i] = in[0][cells[i]];
    }
  }
  template <class V>
  V vjp(int, const Saved<V>& saved, const V& y_bar) const {
    return place(y_bar, saved.data[0], from);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    return take(*dots[0], saved.data[0], to);
  }
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const TakePrimitive&, const TakePrimitive&) = default;
};

struct PlacePrimitive : PrimitiveBase<PlacePrimitive> {
  static constexpr std::string_view name = "place";
  Shape from;
  Shape to;

  constexpr Shape result_shape(const Shape&) const { return to; }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection> data,
           T* out,
           const SelectionBuffer&) const {
    std::fill_n(out, to.elements().value_or(0), T(0));
    const Index* cells = data[0].indices().data();
    for (Index i = 0; i < in[0].size(); ++i) {
      out[cells[i]] = out[cells[i]] + in[0][i];
    }
  }
  template <class V>
  V vjp(int, const Saved<V>& saved, const V& y_bar) const {
    return take(y_bar, saved.data[0], from);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    return place(*dots[0], saved.data[0], to);
  }
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const PlacePrimitive&, const PlacePrimitive&) = default;
};

template <AnyValue V>
constexpr V take(const V& x, const IndicesOf<V>& cells, const Shape& shape) {
  return apply(TakePrimitive{{}, x.shape(), shape}, {x}, {cells});
}

template <AnyValue V>
constexpr V place(const V& y, const IndicesOf<V>& cells, const Shape& shape) {
  return apply(PlacePrimitive{{}, y.shape(), shape}, {y}, {cells});
}

/// What cells are along one axis: `cell / inner % extent`, in a tensor of `shape`. Of cells of a
/// batch, which count from the first item, it gives each item's own.
struct CellPositions {
  static constexpr std::string_view name = "cell_positions";
  Index inner = 1;
  Index extent = 1;
  Shape shape;

  const Shape& result_shape() const { return shape; }
  static std::size_t scratch_bytes() { return 0; }
  void run(const Selection& cells, Index* out, void*) const {
    const Index* cell = cells.indices().data();
    const Index n = shape.elements().value_or(0);
    for (Index i = 0; i < n; ++i) {
      out[i] = cell[i] / inner % extent;
    }
  }
  friend bool operator==(const CellPositions&, const CellPositions&) = default;
};

// For every kind of integers; compiled in rules.cpp.
FENESTRA_API Selection cell_positions(const Selection& cells, const CellPositions& of);
FENESTRA_API Indices cell_positions(const Indices& cells, const CellPositions& of);
namespace graph {
FENESTRA_API Data cell_positions(const Data& cells, const CellPositions& of);
}  // namespace graph

/// Cells that all `count` items of a batch share, as cells of the whole batch, `size` apart.
FENESTRA_API Indices repeated_cells(const Indices& cells, Index count, Index size, const Shape& to);

/// The maximum over the axes in which `to` is 1; none of them is empty.
struct MaxToPrimitive : PrimitiveBase<MaxToPrimitive> {
  static constexpr std::string_view name = "max_to";
  Shape from;
  Shape to;

  constexpr Shape result_shape(const Shape&) const { return to; }
  template <class T>
  SelectionType workspace() const {
    return {SelectionForm::indices, to};
  }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer& winners) const {
    const Index n = to.elements().value_or(0);
    if (winners.indices == nullptr) {
      return find_maximum(in[0], out);
    }
    std::fill_n(winners.indices, n, Index{-1});
    for_each_element([&](Index i, Index o) {
      Index& winner = winners.indices[o];
      if (winner < 0 || beats(in[0][i], in[0][winner])) {
        winner = i;
      }
    });
    for (Index i = 0; i < n; ++i) {
      out[i] = in[0][winners.indices[i]];
    }
  }
  template <class V>
  V vjp(int, const Saved<V>& saved, const V& y_bar) const {
    return place(y_bar, saved.workspace, from);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    return take(*dots[0], saved.workspace, to);
  }
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const MaxToPrimitive&, const MaxToPrimitive&) = default;

 private:
  /// The first element of x that is reduced to element `o`: every reduced axis is at 0.
  Index first_cell(Index o) const {
    Index cell = 0;
    Index stride = 1;
    for (int axis = to.rank() - 1; axis >= 0; --axis) {
      cell += o % to[axis] * stride;
      o /= to[axis];
      stride *= from[axis];
    }
    return cell;
  }
  /// Calls visit(element of x, element of y), x in row-major order.
  template <class F>
  void for_each_element(F&& visit) const {
    if (from.elements().value_or(0) == 0) {
      return;
    }
    const BroadcastLoop<1> loop(from, {to});
    const Index n = loop.inner();
    for (Index run = 0; run < loop.outer(); ++run) {
      const Index at = loop.offset(0, run);
      for (Index i = 0; i < n; ++i) {
        visit(run * n + i, at + i * loop.inner_step(0));
      }
    }
  }
  /// Without winners. A scalar without a total order (an interval) has an enclosed maximum, but a
  /// winner only where there is no doubt.
  template <class T>
  void find_maximum(const Tensor<T>& x, T* out) const {
    const Index n = to.elements().value_or(0);
    for (Index o = 0; o < n; ++o) {
      out[o] = x[first_cell(o)];
    }
    for_each_element([&](Index i, Index o) {
      if constexpr (TotallyOrdered<T>) {
        if (beats(x[i], out[o])) {
          out[o] = x[i];
        }
      } else {
        out[o] = scalar_max(out[o], x[i]);
      }
    });
  }
};

}  // namespace fenestra

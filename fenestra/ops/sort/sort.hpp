// Sorting along an axis on any value type: all of it, or the first few.
//
// The result is a choice of elements of x, so its derivatives are those of `take` and `place` by
// the cells that the forward pass leaves. The order is total: NaN is above every number, and of
// equals the earlier one comes first, ascending and descending alike.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/ops/axis.hpp>
#include <fenestra/ops/reduce/select.hpp>
#include <fenestra/ops/sort/call.hpp>
#include <fenestra/spec/options.hpp>
#include <fenestra/spec/scalar.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace fenestra {

/// The first `count` elements of each line in order; `cells`, where not null, receives their flat
/// indices in x. Compiled for float and double in kernels/lines.cpp.
template <KernelScalar T>
FENESTRA_API void sort_kernel(
    const T* x, T* out, Index* cells, const AxisView& view, Index count, bool descending);

namespace spec {

/// The places of the first `count` of `order.size()` elements, `step` apart, at its beginning.
template <OrderedScalar T>
void sort_line(const T* x, Index step, std::vector<Index>& order, Index count, bool descending) {
  for (std::size_t k = 0; k < order.size(); ++k) {
    order[k] = static_cast<Index>(k);
  }
  const auto before = [&](Index i, Index j) {
    const T& a = x[(descending ? i : j) * step];
    const T& b = x[(descending ? j : i) * step];
    return beats(a, b) || (i < j && !beats(b, a));
  };
  if (count == static_cast<Index>(order.size())) {
    std::sort(order.begin(), order.end(), before);
  } else {
    std::partial_sort(order.begin(), order.begin() + count, order.end(), before);
  }
}

}  // namespace spec

struct SortPrimitive : PrimitiveBase<SortPrimitive> {
  static constexpr std::string_view name = "sort";
  Shape x;
  int axis = 0;
  Index count = 0;
  bool descending = false;

  constexpr Shape result_shape(const Shape&) const {
    Shape y = x;
    y[axis] = count;
    return y;
  }
  template <class T>
  SelectionType workspace() const {
    return {SelectionForm::indices, result_shape(x)};
  }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer& cells) const {
    const AxisView view = axis_view(x, axis);
    if constexpr (KernelScalar<T>) {
      sort_kernel(in[0].data(), out, cells.indices, view, count, descending);
    } else {
      // However many lines there are of which nothing is asked, and however long.
      if (view.outer == 0 || view.inner == 0 || count == 0) {
        return;
      }
      std::vector<Index> order(static_cast<std::size_t>(view.extent));
      for (Index o = 0; o < view.outer; ++o) {
        for (Index i = 0; i < view.inner; ++i) {
          const Index from = o * view.extent * view.inner + i;
          const Index to = o * count * view.inner + i;
          spec::sort_line(in[0].data() + from, view.inner, order, count, descending);
          for (Index k = 0; k < count; ++k) {
            const Index cell = from + order[static_cast<std::size_t>(k)] * view.inner;
            out[to + k * view.inner] = in[0][cell];
            if (cells.indices != nullptr) {
              cells.indices[to + k * view.inner] = cell;
            }
          }
        }
      }
    }
  }
  std::string attributes() const {
    return "axis=" + std::to_string(axis) + " count=" + std::to_string(count) +
           (descending ? " descending" : "");
  }
  template <class V>
  V vjp(int, const Saved<V>& saved, const V& y_bar) const {
    return place(y_bar, saved.workspace, x);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    return take(*dots[0], saved.workspace, result_shape(x));
  }
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const SortPrimitive&, const SortPrimitive&) = default;
};

namespace detail {

constexpr SortPrimitive resolve_sort(
    std::string_view op, const Shape& x, int axis, OptionalIndex count, bool descending) {
  const int at = resolved_axis(op, x, axis);
  const Index wanted = count.given ? count.value : x[at];
  if (wanted < 0 || wanted > x[at]) {
    throw Error(std::string(op),
                {.code = ErrorCode::invalid_extent,
                 .argument = Argument::x,
                 .got = wanted,
                 .needed = x[at]},
                std::string(op) + ": " + std::to_string(wanted) + " elements of axis " +
                    std::to_string(at) + " of x = " + to_string(x) + ", which has " +
                    std::to_string(x[at]) + "\n  fix: from 0 to " + std::to_string(x[at]));
  }
  return {{}, x, at, wanted, descending};
}

template <AnyValue V>
Sorted<V> sorted(const SortPrimitive& primitive, const V& x) {
  auto applied =
      apply_all(primitive, std::span<const V>(&x, 1), std::span<const IndicesOf<V>>(), true);
  const AxisView view = axis_view(primitive.x, primitive.axis);
  return {std::move(applied.y),
          cell_positions(applied.workspace,
                         {view.inner, view.extent, primitive.result_shape(primitive.x)})};
}

}  // namespace detail

inline namespace generic {

template <AnyValue V>
constexpr V sort(const V& x, const SortOptions& options = {}) {
  return apply(detail::resolve_sort("sort", x.shape(), options.axis, {}, options.descending), x);
}
template <AnyValue V>
Sorted<V> sort_with_indices(const V& x, const SortOptions& options = {}) {
  return detail::sorted(
      detail::resolve_sort("sort", x.shape(), options.axis, {}, options.descending), x);
}

template <AnyValue V>
Sorted<V> topk(const V& x, Index count, const TopkOptions& options = {}) {
  return detail::sorted(
      detail::resolve_sort("topk", x.shape(), options.axis, count, options.largest), x);
}

}  // namespace generic

}  // namespace fenestra

// Running sums along an axis on any value type. Linear; the adjoint runs from the other end.
//
//   y[.., k, ..] = sum of x[.., j, ..] for j <= k, or j >= k in reverse
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/ops/axis.hpp>
#include <fenestra/ops/cumsum/call.hpp>
#include <fenestra/spec/options.hpp>
#include <fenestra/tensor/split.hpp>

#include <string>

namespace fenestra {

// Compiled for float and double in kernels/lines.cpp.
template <KernelScalar T>
FENESTRA_API void cumsum_kernel(const T* x, T* out, const AxisView& view, bool reverse);

struct CumsumPrimitive : PrimitiveBase<CumsumPrimitive> {
  static constexpr std::string_view name = "cumsum";
  Shape x;
  int axis = -1;
  bool reverse = false;

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    using O = CumsumPrimitive;
    field("axis", &O::axis, {.help = help::kAxis, .always_printed = true, .place = Place::first});
    field("reverse",
          &O::reverse,
          {.help = "whether it starts at the end", .place = Place::by_keyword});
  }

  constexpr Shape result_shape(const Shape&) const { return x; }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    const AxisView view = axis_view(x, axis);
    if constexpr (KernelScalar<T>) {
      cumsum_kernel(in[0].data(), out, view, reverse);
    } else {
      if (view.extent == 0) {
        return;  // however many lines there are
      }
      for (Index o = 0; o < view.outer; ++o) {
        for (Index i = 0; i < view.inner; ++i) {
          T sum(0);
          for (Index k = 0; k < view.extent; ++k) {
            const Index at = reverse ? view.extent - 1 - k : k;
            const Index cell = (o * view.extent + at) * view.inner + i;
            sum = k == 0 ? in[0][cell] : T(sum + in[0][cell]);
            out[cell] = sum;
          }
        }
      }
    }
  }
  std::optional<Split> split(std::span<const Shape>) const { return split_all(1, axis != 0); }
  CumsumPrimitive piece(Index count) const { return {{}, with_samples(x, count), axis, reverse}; }
  std::string attributes() const {
    return "axis=" + std::to_string(axis) + (reverse ? " reverse" : "");
  }
  template <class V>
  V vjp(int, const Saved<V>&, const V& y_bar) const {
    return apply(CumsumPrimitive{{}, x, axis, !reverse}, y_bar);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>&, std::span<const std::optional<V>> dots) const {
    return apply(*this, *dots[0]);
  }
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const CumsumPrimitive&, const CumsumPrimitive&) = default;
};

inline namespace generic {

template <AnyValue V>
constexpr V cumsum(const V& x, int axis, bool reverse = false) {
  return apply(CumsumPrimitive{{}, x.shape(), resolved_axis("cumsum", x.shape(), axis), reverse},
               x);
}

}  // namespace generic

}  // namespace fenestra

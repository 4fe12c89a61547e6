// where on any value type: elements of one tensor or of another, as a mask says, all three with
// broadcasting. What is not chosen has no influence, not even as NaN or infinity; a product with
// the mask could not promise that.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/ops/elementwise/broadcast.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/elementwise/sum_to.hpp>
#include <fenestra/ops/where/call.hpp>
#include <fenestra/tensor/split.hpp>

#include <optional>

namespace fenestra {

// Compiled for float and double in kernels/runs.cpp; operands and result do not overlap, or are the
// same elements.
template <KernelScalar T>
FENESTRA_API void where_kernel(
    const T* mask, const T* a, const T* b, T* out, const BroadcastLoop<3>& loop);

struct WherePrimitive : PrimitiveBase<WherePrimitive> {
  static constexpr std::string_view name = "where";
  Shape mask;
  Shape a;
  Shape b;
  Shape shape;

  constexpr Shape result_shape(const Shape&) const { return shape; }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    if (shape.elements().value_or(0) == 0) {
      return;
    }
    const BroadcastLoop<3> loop(shape, {mask, a, b});
    if constexpr (KernelScalar<T>) {
      where_kernel(in[0].data(), in[1].data(), in[2].data(), out, loop);
    } else {
      const Index n = loop.inner();
      for (Index run = 0; run < loop.outer(); ++run) {
        for (Index i = 0; i < n; ++i) {
          const auto element = [&](std::size_t k) -> const T& {
            return in[k][loop.offset(k, run) + i * loop.inner_step(k)];
          };
          out[run * n + i] = element(0) == T(0) ? element(2) : element(1);
        }
      }
    }
  }
  bool may_overwrite(int i) const { return (i == 0 ? mask : i == 1 ? a : b) == shape; }
  std::optional<Split> split(std::span<const Shape> in) const { return split_broadcast(in, shape); }
  WherePrimitive piece(Index count) const {
    const auto cut = [&](const Shape& of) {
      return of.rank() == shape.rank() && of[0] == shape[0] ? with_samples(of, count) : of;
    };
    return {{}, cut(mask), cut(a), cut(b), cut(shape)};
  }
  std::optional<TileOf<WherePrimitive>> tile(std::span<const Shape> in, const Box& box) const {
    TileOf<WherePrimitive> tile{box, {}, {}};
    for (const Shape& operand : in) {
      tile.in.push_back(broadcast_box(operand, shape, box));
    }
    tile.part = {{}, tile.in[0].shape(), tile.in[1].shape(), tile.in[2].shape(), box.shape()};
    return tile;
  }
  /// The mask has no derivative: a step of it changes nothing, or jumps.
  template <class V>
  std::optional<V> vjp(int i, const Saved<V>& saved, const V& y_bar) const {
    if (i == 0) {
      return std::nullopt;
    }
    const V zero = scalar_constant<V>(ScalarOf<V>(0));
    return i == 1 ? sum_to(where(saved[0], y_bar, zero), a)
                  : sum_to(where(saved[0], zero, y_bar), b);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    if (!dots[1] && !dots[2]) {
      return std::nullopt;
    }
    const V zero = scalar_constant<V>(ScalarOf<V>(0));
    return broadcast_to(where(saved[0], dots[1] ? *dots[1] : zero, dots[2] ? *dots[2] : zero),
                        shape);
  }
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  static constexpr bool needs(int i, int what) { return i != 0 && what == 0; }
  friend bool operator==(const WherePrimitive&, const WherePrimitive&) = default;
};

inline namespace generic {

template <AnyValue V>
constexpr V where_values(const V& mask, const V& a, const V& b) {
  const Shape shape =
      broadcast_shape("where", broadcast_shape("where", a.shape(), b.shape()), mask.shape());
  return apply(WherePrimitive{{}, mask.shape(), a.shape(), b.shape(), shape}, {mask, a, b});
}

}  // namespace generic

}  // namespace fenestra

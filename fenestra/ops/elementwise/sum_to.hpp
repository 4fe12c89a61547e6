// Sums and expansions: a linear pair, adjoint to each other.
//
//   sum_to(x, shape)        adds up the axes that `shape` has as 1 (or lacks)
//   broadcast_to(x, shape)  repeats them
//
// Sums over axes, means, bias gradients and the gradients of broadcasting are all made of these
// two.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/ops/elementwise/broadcast.hpp>
#include <fenestra/ops/elementwise/call.hpp>
#include <fenestra/tensor/box.hpp>
#include <fenestra/tensor/split.hpp>

#include <algorithm>
#include <string>

namespace fenestra {

// Compiled for float and double in kernels/sums.cpp.
template <KernelScalar T>
FENESTRA_API void sum_to_kernel(const T* x, T* out, const Shape& from, const Shape& to);

inline namespace generic {

template <AnyValue V>
constexpr V sum_to(const V& x, const Shape& shape);
template <AnyValue V>
constexpr V broadcast_to(const V& x, const Shape& shape);

}  // namespace generic

struct SumToPrimitive : PrimitiveBase<SumToPrimitive> {
  static constexpr std::string_view name = "sum_to";
  Shape from;
  Shape to;

  constexpr Shape result_shape(const Shape&) const { return to; }
  /// Sums within each sample.
  std::optional<Split> split(std::span<const Shape>) const {
    return split_all(1, to.rank() > 0 && to.rank() == from.rank() && to[0] == from[0]);
  }
  SumToPrimitive piece(Index count) const {
    return {{}, with_samples(from, count), with_samples(to, count)};
  }
  /// Reads the axes that it adds up whole.
  std::optional<TileOf<SumToPrimitive>> tile(std::span<const Shape>, const Box& box) const {
    if (from.rank() != to.rank()) {
      return std::nullopt;
    }
    Box part = box;
    TileAxes axes;
    for (int axis = 0; axis < from.rank(); ++axis) {
      if (from[axis] != to[axis]) {
        part.set(axis, {0, from[axis]});
        axes.mixed |= 1U << axis;
      }
    }
    return TileOf<SumToPrimitive>{box, {part}, {{}, part.shape(), box.shape()}, axes};
  }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    if constexpr (KernelScalar<T>) {
      sum_to_kernel(in[0].data(), out, from, to);
    } else {
      std::fill_n(out, to.elements().value_or(0), T(0));
      if (in[0].size() == 0) {
        return;
      }
      const BroadcastLoop<2> loop(from, {from, to});
      const Index n = loop.inner();
      for (Index run = 0; run < loop.outer(); ++run) {
        const T* x = in[0].data() + loop.offset(0, run);
        T* sum = out + loop.offset(1, run);
        for (Index i = 0; i < n; ++i) {
          T& cell = sum[i * loop.inner_step(1)];
          cell = cell + x[i];
        }
      }
    }
  }
  template <class V>
  V vjp(int, const Saved<V>&, const V& y_bar) const {
    return broadcast_to(y_bar, from);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>&, std::span<const std::optional<V>> dots) const {
    return sum_to(*dots[0], to);
  }
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const SumToPrimitive&, const SumToPrimitive&) = default;
};

struct BroadcastToPrimitive : PrimitiveBase<BroadcastToPrimitive> {
  static constexpr std::string_view name = "broadcast_to";
  Shape from;
  Shape to;

  constexpr Shape result_shape(const Shape&) const { return to; }
  std::optional<Split> split(std::span<const Shape> in) const { return split_broadcast(in, to); }
  BroadcastToPrimitive piece(Index count) const {
    const bool cut = from.rank() == to.rank() && from[0] == to[0];
    return {{}, cut ? with_samples(from, count) : from, with_samples(to, count)};
  }
  std::optional<TileOf<BroadcastToPrimitive>> tile(std::span<const Shape>, const Box& box) const {
    const Box part = broadcast_box(from, to, box);
    return TileOf<BroadcastToPrimitive>{box, {part}, {{}, part.shape(), box.shape()}};
  }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    if (to.elements().value_or(0) == 0) {
      return;
    }
    const BroadcastLoop<1> loop(to, {from});
    const Index n = loop.inner();
    const Index step = loop.inner_step(0);
    for (Index run = 0; run < loop.outer(); ++run) {
      const T* x = in[0].data() + loop.offset(0, run);
      for (Index i = 0; i < n; ++i) {
        out[run * n + i] = x[i * step];
      }
    }
  }
  template <class V>
  V vjp(int, const Saved<V>&, const V& y_bar) const {
    return sum_to(y_bar, from);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>&, std::span<const std::optional<V>> dots) const {
    return broadcast_to(*dots[0], to);
  }
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const BroadcastToPrimitive&, const BroadcastToPrimitive&) = default;
};

inline namespace generic {

template <AnyValue V>
constexpr V sum_to(const V& x, const Shape& shape) {
  if (x.shape() == shape) {
    return x;
  }
  if (!broadcasts_to(shape, x.shape())) {
    throw Error("sum_to",
                {.code = ErrorCode::shape_mismatch, .argument = Argument::x},
                "sum_to: x = " + to_string(x.shape()) + " does not reduce to " + to_string(shape) +
                    "\n  fix: equal extents, or 1 on the axes to add up");
  }
  return apply(SumToPrimitive{{}, x.shape(), shape}, x);
}

template <AnyValue V>
constexpr V broadcast_to(const V& x, const Shape& shape) {
  if (x.shape() == shape) {
    return x;
  }
  if (!broadcasts_to(x.shape(), shape)) {
    throw Error("broadcast_to",
                {.code = ErrorCode::shape_mismatch, .argument = Argument::x},
                "broadcast_to: x = " + to_string(x.shape()) + " does not expand to " +
                    to_string(shape) + "\n  fix: equal extents, or 1 on the axes to repeat");
  }
  return apply(BroadcastToPrimitive{{}, x.shape(), shape}, x);
}

}  // namespace generic

}  // namespace fenestra

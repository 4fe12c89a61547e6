// Transpose on any value type: the axes in another order. Linear; its adjoint is the inverse order.
#pragma once

#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/ops/transpose/call.hpp>
#include <fenestra/ops/transpose/spec.hpp>
#include <fenestra/tensor/box.hpp>
#include <fenestra/tensor/split.hpp>

#include <array>
#include <span>
#include <string>
#include <vector>

namespace fenestra {

/// The order that undoes `order`.
constexpr Shape inverse_order(const Shape& order) {
  Shape inverse = order;
  for (int i = 0; i < order.rank(); ++i) {
    inverse[static_cast<int>(order[i])] = i;
  }
  return inverse;
}

struct TransposePrimitive : PrimitiveBase<TransposePrimitive> {
  static constexpr std::string_view name = "transpose";
  Shape order;  ///< a permutation of the axes

  constexpr Shape result_shape(const Shape& x) const { return transposed_shape(x, order); }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    evaluate_transpose(in[0], order, out);
  }
  std::optional<Split> split(std::span<const Shape>) const { return split_all(1, order[0] == 0); }
  TransposePrimitive piece(Index) const { return *this; }
  std::optional<TileOf<TransposePrimitive>> tile(std::span<const Shape>, const Box& box) const {
    TileOf<TransposePrimitive> tile{box, {box}, *this, {.from = order}};
    for (int axis = 0; axis < order.rank(); ++axis) {
      tile.in[0].set(static_cast<int>(order[axis]), box[axis]);
    }
    return tile;
  }
  std::string attributes() const { return to_string(order); }
  template <class V>
  V vjp(int, const Saved<V>&, const V& y_bar) const {
    return apply(TransposePrimitive{{}, inverse_order(order)}, y_bar);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>&, std::span<const std::optional<V>> dots) const {
    return apply(*this, {*dots[0]});
  }
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const TransposePrimitive&, const TransposePrimitive&) = default;
};

/// `order` with every axis counted from the first; throws `rank_mismatch` unless it names each axis
/// of `shape` once.
constexpr Shape resolve_order(const Shape& shape, std::span<const int> order) {
  Shape resolved;
  std::array<bool, kMaxRank> seen{};
  bool fits = static_cast<int>(order.size()) == shape.rank();
  for (const int axis : order) {
    const int at = axis < 0 ? axis + shape.rank() : axis;
    fits = fits && at >= 0 && at < shape.rank() && !seen[static_cast<std::size_t>(at)];
    if (fits) {
      seen[static_cast<std::size_t>(at)] = true;
      resolved.push_back(at);
    }
  }
  if (!fits) {
    std::string given;
    for (const int axis : order) {
      given += (given.empty() ? "" : ", ") + std::to_string(axis);
    }
    throw Error("transpose",
                {.code = ErrorCode::rank_mismatch,
                 .argument = Argument::x,
                 .got = static_cast<Index>(order.size()),
                 .needed = shape.rank()},
                "transpose: x = " + to_string(shape) + ", " + spelled("order {", "axes (") + given +
                    spelled("}", ")") + "\n  fix: each of the " + std::to_string(shape.rank()) +
                    " axes once");
  }
  return resolved;
}

inline namespace generic {

template <AnyValue V>
constexpr V transpose(const V& x, std::span<const int> order) {
  const Shape resolved = resolve_order(x.shape(), order);
  bool moves = false;
  for (int i = 0; i < resolved.rank(); ++i) {
    moves = moves || resolved[i] != i;
  }
  return moves ? apply(TransposePrimitive{{}, resolved}, x) : x;
}

template <AnyValue V>
constexpr V transpose(const V& x) {
  const int rank = x.shape().rank();
  if (rank < 2) {
    throw Error(
        "transpose",
        {.code = ErrorCode::rank_mismatch, .argument = Argument::x, .got = rank, .needed = 2},
        "transpose: x = " + to_string(x.shape()) + " is not a matrix\n  fix: at least two axes");
  }
  std::vector<int> order;
  for (int axis = 0; axis < rank - 2; ++axis) {
    order.push_back(axis);
  }
  order.push_back(rank - 1);
  order.push_back(rank - 2);
  return transpose(x, std::span<const int>(order));
}

}  // namespace generic

}  // namespace fenestra

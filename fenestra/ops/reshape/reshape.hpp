// Reshape: the same elements under another shape. Linear; its adjoint reshapes back. Shares
// storage, moves nothing. flatten, squeeze and unsqueeze are reshapes.
#pragma once

#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/ops/geometry.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/ops/reshape/call.hpp>
#include <fenestra/spec/options.hpp>
#include <fenestra/tensor/split.hpp>

#include <string>

namespace fenestra {

inline namespace generic {

template <AnyValue V>
constexpr V reshape(const V& x, const Shape& shape);

}  // namespace generic

struct ReshapePrimitive : PrimitiveBase<ReshapePrimitive> {
  static constexpr std::string_view name = "reshape";
  Shape from;
  Shape to;

  static constexpr bool aliases_input = true;

  constexpr Shape result_shape(const Shape&) const { return to; }
  std::optional<Split> split(std::span<const Shape>) const {
    return split_all(1, from.rank() > 0 && to.rank() > 0 && from[0] == to[0]);
  }
  ReshapePrimitive piece(Index count) const {
    return {{}, with_samples(from, count), with_samples(to, count)};
  }
  template <class V>
  V vjp(int, const Saved<V>&, const V& y_bar) const {
    return reshape(y_bar, from);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>&, std::span<const std::optional<V>> dots) const {
    return reshape(*dots[0], to);
  }
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const ReshapePrimitive&, const ReshapePrimitive&) = default;
};

/// `shape` with its open extent (-1, at most one) filled in; `shape_mismatch` where it does not
/// hold the elements of `x`.
constexpr Resolved<Shape> resolve_reshape(const Shape& x, const Shape& shape) {
  Shape to = shape;
  if (const Fault fault = check_elements(Argument::x, x)) {
    return {to, fault};
  }
  int open = -1;
  Checked known = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == -1 && open < 0) {
      open = axis;
    } else {
      known = known * shape[axis];
    }
  }
  const Index size = x.elements().value_or(0);
  if (open >= 0 && known.ok() && known.value() > 0 && size % known.value() == 0) {
    to[open] = size / known.value();
  }
  if (to.elements() != x.elements()) {
    return {to,
            {.code = ErrorCode::shape_mismatch,
             .argument = Argument::x,
             .got = size,
             .needed = known.ok() ? known.value() : 0}};
  }
  return {to, {}};
}
/// As `resolve_reshape`, but a fault is thrown as an `Error`.
constexpr Shape resolved_reshape(const Shape& x, const Shape& shape) {
  const auto [to, fault] = resolve_reshape(x, shape);
  if (fault) {
    require_elements("reshape", "x", Argument::x, x);
    throw Error("reshape",
                fault,
                "reshape: x = " + to_string(x) + " has " + std::to_string(fault.got) +
                    " elements, " + to_string(shape) +
                    " does not hold them\n  fix: extents whose product is " +
                    std::to_string(fault.got));
  }
  return to;
}

inline namespace generic {

template <AnyValue V>
constexpr V reshape(const V& x, const Shape& shape) {
  const Shape to = resolved_reshape(x.shape(), shape);
  if (x.shape() == to) {
    return x;
  }
  return apply(ReshapePrimitive{{}, x.shape(), to}, x);
}

}  // namespace generic

namespace detail {

/// `axis` of `rank` axes, counted from 0; throws in the name of `op` where there is none.
constexpr int axis_of(std::string_view op, const Shape& x, int axis, int rank) {
  const int at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank) {
    throw Error(
        std::string(op),
        {.code = ErrorCode::rank_mismatch, .argument = Argument::x, .got = axis, .needed = rank},
        std::string(op) + ": x = " + to_string(x) + ", axis " + std::to_string(axis) + "\n  fix: " +
            (rank == 0
                 ? std::string("a tensor with at least one axis")
                 : "an axis from " + std::to_string(-rank) + " to " + std::to_string(rank - 1)));
  }
  return at;
}

}  // namespace detail

inline namespace generic {

template <AnyValue V>
constexpr V flatten(const V& x, int first = 0, int last = -1) {
  const Shape& shape = x.shape();
  if (shape.rank() == 0) {
    return reshape(x, Shape{1});
  }
  const int begin = detail::axis_of("flatten", shape, first, shape.rank());
  const int end = detail::axis_of("flatten", shape, last, shape.rank());
  if (begin > end) {
    throw Error("flatten",
                {.code = ErrorCode::rank_mismatch, .argument = Argument::x, .got = first},
                "flatten: x = " + to_string(shape) + ", axes " + std::to_string(begin) + " to " +
                    std::to_string(end) + "\n  fix: the first one first");
  }
  Shape to;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > begin && axis <= end) {
      to[begin] *= shape[axis];
    } else {
      to.push_back(shape[axis]);
    }
  }
  return reshape(x, to);
}

template <AnyValue V>
constexpr V squeeze(const V& x, const AxisList& axes = {}) {
  const Shape& shape = x.shape();
  Shape to;
  unsigned named = 0;
  for (const int axis : axes) {
    const int at = detail::axis_of("squeeze", shape, axis, shape.rank());
    if (shape[at] != 1) {
      throw Error("squeeze",
                  {.code = ErrorCode::shape_mismatch,
                   .argument = Argument::x,
                   .got = shape[at],
                   .needed = 1},
                  "squeeze: x = " + to_string(shape) + ", axis " + std::to_string(at) + " has " +
                      std::to_string(shape[at]) + " elements\n  fix: axes of one element");
    }
    named |= 1u << at;
  }
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axes.empty() ? shape[axis] != 1 : (named >> axis & 1u) == 0) {
      to.push_back(shape[axis]);
    }
  }
  return reshape(x, to);
}

template <AnyValue V>
constexpr V unsqueeze(const V& x, int axis) {
  const Shape& shape = x.shape();
  if (shape.rank() == kMaxRank) {
    throw Error("unsqueeze",
                {.code = ErrorCode::rank_mismatch, .argument = Argument::x, .got = kMaxRank + 1},
                "unsqueeze: x = " + to_string(shape) +
                    " has as many axes as there can be\n  fix: "
                    "flatten some");
  }
  const int at = detail::axis_of("unsqueeze", shape, axis, shape.rank() + 1);
  Shape to;
  for (int i = 0; i <= shape.rank(); ++i) {
    to.push_back(i == at ? 1 : shape[i < at ? i : i - 1]);
  }
  return reshape(x, to);
}

}  // namespace generic

}  // namespace fenestra

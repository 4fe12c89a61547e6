// Reshape: the same elements under another shape. Linear; its adjoint reshapes back. Shares
// storage, moves nothing.
#pragma once

#include <fenestra/engine/apply.hpp>
#include <fenestra/ops/geometry.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/tensor/split.hpp>

#include <string>

namespace fenestra {

template <AnyValue V>
constexpr V reshape(const V& x, const Shape& shape);

struct ReshapePrimitive {
  static constexpr std::string_view name = "reshape";
  Shape from;
  Shape to;

  static constexpr bool aliases_input = true;

  constexpr Shape result_shape(const Shape&) const { return to; }
  std::optional<Split> split(std::span<const Shape>) const {
    return split_all(1, from.rank() > 0 && to.rank() > 0 && from[0] == to[0]);
  }
  ReshapePrimitive piece(Index count) const {
    return {with_samples(from, count), with_samples(to, count)};
  }
  template <class V>
  V vjp(int, const Saved<V>&, const V& y_bar) const {
    return reshape(y_bar, from);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>&, std::span<const std::optional<V>> dots) const {
    return reshape(*dots[0], to);
  }
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

/// One extent may be -1: it is what the others leave.
template <AnyValue V>
constexpr V reshape(const V& x, const Shape& shape) {
  const Shape to = resolved_reshape(x.shape(), shape);
  if (x.shape() == to) {
    return x;
  }
  return apply(ReshapePrimitive{x.shape(), to}, x);
}

}  // namespace fenestra

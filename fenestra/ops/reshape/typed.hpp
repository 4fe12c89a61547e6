// Reshape on typed graph variables: `reshape<Shape{...}>(x)`, on any values.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/reshape/reshape.hpp>

namespace fenestra {

/// One extent may be -1.
template <Shape shape, graph::Operand X>
auto reshape(const X& x) {
  return graph::typed<"reshape", "x">(
      [](const auto& v) { return reshape(v, shape); },
      [](const Shape& v) { return resolve_reshape(v, shape).fault; },
      x);
}

}  // namespace fenestra

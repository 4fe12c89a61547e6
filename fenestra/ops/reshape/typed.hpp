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

template <int first = 0, int last = -1, graph::Operand... In>
auto flatten(const In&... in) {
  return graph::typed<"flatten", "x">([](const auto& v) { return flatten(v, first, last); }, in...);
}
template <AxisList axes = AxisList{}, graph::Operand... In>
auto squeeze(const In&... in) {
  return graph::typed<"squeeze", "x">([](const auto& v) { return squeeze(v, axes); }, in...);
}
template <int axis, graph::Operand X>
auto unsqueeze(const X& x) {
  return graph::typed<"unsqueeze", "x">([](const auto& v) { return unsqueeze(v, axis); }, x);
}

}  // namespace fenestra

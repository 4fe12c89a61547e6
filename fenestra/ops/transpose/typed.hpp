// Transpose on typed graph variables: `transpose<AxisList{1, 0}>(x)`, on any values; without an
// order the last two axes.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/transpose/transpose.hpp>
#include <fenestra/spec/options.hpp>

#include <span>

namespace fenestra {

template <AxisList order, graph::Operand X>
auto transpose(const X& x) {
  return graph::typed<"transpose", "x">(
      [](const auto& v) { return transpose(v, std::span<const int>(order.begin(), order.size())); },
      x);
}
template <graph::Typed X>
auto transpose(const X& x) {
  return graph::typed<"transpose", "x">([](const auto& v) { return transpose(v); }, x);
}

}  // namespace fenestra

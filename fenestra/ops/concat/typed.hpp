// Concat on typed graph variables: `concat<1>(a, b, ...)`, on any values.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/concat/concat.hpp>

#include <tuple>

namespace fenestra {

template <int axis, graph::Operand... In>
auto concat(const In&... in) {
  return graph::typed<"concat", "a", "b", "c", "d">(
      [](const auto&... v) { return concat(std::tie(v...), axis); }, in...);
}

}  // namespace fenestra

// Running sums on typed graph variables: `cumsum<1>(x)`, on any values.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/cumsum/cumsum.hpp>

namespace fenestra {

template <int axis, bool reverse = false, graph::Operand X>
auto cumsum(const X& x) {
  return graph::typed<"cumsum", "x">([](const auto& v) { return cumsum(v, axis, reverse); }, x);
}

}  // namespace fenestra

// Slice on typed graph variables: `slice<AxisRange{.axis = 0, .count = 2}, ...>(x)`, on any values.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/slice/slice.hpp>

namespace fenestra {

template <AxisRange... ranges, graph::Operand X>
  requires(sizeof...(ranges) > 0)
auto slice(const X& x) {
  return graph::typed<"slice", "x">([](const auto& v) { return slice(v, {ranges...}); }, x);
}

}  // namespace fenestra

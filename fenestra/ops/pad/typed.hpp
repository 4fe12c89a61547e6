// Pad on typed graph variables: `pad<LowHigh{1, 1}, LowHigh{0, 2}>(x)` or with options first, on
// any values.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/pad/pad.hpp>

namespace fenestra {

template <PadOptions options, LowHigh... pairs, graph::Operand X>
auto pad(const X& x) {
  return graph::typed<"pad", "x">([](const auto& v) { return pad(v, {pairs...}, options); }, x);
}
template <LowHigh... pairs, graph::Operand X>
  requires(sizeof...(pairs) > 0)
auto pad(const X& x) {
  return pad<PadOptions{}, pairs...>(x);
}

}  // namespace fenestra

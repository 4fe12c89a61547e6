// Softmax and its like on typed graph variables: `softmax<1>(x)`, on any values; the last axis
// where none is named.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/softmax/softmax.hpp>

namespace fenestra {

template <int axis = -1, graph::Operand... In>
auto softmax(const In&... in) {
  return graph::typed<"softmax", "x">([](const auto& v) { return softmax(v, axis); }, in...);
}
template <int axis = -1, graph::Operand... In>
auto log_softmax(const In&... in) {
  return graph::typed<"log_softmax", "x">([](const auto& v) { return log_softmax(v, axis); },
                                          in...);
}
template <int axis = -1, bool keep = false, graph::Operand... In>
auto logsumexp(const In&... in) {
  return graph::typed<"logsumexp", "x">([](const auto& v) { return logsumexp(v, axis, keep); },
                                        in...);
}

}  // namespace fenestra

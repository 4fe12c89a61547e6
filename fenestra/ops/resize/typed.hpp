// Resize on typed graph variables: `resize<ResizeOptions{.scale = 2}>(x)`, on any values.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/resize/resize.hpp>

namespace fenestra {

template <ResizeOptions options, graph::Operand X>
auto resize(const X& x) {
  return graph::typed<"resize", "x">([](const auto& v) { return resize(v, options); }, x);
}

}  // namespace fenestra

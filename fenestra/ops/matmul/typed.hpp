// Matrix products on typed graph variables: `matmul<MatMulOptions{...}>(a, b)`, `linear(x, w, b)`.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/matmul/matmul.hpp>

namespace fenestra {

template <MatMulOptions options = MatMulOptions{}, graph::Operand... In>
auto matmul(const In&... in) {
  return graph::typed<"matmul", "a", "b">(
      [](const auto&... v) { return matmul(v..., options); },
      [](const Shape& a, const Shape& b) { return detail::check_matmul(a, b, options); },
      in...);
}
template <class... In>
  requires graph::SomeTyped<In...>
auto linear(const In&... in) {
  return graph::typed<"linear", "x", "w", "b">(
      [](const auto&... v) { return linear(v...); },
      [](const Shape& x, const Shape& w, const auto&... b) {
        const Shape* bias = nullptr;
        ((bias = &b), ...);
        return detail::check_linear(x, w, bias);
      },
      in...);
}

}  // namespace fenestra

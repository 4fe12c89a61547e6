// Smooth max pooling on typed graph variables: `smooth_max_pool<SmoothMaxPoolOptions{...}>(x)`,
// with the sharpness of the options or as a second argument.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/smooth_max_pool/smooth_max_pool.hpp>

namespace fenestra {

namespace detail {

template <SmoothMaxPoolOptions options, int rank>
inline constexpr auto smooth_max_pool_fault = [](const Shape& x, const auto&... beta) {
  Fault fault = resolve_smooth_max_pool(x, options, rank).fault;
  ((fault = fault ? fault : check_shape(Argument::beta, beta, Shape{})), ...);
  return fault;
};

}  // namespace detail

template <SmoothMaxPoolOptions options, graph::Operand... In>
auto smooth_max_pool(const In&... in) {
  return graph::typed<"smooth_max_pool", "x", "beta">(
      [](const auto&... v) { return smooth_max_pool(v..., options); },
      detail::smooth_max_pool_fault<options, 0>,
      in...);
}
template <SmoothMaxPoolOptions options, graph::Operand... In>
auto smooth_max_pool1d(const In&... in) {
  return graph::typed<"smooth_max_pool1d", "x", "beta">(
      [](const auto&... v) { return smooth_max_pool1d(v..., options); },
      detail::smooth_max_pool_fault<options, 1>,
      in...);
}
template <SmoothMaxPoolOptions options, graph::Operand... In>
auto smooth_max_pool2d(const In&... in) {
  return graph::typed<"smooth_max_pool2d", "x", "beta">(
      [](const auto&... v) { return smooth_max_pool2d(v..., options); },
      detail::smooth_max_pool_fault<options, 2>,
      in...);
}
template <SmoothMaxPoolOptions options, graph::Operand... In>
auto smooth_max_pool3d(const In&... in) {
  return graph::typed<"smooth_max_pool3d", "x", "beta">(
      [](const auto&... v) { return smooth_max_pool3d(v..., options); },
      detail::smooth_max_pool_fault<options, 3>,
      in...);
}

}  // namespace fenestra

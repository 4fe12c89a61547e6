// Adaptive and global average pooling on typed graph variables:
// `adaptive_avg_pool<AdaptivePoolOptions{...}>(x)`, on any values.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/adaptive_avg_pool/adaptive_avg_pool.hpp>

namespace fenestra {

namespace detail {

template <AdaptivePoolOptions options, int rank>
inline constexpr auto adaptive_avg_pool_fault =
    [](const Shape& x, const auto&...) { return resolve_adaptive_pool(x, options, rank).fault; };

}  // namespace detail

template <AdaptivePoolOptions options, graph::Operand... In>
auto adaptive_avg_pool(const In&... in) {
  return graph::typed<"adaptive_avg_pool", "x">(
      [](const auto&... v) { return adaptive_avg_pool(v..., options); },
      detail::adaptive_avg_pool_fault<options, 0>,
      in...);
}
template <AdaptivePoolOptions options, graph::Operand... In>
auto adaptive_avg_pool1d(const In&... in) {
  return graph::typed<"adaptive_avg_pool1d", "x">(
      [](const auto&... v) { return adaptive_avg_pool1d(v..., options); },
      detail::adaptive_avg_pool_fault<options, 1>,
      in...);
}
template <AdaptivePoolOptions options, graph::Operand... In>
auto adaptive_avg_pool2d(const In&... in) {
  return graph::typed<"adaptive_avg_pool2d", "x">(
      [](const auto&... v) { return adaptive_avg_pool2d(v..., options); },
      detail::adaptive_avg_pool_fault<options, 2>,
      in...);
}
template <AdaptivePoolOptions options, graph::Operand... In>
auto adaptive_avg_pool3d(const In&... in) {
  return graph::typed<"adaptive_avg_pool3d", "x">(
      [](const auto&... v) { return adaptive_avg_pool3d(v..., options); },
      detail::adaptive_avg_pool_fault<options, 3>,
      in...);
}

template <Layout layout, graph::Operand X>
auto global_avg_pool(const X& x) {
  return graph::typed<"global_avg_pool", "x">(
      [](const auto& v) { return global_avg_pool(v, layout); },
      detail::adaptive_avg_pool_fault<global_pool(layout), 0>,
      x);
}
template <graph::Typed X>
auto global_avg_pool(const X& x) {
  return global_avg_pool<Layout::channels_first>(x);
}

}  // namespace fenestra

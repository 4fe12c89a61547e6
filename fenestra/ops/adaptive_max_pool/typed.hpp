// Adaptive and global max pooling on typed graph variables:
// `adaptive_max_pool<AdaptivePoolOptions{...}>(x)`, on any values.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/adaptive_max_pool/adaptive_max_pool.hpp>
#include <fenestra/ops/max_pool/typed.hpp>

namespace fenestra {

namespace detail {

template <AdaptivePoolOptions options, int rank>
inline constexpr auto adaptive_max_pool_fault =
    [](const Shape& x, const auto&...) { return resolve_adaptive_pool(x, options, rank).fault; };

}  // namespace detail

template <AdaptivePoolOptions options, graph::Operand... In>
auto adaptive_max_pool(const In&... in) {
  return graph::typed<"adaptive_max_pool", "x">(
      [](const auto&... v) { return adaptive_max_pool(v..., options); },
      detail::adaptive_max_pool_fault<options, 0>,
      in...);
}
template <AdaptivePoolOptions options, graph::Operand... In>
auto adaptive_max_pool1d(const In&... in) {
  return graph::typed<"adaptive_max_pool1d", "x">(
      [](const auto&... v) { return adaptive_max_pool1d(v..., options); },
      detail::adaptive_max_pool_fault<options, 1>,
      in...);
}
template <AdaptivePoolOptions options, graph::Operand... In>
auto adaptive_max_pool2d(const In&... in) {
  return graph::typed<"adaptive_max_pool2d", "x">(
      [](const auto&... v) { return adaptive_max_pool2d(v..., options); },
      detail::adaptive_max_pool_fault<options, 2>,
      in...);
}
template <AdaptivePoolOptions options, graph::Operand... In>
auto adaptive_max_pool3d(const In&... in) {
  return graph::typed<"adaptive_max_pool3d", "x">(
      [](const auto&... v) { return adaptive_max_pool3d(v..., options); },
      detail::adaptive_max_pool_fault<options, 3>,
      in...);
}

template <AdaptivePoolOptions options, graph::Operand X>
auto adaptive_max_pool_with_indices(const X& x) {
  using Y = decltype(adaptive_max_pool<options>(x));
  return detail::typed_winners<Y>(
      adaptive_max_pool_with_indices(graph::OperandTraits<X>::untyped(x), options));
}

template <Layout layout, graph::Operand X>
auto global_max_pool(const X& x) {
  return graph::typed<"global_max_pool", "x">(
      [](const auto& v) { return global_max_pool(v, layout); },
      detail::adaptive_max_pool_fault<global_pool(layout), 0>,
      x);
}
template <graph::Typed X>
auto global_max_pool(const X& x) {
  return global_max_pool<Layout::channels_first>(x);
}

}  // namespace fenestra

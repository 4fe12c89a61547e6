// Average pooling on typed graph variables: `avg_pool<AvgPoolOptions{...}>(x)`, on any values.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/avg_pool/avg_pool.hpp>

namespace fenestra {

namespace detail {

template <AvgPoolOptions options, int rank>
inline constexpr auto avg_pool_fault =
    [](const Shape& x, const auto&...) { return resolve_avg_pool(x, options, rank).fault; };

}  // namespace detail

template <AvgPoolOptions options, graph::Operand... In>
auto avg_pool(const In&... in) {
  return graph::typed<"avg_pool", "x">([](const auto&... v) { return avg_pool(v..., options); },
                                       detail::avg_pool_fault<options, 0>,
                                       in...);
}
template <AvgPoolOptions options, graph::Operand... In>
auto avg_pool1d(const In&... in) {
  return graph::typed<"avg_pool1d", "x">([](const auto&... v) { return avg_pool1d(v..., options); },
                                         detail::avg_pool_fault<options, 1>,
                                         in...);
}
template <AvgPoolOptions options, graph::Operand... In>
auto avg_pool2d(const In&... in) {
  return graph::typed<"avg_pool2d", "x">([](const auto&... v) { return avg_pool2d(v..., options); },
                                         detail::avg_pool_fault<options, 2>,
                                         in...);
}
template <AvgPoolOptions options, graph::Operand... In>
auto avg_pool3d(const In&... in) {
  return graph::typed<"avg_pool3d", "x">([](const auto&... v) { return avg_pool3d(v..., options); },
                                         detail::avg_pool_fault<options, 3>,
                                         in...);
}

}  // namespace fenestra

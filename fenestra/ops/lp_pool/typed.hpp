// Lp pooling on typed graph variables: `lp_pool<LpPoolOptions{...}>(x)`, on any values.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/lp_pool/lp_pool.hpp>

namespace fenestra {

namespace detail {

template <LpPoolOptions options, int rank>
inline constexpr auto lp_pool_fault =
    [](const Shape& x, const auto&...) { return resolve_lp_pool(x, options, rank).fault; };

}  // namespace detail

template <LpPoolOptions options, graph::Operand... In>
auto lp_pool(const In&... in) {
  return graph::typed<"lp_pool", "x">([](const auto&... v) { return lp_pool(v..., options); },
                                      detail::lp_pool_fault<options, 0>,
                                      in...);
}
template <LpPoolOptions options, graph::Operand... In>
auto lp_pool1d(const In&... in) {
  return graph::typed<"lp_pool1d", "x">([](const auto&... v) { return lp_pool1d(v..., options); },
                                        detail::lp_pool_fault<options, 1>,
                                        in...);
}
template <LpPoolOptions options, graph::Operand... In>
auto lp_pool2d(const In&... in) {
  return graph::typed<"lp_pool2d", "x">([](const auto&... v) { return lp_pool2d(v..., options); },
                                        detail::lp_pool_fault<options, 2>,
                                        in...);
}
template <LpPoolOptions options, graph::Operand... In>
auto lp_pool3d(const In&... in) {
  return graph::typed<"lp_pool3d", "x">([](const auto&... v) { return lp_pool3d(v..., options); },
                                        detail::lp_pool_fault<options, 3>,
                                        in...);
}

}  // namespace fenestra

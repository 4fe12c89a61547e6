// The pools on typed graph variables: `max_pool<MaxPoolOptions{...}>(x)` and so on, on any values.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/pool/pool.hpp>
#include <fenestra/ops/require.hpp>

#include <utility>

namespace fenestra {

namespace detail {

template <class R, typename R::Options options, int rank>
inline constexpr auto pool_fault =
    [](const Shape& x, const auto&...) { return resolve_reduced<R>(x, options, rank).fault; };
template <SmoothMaxPoolOptions options, int rank>
inline constexpr auto smooth_fault = [](const Shape& x, const auto&... beta) {
  Fault fault = resolve_smooth_max_pool(x, options, rank).fault;
  ((fault = fault ? fault : check_shape(Argument::beta, beta, Shape{})), ...);
  return fault;
};
template <AdaptivePoolOptions options, int rank>
inline constexpr auto bins_fault =
    [](const Shape& x, const auto&...) { return resolve_adaptive_pool(x, options, rank).fault; };

// The functions below, under any of their names.

template <graph::Words op, MaxPoolOptions options, int rank, class... In>
auto typed_max_pool(const In&... in) {
  return graph::typed<op, "x">([](const auto&... v) { return max_pool(v..., options, rank); },
                               pool_fault<MaxReduction, options, rank>,
                               in...);
}
template <graph::Words op, AvgPoolOptions options, int rank, class... In>
auto typed_avg_pool(const In&... in) {
  return graph::typed<op, "x">([](const auto&... v) { return avg_pool(v..., options, rank); },
                               pool_fault<AverageReduction, options, rank>,
                               in...);
}
template <graph::Words op, LpPoolOptions options, int rank, class... In>
auto typed_lp_pool(const In&... in) {
  return graph::typed<op, "x">([](const auto&... v) { return lp_pool(v..., options, rank); },
                               pool_fault<LpReduction, options, rank>,
                               in...);
}
template <graph::Words op, SmoothMaxPoolOptions options, int rank, class... In>
auto typed_smooth_max_pool(const In&... in) {
  return graph::typed<op, "x", "beta">(
      [](const auto&... v) { return smooth_max_pool(v..., options, rank); },
      smooth_fault<options, rank>,
      in...);
}
template <graph::Words op, AdaptivePoolOptions options, int rank, class... In>
auto typed_adaptive_max_pool(const In&... in) {
  return graph::typed<op, "x">(
      [](const auto&... v) { return adaptive_max_pool(v..., options, rank); },
      bins_fault<options, rank>,
      in...);
}
template <graph::Words op, AdaptivePoolOptions options, int rank, class... In>
auto typed_adaptive_avg_pool(const In&... in) {
  return graph::typed<op, "x">(
      [](const auto&... v) { return adaptive_avg_pool(v..., options, rank); },
      bins_fault<options, rank>,
      in...);
}

}  // namespace detail

template <MaxPoolOptions options, graph::Operand... In>
auto max_pool(const In&... in) {
  return detail::typed_max_pool<"max_pool", options, 0>(in...);
}
template <MaxPoolOptions options, graph::Operand... In>
auto max_pool1d(const In&... in) {
  return detail::typed_max_pool<"max_pool1d", options, 1>(in...);
}
template <MaxPoolOptions options, graph::Operand... In>
auto max_pool2d(const In&... in) {
  return detail::typed_max_pool<"max_pool2d", options, 2>(in...);
}
template <MaxPoolOptions options, graph::Operand... In>
auto max_pool3d(const In&... in) {
  return detail::typed_max_pool<"max_pool3d", options, 3>(in...);
}

template <AvgPoolOptions options, graph::Operand... In>
auto avg_pool(const In&... in) {
  return detail::typed_avg_pool<"avg_pool", options, 0>(in...);
}
template <AvgPoolOptions options, graph::Operand... In>
auto avg_pool1d(const In&... in) {
  return detail::typed_avg_pool<"avg_pool1d", options, 1>(in...);
}
template <AvgPoolOptions options, graph::Operand... In>
auto avg_pool2d(const In&... in) {
  return detail::typed_avg_pool<"avg_pool2d", options, 2>(in...);
}
template <AvgPoolOptions options, graph::Operand... In>
auto avg_pool3d(const In&... in) {
  return detail::typed_avg_pool<"avg_pool3d", options, 3>(in...);
}

template <LpPoolOptions options, graph::Operand... In>
auto lp_pool(const In&... in) {
  return detail::typed_lp_pool<"lp_pool", options, 0>(in...);
}
template <LpPoolOptions options, graph::Operand... In>
auto lp_pool1d(const In&... in) {
  return detail::typed_lp_pool<"lp_pool1d", options, 1>(in...);
}
template <LpPoolOptions options, graph::Operand... In>
auto lp_pool2d(const In&... in) {
  return detail::typed_lp_pool<"lp_pool2d", options, 2>(in...);
}
template <LpPoolOptions options, graph::Operand... In>
auto lp_pool3d(const In&... in) {
  return detail::typed_lp_pool<"lp_pool3d", options, 3>(in...);
}

/// With the sharpness of the options, or as a second argument.
template <SmoothMaxPoolOptions options, graph::Operand... In>
auto smooth_max_pool(const In&... in) {
  return detail::typed_smooth_max_pool<"smooth_max_pool", options, 0>(in...);
}
template <SmoothMaxPoolOptions options, graph::Operand... In>
auto smooth_max_pool1d(const In&... in) {
  return detail::typed_smooth_max_pool<"smooth_max_pool1d", options, 1>(in...);
}
template <SmoothMaxPoolOptions options, graph::Operand... In>
auto smooth_max_pool2d(const In&... in) {
  return detail::typed_smooth_max_pool<"smooth_max_pool2d", options, 2>(in...);
}
template <SmoothMaxPoolOptions options, graph::Operand... In>
auto smooth_max_pool3d(const In&... in) {
  return detail::typed_smooth_max_pool<"smooth_max_pool3d", options, 3>(in...);
}

template <AdaptivePoolOptions options, graph::Operand... In>
auto adaptive_max_pool(const In&... in) {
  return detail::typed_adaptive_max_pool<"adaptive_max_pool", options, 0>(in...);
}
template <AdaptivePoolOptions options, graph::Operand... In>
auto adaptive_max_pool1d(const In&... in) {
  return detail::typed_adaptive_max_pool<"adaptive_max_pool1d", options, 1>(in...);
}
template <AdaptivePoolOptions options, graph::Operand... In>
auto adaptive_max_pool2d(const In&... in) {
  return detail::typed_adaptive_max_pool<"adaptive_max_pool2d", options, 2>(in...);
}
template <AdaptivePoolOptions options, graph::Operand... In>
auto adaptive_max_pool3d(const In&... in) {
  return detail::typed_adaptive_max_pool<"adaptive_max_pool3d", options, 3>(in...);
}

template <AdaptivePoolOptions options, graph::Operand... In>
auto adaptive_avg_pool(const In&... in) {
  return detail::typed_adaptive_avg_pool<"adaptive_avg_pool", options, 0>(in...);
}
template <AdaptivePoolOptions options, graph::Operand... In>
auto adaptive_avg_pool1d(const In&... in) {
  return detail::typed_adaptive_avg_pool<"adaptive_avg_pool1d", options, 1>(in...);
}
template <AdaptivePoolOptions options, graph::Operand... In>
auto adaptive_avg_pool2d(const In&... in) {
  return detail::typed_adaptive_avg_pool<"adaptive_avg_pool2d", options, 2>(in...);
}
template <AdaptivePoolOptions options, graph::Operand... In>
auto adaptive_avg_pool3d(const In&... in) {
  return detail::typed_adaptive_avg_pool<"adaptive_avg_pool3d", options, 3>(in...);
}

template <Layout layout, graph::Operand X>
auto global_max_pool(const X& x) {
  return detail::typed_adaptive_max_pool<"global_max_pool", global_pool(layout), 0>(x);
}
template <graph::Typed X>
auto global_max_pool(const X& x) {
  return global_max_pool<Layout::channels_first>(x);
}

template <Layout layout, graph::Operand X>
auto global_avg_pool(const X& x) {
  return detail::typed_adaptive_avg_pool<"global_avg_pool", global_pool(layout), 0>(x);
}
template <graph::Typed X>
auto global_avg_pool(const X& x) {
  return global_avg_pool<Layout::channels_first>(x);
}

/// y and where it came from; the indices are data.
template <class Y, class I>
struct TypedMaxPoolResult {
  Y y;
  I indices;
};

namespace detail {

/// A pool's result with the types that go with Y, which is not typed where the pool was refused.
template <class Y, class Result>
auto typed_winners(Result result) {
  if constexpr (graph::Typed<Y>) {
    using I = graph::DataVar<Y::static_shape>;
    return TypedMaxPoolResult<Y, I>{Y(std::move(result.y)), I(std::move(result.indices))};
  } else {
    return result;
  }
}

}  // namespace detail

template <MaxPoolOptions options, graph::Operand X>
auto max_pool_with_indices(const X& x) {
  using Y = decltype(max_pool<options>(x));
  return detail::typed_winners<Y>(
      max_pool_with_indices(graph::OperandTraits<X>::untyped(x), options));
}
template <AdaptivePoolOptions options, graph::Operand X>
auto adaptive_max_pool_with_indices(const X& x) {
  using Y = decltype(adaptive_max_pool<options>(x));
  return detail::typed_winners<Y>(
      adaptive_max_pool_with_indices(graph::OperandTraits<X>::untyped(x), options));
}

}  // namespace fenestra

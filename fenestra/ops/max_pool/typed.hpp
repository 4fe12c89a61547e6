// Max pooling on typed graph variables: `max_pool<MaxPoolOptions{...}>(x)`, on any values.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/max_pool/max_pool.hpp>

#include <utility>

namespace fenestra {

namespace detail {

template <MaxPoolOptions options, int rank>
inline constexpr auto max_pool_fault =
    [](const Shape& x, const auto&...) { return resolve_max_pool(x, options, rank).fault; };

}  // namespace detail

template <MaxPoolOptions options, graph::Operand... In>
auto max_pool(const In&... in) {
  return graph::typed<"max_pool", "x">([](const auto&... v) { return max_pool(v..., options); },
                                       detail::max_pool_fault<options, 0>,
                                       in...);
}
template <MaxPoolOptions options, graph::Operand... In>
auto max_pool1d(const In&... in) {
  return graph::typed<"max_pool1d", "x">([](const auto&... v) { return max_pool1d(v..., options); },
                                         detail::max_pool_fault<options, 1>,
                                         in...);
}
template <MaxPoolOptions options, graph::Operand... In>
auto max_pool2d(const In&... in) {
  return graph::typed<"max_pool2d", "x">([](const auto&... v) { return max_pool2d(v..., options); },
                                         detail::max_pool_fault<options, 2>,
                                         in...);
}
template <MaxPoolOptions options, graph::Operand... In>
auto max_pool3d(const In&... in) {
  return graph::typed<"max_pool3d", "x">([](const auto&... v) { return max_pool3d(v..., options); },
                                         detail::max_pool_fault<options, 3>,
                                         in...);
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

}  // namespace fenestra

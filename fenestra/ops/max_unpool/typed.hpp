// Max unpooling on typed graph variables: `max_unpool<MaxUnpoolOptions{...}>(x, indices)`, the
// indices typed data.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/max_unpool/max_unpool.hpp>
#include <fenestra/ops/require.hpp>

namespace fenestra {

namespace graph {

/// The indices of an abstract value stay what they are.
constexpr AbstractData last_writers(const AbstractData& indices, const MaxUnpoolGeometry& g) {
  require_shape("max_unpool", "indices", indices, g.x_shape());
  return indices;
}

}  // namespace graph

namespace detail {

template <MaxUnpoolOptions options, int rank>
inline constexpr auto max_unpool_fault = [](const Shape& x, const Shape& indices) {
  const Fault fault = resolve_max_unpool(x, options, rank).fault;
  return fault ? fault : check_shape(Argument::indices, indices, x);
};

}  // namespace detail

template <MaxUnpoolOptions options, graph::Operand... In>
auto max_unpool(const In&... in) {
  return graph::typed<"max_unpool", "x", "indices">(
      [](const auto&... v) { return max_unpool(v..., options); },
      detail::max_unpool_fault<options, 0>,
      in...);
}
template <MaxUnpoolOptions options, graph::Operand... In>
auto max_unpool1d(const In&... in) {
  return graph::typed<"max_unpool1d", "x", "indices">(
      [](const auto&... v) { return max_unpool1d(v..., options); },
      detail::max_unpool_fault<options, 1>,
      in...);
}
template <MaxUnpoolOptions options, graph::Operand... In>
auto max_unpool2d(const In&... in) {
  return graph::typed<"max_unpool2d", "x", "indices">(
      [](const auto&... v) { return max_unpool2d(v..., options); },
      detail::max_unpool_fault<options, 2>,
      in...);
}
template <MaxUnpoolOptions options, graph::Operand... In>
auto max_unpool3d(const In&... in) {
  return graph::typed<"max_unpool3d", "x", "indices">(
      [](const auto&... v) { return max_unpool3d(v..., options); },
      detail::max_unpool_fault<options, 3>,
      in...);
}

}  // namespace fenestra

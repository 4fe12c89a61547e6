// Convolution on typed graph variables: `conv<ConvOptions{...}>(x, w, b)`, on any values.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/conv/conv.hpp>

#include <optional>

namespace fenestra {

namespace detail {

template <ConvOptions options, int rank>
inline constexpr auto conv_fault = [](const Shape& x, const Shape& w, const auto&... b) {
  const Fault named = rank > 0 ? check_spatial_rank(w, rank) : Fault{};
  return named ? named : resolve_conv(x, w, std::optional<Shape>{b...}, options).fault;
};

}  // namespace detail

template <ConvOptions options = ConvOptions{}, graph::Operand... In>
auto conv(const In&... in) {
  return graph::typed<"conv", "x", "w", "b">(
      [](const auto&... v) { return conv(v..., options); }, detail::conv_fault<options, 0>, in...);
}
template <ConvOptions options = ConvOptions{}, graph::Operand... In>
auto conv1d(const In&... in) {
  return graph::typed<"conv1d", "x", "w", "b">(
      [](const auto&... v) { return conv1d(v..., options); },
      detail::conv_fault<options, 1>,
      in...);
}
template <ConvOptions options = ConvOptions{}, graph::Operand... In>
auto conv2d(const In&... in) {
  return graph::typed<"conv2d", "x", "w", "b">(
      [](const auto&... v) { return conv2d(v..., options); },
      detail::conv_fault<options, 2>,
      in...);
}
template <ConvOptions options = ConvOptions{}, graph::Operand... In>
auto conv3d(const In&... in) {
  return graph::typed<"conv3d", "x", "w", "b">(
      [](const auto&... v) { return conv3d(v..., options); },
      detail::conv_fault<options, 3>,
      in...);
}

}  // namespace fenestra

// Convolution on typed graph variables: `conv<ConvOptions{...}>(x, w, b)`, on any values.
#pragma once

#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/typed.hpp>

#include <optional>

namespace fenestra {

namespace detail {

template <ConvOptions options>
inline constexpr auto conv_fault = [](const Shape& x, const Shape& w, const auto&... b) {
  return resolve_conv(x, w, std::optional<Shape>{b...}, options).fault;
};

}  // namespace detail

template <ConvOptions options = ConvOptions{}, graph::Operand... In>
auto conv(const In&... in) {
  return graph::typed<"conv", "x", "w", "b">(
      [](const auto&... v) { return conv(v..., options); }, detail::conv_fault<options>, in...);
}
template <ConvOptions options = ConvOptions{}, graph::Operand... In>
auto conv1d(const In&... in) {
  return graph::typed<"conv1d", "x", "w", "b">(
      [](const auto&... v) { return conv1d(v..., options); }, detail::conv_fault<options>, in...);
}
template <ConvOptions options = ConvOptions{}, graph::Operand... In>
auto conv2d(const In&... in) {
  return graph::typed<"conv2d", "x", "w", "b">(
      [](const auto&... v) { return conv2d(v..., options); }, detail::conv_fault<options>, in...);
}
template <ConvOptions options = ConvOptions{}, graph::Operand... In>
auto conv3d(const In&... in) {
  return graph::typed<"conv3d", "x", "w", "b">(
      [](const auto&... v) { return conv3d(v..., options); }, detail::conv_fault<options>, in...);
}

}  // namespace fenestra

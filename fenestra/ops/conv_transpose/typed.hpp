// Transposed convolution on typed graph variables: `conv_transpose<ConvTransposeOptions{...}>(x, w,
// b)`.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/conv_transpose/conv_transpose.hpp>

#include <optional>

namespace fenestra {

namespace detail {

template <ConvTransposeOptions options, int rank>
inline constexpr auto conv_transpose_fault = [](const Shape& x, const Shape& w, const auto&... b) {
  const Fault named = rank > 0 ? check_spatial_rank(w, rank) : Fault{};
  return named ? named : resolve_conv_transpose(x, w, std::optional<Shape>{b...}, options).fault;
};

}  // namespace detail

template <ConvTransposeOptions options = ConvTransposeOptions{}, graph::Operand... In>
auto conv_transpose(const In&... in) {
  return graph::typed<"conv_transpose", "x", "w", "b">(
      [](const auto&... v) { return conv_transpose(v..., options); },
      detail::conv_transpose_fault<options, 0>,
      in...);
}
template <ConvTransposeOptions options = ConvTransposeOptions{}, graph::Operand... In>
auto conv_transpose1d(const In&... in) {
  return graph::typed<"conv_transpose1d", "x", "w", "b">(
      [](const auto&... v) { return conv_transpose1d(v..., options); },
      detail::conv_transpose_fault<options, 1>,
      in...);
}
template <ConvTransposeOptions options = ConvTransposeOptions{}, graph::Operand... In>
auto conv_transpose2d(const In&... in) {
  return graph::typed<"conv_transpose2d", "x", "w", "b">(
      [](const auto&... v) { return conv_transpose2d(v..., options); },
      detail::conv_transpose_fault<options, 2>,
      in...);
}
template <ConvTransposeOptions options = ConvTransposeOptions{}, graph::Operand... In>
auto conv_transpose3d(const In&... in) {
  return graph::typed<"conv_transpose3d", "x", "w", "b">(
      [](const auto&... v) { return conv_transpose3d(v..., options); },
      detail::conv_transpose_fault<options, 3>,
      in...);
}

}  // namespace fenestra

// Convolution, for those who call it; derivatives and other scalars: conv.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/ops/conv/options.hpp>

#include <string_view>

namespace fenestra {

/// `b` may be null.
template <CompiledValue V>
FENESTRA_API V conv_values(const V& x, const V& w, const V* b, const ConvOptions& options);

/// y = conv(x, w); see ConvOptions. Stride, padding, dilation take a scalar or one value per axis.
template <AnyValue X, AnyValue W>
constexpr CommonValue<X, W> conv(const X& x, const W& w, const ConvOptions& options = {}) {
  return conv_values<CommonValue<X, W>>(x, w, nullptr, options);
}
/// y = conv(x, w) + b
template <AnyValue X, AnyValue W, AnyValue B>
constexpr CommonValue<X, W, B> conv(const X& x,
                                    const W& w,
                                    const B& b,
                                    const ConvOptions& options = {}) {
  using V = CommonValue<X, W, B>;
  const V& bias = b;
  return conv_values<V>(x, w, &bias, options);
}

/// Whether a weight has `rank` spatial axes: the check behind conv1d, conv2d and conv3d.
constexpr Fault check_spatial_rank(const Shape& w, int rank) {
  if (w.rank() == rank + 2) {
    return {};
  }
  return {.code = ErrorCode::rank_mismatch,
          .argument = Argument::w,
          .got = w.rank(),
          .needed = rank + 2};
}
/// Throws the fault of `check_spatial_rank` in the name of `op`.
[[noreturn]] FENESTRA_API void throw_spatial_rank(std::string_view op, const Shape& w, int rank);
constexpr void require_spatial_rank(std::string_view op, const Shape& w, int rank) {
  if (check_spatial_rank(w, rank)) {
    throw_spatial_rank(op, w, rank);
  }
}

template <AnyValue X, AnyValue W, class... Rest>
constexpr auto conv1d(const X& x, const W& w, const Rest&... rest) {
  require_spatial_rank("conv1d", w.shape(), 1);
  return conv(x, w, rest...);
}
template <AnyValue X, AnyValue W, class... Rest>
constexpr auto conv2d(const X& x, const W& w, const Rest&... rest) {
  require_spatial_rank("conv2d", w.shape(), 2);
  return conv(x, w, rest...);
}
template <AnyValue X, AnyValue W, class... Rest>
constexpr auto conv3d(const X& x, const W& w, const Rest&... rest) {
  require_spatial_rank("conv3d", w.shape(), 3);
  return conv(x, w, rest...);
}

}  // namespace fenestra

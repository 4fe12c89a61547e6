// The pools, for those who call them; derivatives and other scalars: pool.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/ops/pool/options.hpp>

#include <concepts>
#include <type_traits>

namespace fenestra {

/// The largest cell of each window, the first of equals; see MaxPoolOptions. `named_rank` fixes the
/// number of spatial axes, 0 infers it.
template <CompiledValue V>
FENESTRA_API V max_pool(const V& x, const MaxPoolOptions& options, int named_rank = 0);
template <AnyValue V>
constexpr V max_pool1d(const V& x, const MaxPoolOptions& options) {
  return max_pool(x, options, 1);
}
template <AnyValue V>
constexpr V max_pool2d(const V& x, const MaxPoolOptions& options) {
  return max_pool(x, options, 2);
}
template <AnyValue V>
constexpr V max_pool3d(const V& x, const MaxPoolOptions& options) {
  return max_pool(x, options, 3);
}

/// The same over bins.
template <CompiledValue V>
FENESTRA_API V adaptive_max_pool(const V& x,
                                 const AdaptivePoolOptions& options,
                                 int named_rank = 0);
template <AnyValue V>
constexpr V adaptive_max_pool1d(const V& x, const AdaptivePoolOptions& options) {
  return adaptive_max_pool(x, options, 1);
}
template <AnyValue V>
constexpr V adaptive_max_pool2d(const V& x, const AdaptivePoolOptions& options) {
  return adaptive_max_pool(x, options, 2);
}
template <AnyValue V>
constexpr V adaptive_max_pool3d(const V& x, const AdaptivePoolOptions& options) {
  return adaptive_max_pool(x, options, 3);
}
/// The maximum of each channel; the spatial axes stay, with extent 1.
template <AnyValue V>
constexpr V global_max_pool(const V& x, Layout layout = Layout::channels_first) {
  return adaptive_max_pool(x, global_pool(layout));
}

/// A pooled value and where each of its elements came from.
template <AnyValue V>
struct MaxPoolResult {
  /// Tensor<Index>, or what stands for it where V has no tensors yet.
  using Indices =
      std::conditional_t<std::same_as<IndicesOf<V>, Selection>, Tensor<Index>, IndicesOf<V>>;

  V y;
  Indices indices;  ///< flat over the spatial extents of one sample and channel; -1: no cell won
};

template <CompiledValue V>
FENESTRA_API MaxPoolResult<V> max_pool_with_indices(const V& x,
                                                    const MaxPoolOptions& options,
                                                    int named_rank = 0);
template <CompiledValue V>
FENESTRA_API MaxPoolResult<V> adaptive_max_pool_with_indices(const V& x,
                                                             const AdaptivePoolOptions& options,
                                                             int named_rank = 0);

/// The mean of each window; see AvgPoolOptions.
template <CompiledValue V>
FENESTRA_API V avg_pool(const V& x, const AvgPoolOptions& options, int named_rank = 0);
template <AnyValue V>
constexpr V avg_pool1d(const V& x, const AvgPoolOptions& options) {
  return avg_pool(x, options, 1);
}
template <AnyValue V>
constexpr V avg_pool2d(const V& x, const AvgPoolOptions& options) {
  return avg_pool(x, options, 2);
}
template <AnyValue V>
constexpr V avg_pool3d(const V& x, const AvgPoolOptions& options) {
  return avg_pool(x, options, 3);
}

/// The same over bins.
template <CompiledValue V>
FENESTRA_API V adaptive_avg_pool(const V& x,
                                 const AdaptivePoolOptions& options,
                                 int named_rank = 0);
template <AnyValue V>
constexpr V adaptive_avg_pool1d(const V& x, const AdaptivePoolOptions& options) {
  return adaptive_avg_pool(x, options, 1);
}
template <AnyValue V>
constexpr V adaptive_avg_pool2d(const V& x, const AdaptivePoolOptions& options) {
  return adaptive_avg_pool(x, options, 2);
}
template <AnyValue V>
constexpr V adaptive_avg_pool3d(const V& x, const AdaptivePoolOptions& options) {
  return adaptive_avg_pool(x, options, 3);
}
/// The mean of each channel; the spatial axes stay, with extent 1.
template <AnyValue V>
constexpr V global_avg_pool(const V& x, Layout layout = Layout::channels_first) {
  return adaptive_avg_pool(x, global_pool(layout));
}

/// The p-norm of the real cells of each window; see LpPoolOptions.
template <CompiledValue V>
FENESTRA_API V lp_pool(const V& x, const LpPoolOptions& options, int named_rank = 0);
template <AnyValue V>
constexpr V lp_pool1d(const V& x, const LpPoolOptions& options) {
  return lp_pool(x, options, 1);
}
template <AnyValue V>
constexpr V lp_pool2d(const V& x, const LpPoolOptions& options) {
  return lp_pool(x, options, 2);
}
template <AnyValue V>
constexpr V lp_pool3d(const V& x, const LpPoolOptions& options) {
  return lp_pool(x, options, 3);
}

/// (1/beta) log(sum of exp(beta*x)) over each window; see SmoothMaxPoolOptions.
template <CompiledValue V>
FENESTRA_API V smooth_max_pool(const V& x, const SmoothMaxPoolOptions& options, int named_rank = 0);
template <CompiledValue V>
FENESTRA_API V
smooth_max_pool_values(const V& x, const V& beta, SmoothMaxPoolOptions options, int named_rank);
/// With a differentiable sharpness, which wins over `options.beta`: a value of rank 0, or of shape
/// (C,), one for each channel.
template <AnyValue X, AnyValue B>
constexpr CommonValue<X, B> smooth_max_pool(const X& x,
                                            const B& beta,
                                            const SmoothMaxPoolOptions& options,
                                            int named_rank = 0) {
  return smooth_max_pool_values<CommonValue<X, B>>(x, beta, options, named_rank);
}
template <AnyValue V>
constexpr V smooth_max_pool1d(const V& x, const SmoothMaxPoolOptions& options) {
  return smooth_max_pool(x, options, 1);
}
template <AnyValue V>
constexpr V smooth_max_pool2d(const V& x, const SmoothMaxPoolOptions& options) {
  return smooth_max_pool(x, options, 2);
}
template <AnyValue V>
constexpr V smooth_max_pool3d(const V& x, const SmoothMaxPoolOptions& options) {
  return smooth_max_pool(x, options, 3);
}

}  // namespace fenestra

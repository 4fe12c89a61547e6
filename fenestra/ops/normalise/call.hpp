// Batch, group and layer normalisation, for those who call them; derivatives and other scalars:
// normalise.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/ops/normalise/options.hpp>

namespace fenestra {

/// Normalised values, and the statistics they were made with (of the shape of the parameters for
/// batch norm), e.g. for running averages. Differentiable, all three.
template <AnyValue V>
struct Normalised {
  V y;
  V mean;
  V var;
};

inline namespace generic {
template <AnyValue V>
constexpr V layer_norm_values(const V& x, const V& gamma, const V& beta, double eps);
}  // namespace generic

template <CompiledValue V>
FENESTRA_API Normalised<V> batch_norm_values(const V& x,
                                             const V& gamma,
                                             const V& beta,
                                             const NormOptions& options);
/// Gamma and beta may be null.
template <CompiledValue V>
FENESTRA_API V batch_norm_inference_values(const V& x,
                                           const V& mean,
                                           const V& var,
                                           const V* gamma,
                                           const V* beta,
                                           const NormOptions& options);
template <CompiledValue V>
FENESTRA_API V group_norm_values(
    const V& x, Index groups, const V& gamma, const V& beta, const NormOptions& options);
template <CompiledValue V>
FENESTRA_API V layer_norm_values(const V& x, const V& gamma, const V& beta, double eps);

/// Training form: statistics of each channel over the batch and space.
template <AnyValue X, AnyValue G, AnyValue B>
constexpr Normalised<CommonValue<X, G, B>> batch_norm(const X& x,
                                                      const G& gamma,
                                                      const B& beta,
                                                      const NormOptions& options = {}) {
  return batch_norm_values<CommonValue<X, G, B>>(x, gamma, beta, options);
}
template <CompiledValue V>
FENESTRA_API Normalised<V> batch_norm(const V& x, const NormOptions& options = {});

/// Inference form: the statistics are given, one per channel.
template <AnyValue X, AnyValue M, AnyValue S, AnyValue G, AnyValue B>
constexpr CommonValue<X, M, S, G, B> batch_norm_inference(const X& x,
                                                          const M& mean,
                                                          const S& var,
                                                          const G& gamma,
                                                          const B& beta,
                                                          const NormOptions& options = {}) {
  using V = CommonValue<X, M, S, G, B>;
  const V& scale = gamma;
  const V& shift = beta;
  return batch_norm_inference_values<V>(x, mean, var, &scale, &shift, options);
}
template <AnyValue X, AnyValue M, AnyValue S>
constexpr CommonValue<X, M, S> batch_norm_inference(const X& x,
                                                    const M& mean,
                                                    const S& var,
                                                    const NormOptions& options = {}) {
  return batch_norm_inference_values<CommonValue<X, M, S>>(x, mean, var, nullptr, nullptr, options);
}

/// Statistics of each sample and group of consecutive channels; gamma and beta per channel.
template <AnyValue X, AnyValue G, AnyValue B>
constexpr CommonValue<X, G, B> group_norm(
    const X& x, Index groups, const G& gamma, const B& beta, const NormOptions& options = {}) {
  return group_norm_values<CommonValue<X, G, B>>(x, groups, gamma, beta, options);
}
template <CompiledValue V>
FENESTRA_API V group_norm(const V& x, Index groups, const NormOptions& options = {});

/// Statistics over the trailing axes that gamma and beta have.
template <AnyValue X, AnyValue G, AnyValue B>
constexpr CommonValue<X, G, B> layer_norm(const X& x,
                                          const G& gamma,
                                          const B& beta,
                                          double eps = 1e-5) {
  return layer_norm_values<CommonValue<X, G, B>>(x, gamma, beta, eps);
}
/// Over the last `axes` axes, without parameters.
template <CompiledValue V>
FENESTRA_API V layer_norm(const V& x, int axes = 1, double eps = 1e-5);

}  // namespace fenestra

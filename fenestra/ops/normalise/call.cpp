// The normalisations: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/normalise/normalise.hpp>

namespace fenestra {

template <CompiledValue V>
Normalised<V> batch_norm_values(const V& x,
                                const V& gamma,
                                const V& beta,
                                const NormOptions& options) {
  return generic::batch_norm_values(x, gamma, beta, options);
}
template <CompiledValue V>
V batch_norm_inference_values(const V& x,
                              const V& mean,
                              const V& var,
                              const V* gamma,
                              const V* beta,
                              const NormOptions& options) {
  return generic::batch_norm_inference_values(x, mean, var, gamma, beta, options);
}
template <CompiledValue V>
V group_norm_values(
    const V& x, Index groups, const V& gamma, const V& beta, const NormOptions& options) {
  return generic::group_norm_values(x, groups, gamma, beta, options);
}
template <CompiledValue V>
V layer_norm_values(const V& x, const V& gamma, const V& beta, double eps) {
  return generic::layer_norm_values(x, gamma, beta, eps);
}
template <CompiledValue V>
Normalised<V> batch_norm(const V& x, const NormOptions& options) {
  return generic::batch_norm(x, options);
}
template <CompiledValue V>
V group_norm(const V& x, Index groups, const NormOptions& options) {
  return generic::group_norm(x, groups, options);
}
template <CompiledValue V>
V layer_norm(const V& x, int axes, double eps) {
  return generic::layer_norm(x, axes, eps);
}
#define FENESTRA_NORMALISE_CALLS(V)                                                \
  template FENESTRA_API Normalised<V> batch_norm_values(                           \
      const V&, const V&, const V&, const NormOptions&);                           \
  template FENESTRA_API V batch_norm_inference_values(                             \
      const V&, const V&, const V&, const V*, const V*, const NormOptions&);       \
  template FENESTRA_API V group_norm_values(                                       \
      const V&, Index, const V&, const V&, const NormOptions&);                    \
  template FENESTRA_API V layer_norm_values(const V&, const V&, const V&, double); \
  template FENESTRA_API Normalised<V> batch_norm(const V&, const NormOptions&);    \
  template FENESTRA_API V group_norm(const V&, Index, const NormOptions&);         \
  template FENESTRA_API V layer_norm(const V&, int, double);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_NORMALISE_CALLS)

}  // namespace fenestra

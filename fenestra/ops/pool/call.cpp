// The pools: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/pool/clear_rank.hpp>
#include <fenestra/ops/pool/pool.hpp>

#include <string_view>

namespace fenestra {

namespace {

template <class V, class Options>
void check_kernel(std::string_view op,
                  std::string_view names,
                  const V& x,
                  const Options& options,
                  int named_rank) {
  detail::require_clear_rank(
      op, names, "kernel", x.shape(), options.kernel, options.layout, named_rank);
}
template <class V>
void check_bins(std::string_view op,
                std::string_view names,
                const V& x,
                const AdaptivePoolOptions& options,
                int named_rank) {
  detail::require_clear_rank(
      op, names, "output_size", x.shape(), options.output_size, options.layout, named_rank);
}

}  // namespace

template <CompiledValue V>
V max_pool(const V& x, const MaxPoolOptions& options, int named_rank) {
  check_kernel("max_pool", "max_pool1d or max_pool2d", x, options, named_rank);
  return generic::max_pool(x, options, named_rank);
}
template <CompiledValue V>
V adaptive_max_pool(const V& x, const AdaptivePoolOptions& options, int named_rank) {
  check_bins(
      "adaptive_max_pool", "adaptive_max_pool1d or adaptive_max_pool2d", x, options, named_rank);
  return generic::adaptive_max_pool(x, options, named_rank);
}
template <CompiledValue V>
MaxPoolResult<V> max_pool_with_indices(const V& x, const MaxPoolOptions& options, int named_rank) {
  check_kernel("max_pool_with_indices", "", x, options, named_rank);
  return generic::max_pool_with_indices(x, options, named_rank);
}
template <CompiledValue V>
MaxPoolResult<V> adaptive_max_pool_with_indices(const V& x,
                                                const AdaptivePoolOptions& options,
                                                int named_rank) {
  check_bins("adaptive_max_pool_with_indices", "", x, options, named_rank);
  return generic::adaptive_max_pool_with_indices(x, options, named_rank);
}
template <CompiledValue V>
V avg_pool(const V& x, const AvgPoolOptions& options, int named_rank) {
  check_kernel("avg_pool", "avg_pool1d or avg_pool2d", x, options, named_rank);
  return generic::avg_pool(x, options, named_rank);
}
template <CompiledValue V>
V adaptive_avg_pool(const V& x, const AdaptivePoolOptions& options, int named_rank) {
  check_bins(
      "adaptive_avg_pool", "adaptive_avg_pool1d or adaptive_avg_pool2d", x, options, named_rank);
  return generic::adaptive_avg_pool(x, options, named_rank);
}
template <CompiledValue V>
V lp_pool(const V& x, const LpPoolOptions& options, int named_rank) {
  check_kernel("lp_pool", "lp_pool1d or lp_pool2d", x, options, named_rank);
  return generic::lp_pool(x, options, named_rank);
}
template <CompiledValue V>
V smooth_max_pool(const V& x, const SmoothMaxPoolOptions& options, int named_rank) {
  check_kernel("smooth_max_pool", "smooth_max_pool1d or smooth_max_pool2d", x, options, named_rank);
  return generic::smooth_max_pool(x, options, named_rank);
}
template <CompiledValue V>
V smooth_max_pool_values(const V& x, const V& beta, SmoothMaxPoolOptions options, int named_rank) {
  check_kernel("smooth_max_pool", "", x, options, named_rank);
  return generic::smooth_max_pool_values(x, beta, options, named_rank);
}
#define FENESTRA_POOL_CALLS(V)                                                          \
  template FENESTRA_API V max_pool(const V&, const MaxPoolOptions&, int);               \
  template FENESTRA_API V adaptive_max_pool(const V&, const AdaptivePoolOptions&, int); \
  template FENESTRA_API MaxPoolResult<V> max_pool_with_indices(                         \
      const V&, const MaxPoolOptions&, int);                                            \
  template FENESTRA_API MaxPoolResult<V> adaptive_max_pool_with_indices(                \
      const V&, const AdaptivePoolOptions&, int);                                       \
  template FENESTRA_API V avg_pool(const V&, const AvgPoolOptions&, int);               \
  template FENESTRA_API V adaptive_avg_pool(const V&, const AdaptivePoolOptions&, int); \
  template FENESTRA_API V lp_pool(const V&, const LpPoolOptions&, int);                 \
  template FENESTRA_API V smooth_max_pool(const V&, const SmoothMaxPoolOptions&, int);  \
  template FENESTRA_API V smooth_max_pool_values(const V&, const V&, SmoothMaxPoolOptions, int);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_POOL_CALLS)

}  // namespace fenestra

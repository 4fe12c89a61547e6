// Max unpooling: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/max_unpool/max_unpool.hpp>
#include <fenestra/ops/pool/clear_rank.hpp>

namespace fenestra {

namespace {

void check_sizes(const Shape& x, const MaxUnpoolOptions& options, int named_rank) {
  const bool by_size = options.output_size.is_given();
  detail::require_clear_rank("max_unpool",
                             "max_unpool1d or max_unpool2d",
                             by_size ? "output_size" : "kernel",
                             x,
                             by_size ? options.output_size : options.kernel,
                             options.layout,
                             named_rank);
}

}  // namespace

template <CompiledValue V>
V max_unpool(const V& x,
             const Tensor<Index>& indices,
             const MaxUnpoolOptions& options,
             int named_rank) {
  check_sizes(x.shape(), options, named_rank);
  return generic::max_unpool(x, indices, options, named_rank);
}
template <CompiledValue V>
  requires HasOwnIndices<V>
V max_unpool(const V& x,
             const IndicesOf<V>& indices,
             const MaxUnpoolOptions& options,
             int named_rank) {
  check_sizes(x.shape(), options, named_rank);
  return generic::max_unpool(x, indices, options, named_rank);
}
#define FENESTRA_MAX_UNPOOL_CALLS(V) \
  template FENESTRA_API V max_unpool(const V&, const Tensor<Index>&, const MaxUnpoolOptions&, int);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_MAX_UNPOOL_CALLS)
#define FENESTRA_MAX_UNPOOL_CALLS_OF_INDICES(V) \
  template FENESTRA_API V max_unpool(const V&, const IndicesOf<V>&, const MaxUnpoolOptions&, int);
FENESTRA_MAX_UNPOOL_CALLS_OF_INDICES(Value<float>)
FENESTRA_MAX_UNPOOL_CALLS_OF_INDICES(Value<double>)
FENESTRA_MAX_UNPOOL_CALLS_OF_INDICES(graph::Value<float>)
FENESTRA_MAX_UNPOOL_CALLS_OF_INDICES(graph::Value<double>)

}  // namespace fenestra

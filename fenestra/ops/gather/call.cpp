// Elements and slices by integers: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/gather/gather.hpp>

namespace fenestra {

template <CompiledValue V>
V gather(const V& x, const IndicesOf<V>& indices, int axis) {
  return generic::gather(x, indices, axis);
}
template <CompiledValue V>
V take(const V& x, const IndicesOf<V>& indices, int axis) {
  return generic::take(x, indices, axis);
}
#define FENESTRA_GATHER_CALLS(V)                                      \
  template FENESTRA_API V gather(const V&, const IndicesOf<V>&, int); \
  template FENESTRA_API V take(const V&, const IndicesOf<V>&, int);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_GATHER_CALLS)

}  // namespace fenestra

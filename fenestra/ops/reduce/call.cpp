// Reductions: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/reduce/reduce.hpp>

namespace fenestra {

template <CompiledValue V>
V sum(const V& x, const ReduceOptions& options) {
  return generic::sum(x, options);
}
template <CompiledValue V>
V mean(const V& x, const ReduceOptions& options) {
  return generic::mean(x, options);
}
template <CompiledValue V>
V var_over(const V& x, const VarOptions& options) {
  return generic::var_over(x, options);
}
template <CompiledValue V>
V std_over(const V& x, const VarOptions& options) {
  return generic::std_over(x, options);
}
template <CompiledValue V>
V max_over(const V& x, const ReduceOptions& options) {
  return generic::max_over(x, options);
}
template <CompiledValue V>
V min_over(const V& x, const ReduceOptions& options) {
  return generic::min_over(x, options);
}
template <CompiledValue V>
IndicesOf<V> argmax(const V& x, const ArgOptions& options) {
  return generic::argmax(x, options);
}
template <CompiledValue V>
IndicesOf<V> argmin(const V& x, const ArgOptions& options) {
  return generic::argmin(x, options);
}
#define FENESTRA_REDUCE_CALLS(V)                                          \
  template FENESTRA_API V sum(const V&, const ReduceOptions&);            \
  template FENESTRA_API V mean(const V&, const ReduceOptions&);           \
  template FENESTRA_API V var_over(const V&, const VarOptions&);          \
  template FENESTRA_API V std_over(const V&, const VarOptions&);          \
  template FENESTRA_API V max_over(const V&, const ReduceOptions&);       \
  template FENESTRA_API V min_over(const V&, const ReduceOptions&);       \
  template FENESTRA_API IndicesOf<V> argmax(const V&, const ArgOptions&); \
  template FENESTRA_API IndicesOf<V> argmin(const V&, const ArgOptions&);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_REDUCE_CALLS)

}  // namespace fenestra

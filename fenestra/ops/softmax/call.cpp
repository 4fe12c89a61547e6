// Softmax and its like: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/softmax/softmax.hpp>

namespace fenestra {

template <CompiledValue V>
V softmax(const V& x, int axis) {
  return generic::softmax(x, axis);
}
template <CompiledValue V>
V log_softmax(const V& x, int axis) {
  return generic::log_softmax(x, axis);
}
template <CompiledValue V>
V logsumexp(const V& x, int axis, bool keep) {
  return generic::logsumexp(x, axis, keep);
}
#define FENESTRA_SOFTMAX_CALLS(V)                     \
  template FENESTRA_API V softmax(const V&, int);     \
  template FENESTRA_API V log_softmax(const V&, int); \
  template FENESTRA_API V logsumexp(const V&, int, bool);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_SOFTMAX_CALLS)

}  // namespace fenestra

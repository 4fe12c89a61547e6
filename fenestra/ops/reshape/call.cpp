// Reshaping: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/reshape/reshape.hpp>

namespace fenestra {

template <CompiledValue V>
V reshape(const V& x, const Shape& shape) {
  return generic::reshape(x, shape);
}
template <CompiledValue V>
V flatten(const V& x, int first, int last) {
  return generic::flatten(x, first, last);
}
template <CompiledValue V>
V squeeze(const V& x, const AxisList& axes) {
  return generic::squeeze(x, axes);
}
template <CompiledValue V>
V unsqueeze(const V& x, int axis) {
  return generic::unsqueeze(x, axis);
}
#define FENESTRA_RESHAPE_CALLS(V)                             \
  template FENESTRA_API V reshape(const V&, const Shape&);    \
  template FENESTRA_API V flatten(const V&, int, int);        \
  template FENESTRA_API V squeeze(const V&, const AxisList&); \
  template FENESTRA_API V unsqueeze(const V&, int);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_RESHAPE_CALLS)

}  // namespace fenestra

// Resizing: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/resize/resize.hpp>

namespace fenestra {

template <CompiledValue V>
V resize(const V& x, const ResizeOptions& options) {
  return generic::resize(x, options);
}
template <CompiledValue V>
V resize_adjoint(const V& y_bar, const Shape& shape, const ResizeOptions& options) {
  return generic::resize_adjoint(y_bar, shape, options);
}
#define FENESTRA_RESIZE_CALLS(V)                                  \
  template FENESTRA_API V resize(const V&, const ResizeOptions&); \
  template FENESTRA_API V resize_adjoint(const V&, const Shape&, const ResizeOptions&);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_RESIZE_CALLS)

}  // namespace fenestra

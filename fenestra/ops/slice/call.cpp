// Slicing: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/slice/slice.hpp>

namespace fenestra {

template <CompiledValue V>
V slice(const V& x, std::span<const AxisRange> ranges) {
  return generic::slice(x, ranges);
}
template <CompiledValue V>
V slice_adjoint(const V& u, const Shape& shape, std::span<const AxisRange> ranges) {
  return generic::slice_adjoint(u, shape, ranges);
}
template <CompiledValue V>
std::vector<V> split(const V& x, const SplitParts& parts, int axis) {
  return generic::split(x, parts, axis);
}
#define FENESTRA_SLICE_CALLS(V)                                                              \
  template FENESTRA_API V slice(const V&, std::span<const AxisRange>);                       \
  template FENESTRA_API V slice_adjoint(const V&, const Shape&, std::span<const AxisRange>); \
  template FENESTRA_API std::vector<V> split(const V&, const SplitParts&, int);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_SLICE_CALLS)

}  // namespace fenestra

// Concatenating: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/concat/concat.hpp>

namespace fenestra {

template <CompiledValue V>
V concat(std::span<const V> parts, int axis) {
  return generic::concat(parts, axis);
}
template <CompiledValue V>
V stack(std::span<const V> parts, int axis) {
  return generic::stack(parts, axis);
}
#define FENESTRA_CONCAT_CALLS(V)                           \
  template FENESTRA_API V concat(std::span<const V>, int); \
  template FENESTRA_API V stack(std::span<const V>, int);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_CONCAT_CALLS)

}  // namespace fenestra

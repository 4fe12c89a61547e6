// Transposing: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/transpose/transpose.hpp>

namespace fenestra {

template <CompiledValue V>
V transpose(const V& x, std::span<const int> order) {
  return generic::transpose(x, order);
}
template <CompiledValue V>
V transpose(const V& x) {
  return generic::transpose(x);
}
#define FENESTRA_TRANSPOSE_CALLS(V)                                  \
  template FENESTRA_API V transpose(const V&, std::span<const int>); \
  template FENESTRA_API V transpose(const V&);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_TRANSPOSE_CALLS)

}  // namespace fenestra

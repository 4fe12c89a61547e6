// Choosing by a mask: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/where/where.hpp>

namespace fenestra {

template <CompiledValue V>
V where_values(const V& mask, const V& a, const V& b) {
  return generic::where_values(mask, a, b);
}
#define FENESTRA_WHERE_CALLS(V) template FENESTRA_API V where_values(const V&, const V&, const V&);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_WHERE_CALLS)

}  // namespace fenestra

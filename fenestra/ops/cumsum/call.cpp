// Running sums: what call.hpp declares, compiled for float and double.
#include <fenestra/ops/compile_calls.hpp>
#include <fenestra/ops/cumsum/cumsum.hpp>

namespace fenestra {

template <CompiledValue V>
V cumsum(const V& x, int axis, bool reverse) {
  return generic::cumsum(x, axis, reverse);
}
#define FENESTRA_CUMSUM_CALLS(V) template FENESTRA_API V cumsum(const V&, int, bool);
FENESTRA_FOR_COMPILED_VALUES(FENESTRA_CUMSUM_CALLS)

}  // namespace fenestra

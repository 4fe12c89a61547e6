// Slicing: rules, compiled for float and double.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/slice/slice.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(SlicePrimitive)
FENESTRA_COMPILE_RULES(SliceAdjointPrimitive)

}  // namespace fenestra

// Padding: rules, compiled for float and double.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/pad/pad.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(PadPrimitive)
FENESTRA_COMPILE_RULES(PadAdjointPrimitive)

}  // namespace fenestra

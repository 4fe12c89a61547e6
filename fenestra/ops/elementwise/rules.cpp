// The elementwise functions: rules, compiled for float and double.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/elementwise/kernel.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(UnaryPrimitive)
FENESTRA_COMPILE_RULES(GatePrimitive)
FENESTRA_COMPILE_RULES(BinaryPrimitive)
FENESTRA_COMPILE_RULES(WinnerGatePrimitive)

}  // namespace fenestra

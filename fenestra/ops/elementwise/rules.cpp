// The elementwise functions, sums and expansions: rules, compiled for float and double.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/elementwise/kernels/ranges.hpp>
#include <fenestra/ops/elementwise/kernels/sums.hpp>
#include <fenestra/ops/elementwise/rules.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(UnaryPrimitive)
FENESTRA_COMPILE_RULES(GatePrimitive)
FENESTRA_COMPILE_RULES(BinaryPrimitive)
FENESTRA_COMPILE_RULES(WinnerGatePrimitive)
FENESTRA_COMPILE_RULES(SumToPrimitive)
FENESTRA_COMPILE_RULES(BroadcastToPrimitive)

}  // namespace fenestra

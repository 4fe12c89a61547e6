// The reductions: rules, compiled for float and double.
#include <fenestra/ops/compile_rules.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(SumToPrimitive)
FENESTRA_COMPILE_RULES(BroadcastToPrimitive)
FENESTRA_COMPILE_RULES(TakePrimitive)
FENESTRA_COMPILE_RULES(PlacePrimitive)
FENESTRA_COMPILE_RULES(MaxToPrimitive)

}  // namespace fenestra

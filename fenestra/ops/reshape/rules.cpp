// Reshaping: rules, compiled for float and double.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/reshape/rules.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(ReshapePrimitive)

}  // namespace fenestra

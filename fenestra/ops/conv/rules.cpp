// Convolution: rules, compiled for float and double.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/conv/rules.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(ConvPrimitive)

}  // namespace fenestra

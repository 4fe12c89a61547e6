// Normalisation: rules, compiled for float and double.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/normalise/kernels/channels.hpp>
#include <fenestra/ops/normalise/normalise.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(NormVariancePrimitive)
FENESTRA_COMPILE_RULES(NormSumsPrimitive)
FENESTRA_COMPILE_RULES(NormInputGradPrimitive)
FENESTRA_COMPILE_RULES(NormalisePrimitive)

}  // namespace fenestra

// Softmax: rules, compiled for float and double.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/softmax/softmax.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(SoftmaxPrimitive)

}  // namespace fenestra

// Matrix product: rules, compiled for float and double.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/matmul/rules.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(MatMulPrimitive)

}  // namespace fenestra

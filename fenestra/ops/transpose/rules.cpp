// Transposition: rules, compiled for float and double.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/transpose/transpose.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(TransposePrimitive)

}  // namespace fenestra

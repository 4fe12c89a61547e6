// Concatenation: rules, compiled for float and double.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/concat/concat.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(ConcatPrimitive)

}  // namespace fenestra

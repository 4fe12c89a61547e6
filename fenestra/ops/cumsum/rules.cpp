// Running sums: rules, compiled for float and double.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/cumsum/rules.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(CumsumPrimitive)

}  // namespace fenestra

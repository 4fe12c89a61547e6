// where: rules, compiled for float and double.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/where/rules.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(WherePrimitive)

}  // namespace fenestra

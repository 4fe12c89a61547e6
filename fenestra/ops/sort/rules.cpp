// Sorting: rules, compiled for float and double.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/sort/rules.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(SortPrimitive)

}  // namespace fenestra

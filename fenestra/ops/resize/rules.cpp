// Resizing: rules, compiled for float and double.
#include <fenestra/ops/compile_rules.hpp>
#include <fenestra/ops/resize/resize.hpp>

namespace fenestra {

FENESTRA_COMPILE_RULES(ResizePrimitive)
FENESTRA_COMPILE_RULES(ResizeAdjointPrimitive)

}  // namespace fenestra

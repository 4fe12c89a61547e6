// A range that leaves its axis.
// expect: "slice: x"
// expect: "this shape does not fit"
// expect: "x = (2, 3)"
#include <fenestra/ops/slice/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{2, 3}> x) {
#ifdef REFUSED
  return fn::slice<fn::AxisRange{.axis = 1, .count = 4}>(x);
#else
  return fn::slice<fn::AxisRange{.axis = 1, .count = 2}>(x);
#endif
}

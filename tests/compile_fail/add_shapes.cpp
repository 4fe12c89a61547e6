// A sum of shapes that do not broadcast.
// expect: "add"
// expect: "shape-mismatch"
// expect: "got 3, needed 4"
// expect: "a = (2, 4)"
// expect: "b = (3,)"
#include <fenestra/ops/elementwise/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{2, 4}> a, V<fn::Shape{3}> b, V<fn::Shape{4}> c) {
#ifdef REFUSED
  return a + b;
#else
  return a + c;
#endif
}

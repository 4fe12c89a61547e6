// A reshape to another number of elements.
// expect: "reshape: x"
// expect: "shape-mismatch"
// expect: "got 12, needed 5"
// expect: "x = (2, 6)"
#include <fenestra/ops/reshape/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{2, 6}> x) {
#ifdef REFUSED
  return fn::reshape<fn::Shape{5, -1}>(x);
#else
  return fn::reshape<fn::Shape{3, 4}>(x);
#endif
}

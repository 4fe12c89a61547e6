// Parts that differ on another axis than the one they are joined along.
// expect: "concat"
// expect: "these shapes do not fit together"
// expect: "a = (2, 3)"
// expect: "b = (4, 5)"
#include <fenestra/ops/concat/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{2, 3}> a, V<fn::Shape{4, 5}> b, V<fn::Shape{4, 3}> c) {
#ifdef REFUSED
  return fn::concat<0>(a, b);
#else
  return fn::concat<0>(a, c);
#endif
}

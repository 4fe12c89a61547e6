// A product of matrices whose inner extents differ.
// expect: "matmul"
// expect: "shape-mismatch"
// expect: "got 4, needed 3"
// expect: "a = (2, 3)"
// expect: "b = (4, 5)"
#include <fenestra/ops/matmul/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{2, 3}> a, V<fn::Shape{4, 5}> b, V<fn::Shape{3, 5}> c) {
#ifdef REFUSED
  return fn::matmul(a, b);
#else
  return fn::matmul(a, c);
#endif
}

// A linear layer for another number of features.
// expect: "linear: x"
// expect: "shape-mismatch"
// expect: "got 400, needed 256"
// expect: "x = (8, 400)"
// expect: "w = (120, 256)"
#include <fenestra/ops/matmul/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{8, 400}> x, V<fn::Shape{120, 256}> w, V<fn::Shape{120, 400}> v) {
#ifdef REFUSED
  return fn::linear(x, w);
#else
  return fn::linear(x, v);
#endif
}

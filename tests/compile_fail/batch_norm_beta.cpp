// Batch normalisation whose beta has another length than x has channels.
// expect: "batch_norm: beta"
// expect: "shape-mismatch"
// expect: "got 5, needed 6"
// expect: "x = (2, 6, 5)"
// expect: "gamma = (6,)"
// expect: "beta = (5,)"
#include <fenestra/ops/normalise/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{2, 6, 5}> x, V<fn::Shape{6}> c, V<fn::Shape{5}> d) {
#ifdef REFUSED
  return fn::batch_norm(x, c, d);
#else
  return fn::batch_norm(x, c, c);
#endif
}

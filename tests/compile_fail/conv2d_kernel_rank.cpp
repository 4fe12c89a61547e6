// conv2d with the weight of a convolution along one axis.
// expect: "conv2d: w"
// expect: "rank-mismatch"
// expect: "got 3, needed 4"
// expect: "x = (2, 3, 32)"
// expect: "w = (16, 3, 3)"
#include <fenestra/ops/conv/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{2, 3, 32}> x, V<fn::Shape{16, 3, 3}> w) {
#ifdef REFUSED
  return fn::conv2d(x, w);
#else
  return fn::conv1d(x, w);
#endif
}

// A convolution whose bias has another length than its result has channels.
// expect: "conv: b"
// expect: "bias-mismatch"
// expect: "got 15, needed 16"
// expect: "w = (16, 3, 3, 3)"
// expect: "b = (15,)"
#include <fenestra/ops/conv/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{3, 32, 32}> x,
          V<fn::Shape{16, 3, 3, 3}> w,
          V<fn::Shape{16}> b,
          V<fn::Shape{15}> c) {
#ifdef REFUSED
  return fn::conv(x, w, c);
#else
  return fn::conv(x, w, b);
#endif
}

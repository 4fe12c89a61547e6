// A convolution whose weight has more spatial axes than its input.
// expect: "conv: x"
// expect: "rank-mismatch"
// expect: "got 3, needed 5"
// expect: "x = (3, 32, 32)"
// expect: "w = (16, 3, 3, 3, 3)"
#include <fenestra/ops/conv/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{3, 32, 32}> x, V<fn::Shape{3, 8, 32, 32}> z, V<fn::Shape{16, 3, 3, 3, 3}> w) {
#ifdef REFUSED
  return fn::conv(x, w);
#else
  return fn::conv(z, w);
#endif
}

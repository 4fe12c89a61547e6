// A convolution whose groups do not divide its channels.
// expect: "conv: x"
// expect: "channels-not-divisible"
// expect: "got 4, needed 3"
// expect: "x = (4, 9, 9)"
// expect: "w = (6, 2, 3, 3)"
#include <fenestra/ops/conv/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{4, 9, 9}> x, V<fn::Shape{6, 2, 3, 3}> w) {
#ifdef REFUSED
  return fn::conv<fn::ConvOptions{.groups = 3}>(x, w);
#else
  return fn::conv<fn::ConvOptions{.groups = 2}>(x, w);
#endif
}

// A convolution whose weight takes another number of channels.
// expect: "conv: w"
// expect: "channel-mismatch"
// expect: "got 3, needed 4"
// expect: "x = (8, 3, 32, 32)"
// expect: "w = (16, 4, 3, 3)"
#include <fenestra/ops/conv/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{8, 3, 32, 32}> x, V<fn::Shape{8, 4, 32, 32}> z, V<fn::Shape{16, 4, 3, 3}> w) {
#ifdef REFUSED
  return fn::conv<fn::ConvOptions{.padding = 1}>(x, w);
#else
  return fn::conv<fn::ConvOptions{.padding = 1}>(z, w);
#endif
}

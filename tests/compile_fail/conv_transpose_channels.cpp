// A transposed convolution whose weight takes another number of channels.
// expect: "conv_transpose: w"
// expect: "x = (3, 8, 8)"
// expect: "w = (4, 2, 2, 2)"
#include <fenestra/ops/conv_transpose/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{3, 8, 8}> x, V<fn::Shape{4, 8, 8}> z, V<fn::Shape{4, 2, 2, 2}> w) {
#ifdef REFUSED
  return fn::conv_transpose(x, w);
#else
  return fn::conv_transpose(z, w);
#endif
}

// A loss between different shapes, which would broadcast elsewhere.
// expect: "mse_loss: x"
// expect: "x = (8, 10)"
// expect: "target = (10,)"
#include <fenestra/ops/loss/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{8, 10}> x, V<fn::Shape{10}> t) {
#ifdef REFUSED
  return fn::mse_loss(x, t);
#else
  return fn::mse_loss(x, x);
#endif
}

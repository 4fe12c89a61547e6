// A pool whose window is larger than its input.
// expect: "max_pool2d: kernel"
// expect: "kernel-exceeds-input"
// expect: "spatial axis 1: got 5, needed 4"
// expect: "x = (3, 8, 4)"
#include <fenestra/ops/pool/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{3, 8, 4}> x) {
#ifdef REFUSED
  return fn::max_pool2d<fn::MaxPoolOptions{.kernel = 5}>(x);
#else
  return fn::max_pool2d<fn::MaxPoolOptions{.kernel = 4}>(x);
#endif
}

// Cross entropy with labels for another batch.
// expect: "cross_entropy: labels"
// expect: "got 7, needed 8"
// expect: "x = (8, 10)"
// expect: "labels = (7,)"
#include <fenestra/ops/loss/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{8, 10}> x, V<fn::Shape{7, 10}> z, fn::graph::DataVar<fn::Shape{7}> labels) {
#ifdef REFUSED
  return fn::cross_entropy(x, labels);
#else
  return fn::cross_entropy(z, labels);
#endif
}

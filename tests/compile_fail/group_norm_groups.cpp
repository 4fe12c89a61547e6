// Group normalisation with a number of groups that does not divide the channels.
// expect: "group_norm: groups"
// expect: "channels-not-divisible"
// expect: "got 4, needed 6"
// expect: "x = (2, 6, 5)"
#include <fenestra/ops/normalise/typed.hpp>

namespace fn = fenestra;

template <fn::Shape S>
using V = fn::graph::Var<float, S>;

auto call(V<fn::Shape{2, 6, 5}> x) {
#ifdef REFUSED
  return fn::group_norm<4>(x);
#else
  return fn::group_norm<3>(x);
#endif
}

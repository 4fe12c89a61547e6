// A gradient by an argument without values.
// expect: an argument holds no values that a transform can find
#include <fenestra/fenestra.hpp>

namespace fn = fenestra;

#ifdef REFUSED
using Argument = float;
#else
using Argument = fn::Value<float>;
#endif

auto call(const Argument& x) {
  return fn::grad([](const auto& v) { return v * v; }, x);
}

// A gradient by a struct with a C array, which no function returns.
// expect: a struct in a tree has a C array: make it a std::array
#include <fenestra/fenestra.hpp>

#include <array>

namespace fn = fenestra;

struct Net {
  fn::Value<float> w;
#ifdef REFUSED
  fn::Value<float> b[2];
#else
  std::array<fn::Value<float>, 2> b;
#endif
};

auto call(const Net& net) {
  return fn::grad([](const Net& n) { return fn::sum(n.w * n.b[0] * n.b[1]); }, net);
}

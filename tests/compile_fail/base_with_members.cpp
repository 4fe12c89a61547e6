// A gradient by a struct whose base has members too.
// expect: a struct in a tree has a base: make the base its first member
#include <fenestra/fenestra.hpp>

namespace fn = fenestra;

struct Layer {
  fn::Value<float> w;
};
#ifdef REFUSED
struct Net : Layer {
  fn::Value<float> b;
  const fn::Value<float>& weight() const { return w; }
};
#else
struct Net {
  Layer layer;
  fn::Value<float> b;
  const fn::Value<float>& weight() const { return layer.w; }
};
#endif

auto call(const Net& net) {
  return fn::grad([](const Net& n) { return fn::sum(n.weight() * n.b); }, net);
}

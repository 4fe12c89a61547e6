// A gradient by a struct of more members than are counted.
// expect: a struct of more than 24 members
#include <fenestra/fenestra.hpp>

namespace fn = fenestra;
using V = fn::Value<float>;

struct Half {
  V a, b, c, d, e, f, g, h, i, j, k, l, m;
};
#ifdef REFUSED
struct Net {
  V a, b, c, d, e, f, g, h, i, j, k, l, m;
  V n, o, p, q, r, s, t, u, v, w, x, y, z;
  const V& first() const { return a; }
};
#else
struct Net {
  Half front, back;
  const V& first() const { return front.a; }
};
#endif

auto call(const Net& net) {
  return fn::grad([](const Net& n) { return fn::sum(n.first()); }, net);
}

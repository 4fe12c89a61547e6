// A gradient by a struct whose members cannot become values, since they are declared as tensors.
// expect: this struct holds tensors where a transform must put values
#include <fenestra/fenestra.hpp>

namespace fn = fenestra;

#ifdef REFUSED
struct Net {
  fn::Tensor<float> w, b;
};
#else
struct Net {
  fn::Value<float> w, b;
};
#endif

auto call(const Net& net) {
  return fn::grad([](const Net& n) { return fn::sum(n.w * n.b); }, net);
}

// A derivative along a class whose members are its own affair.
// expect: an argument holds no values that a transform can find
#include <fenestra/fenestra.hpp>

#include <tuple>

namespace fn = fenestra;

class Net {
 public:
  explicit Net(fn::Value<float> weight) : w(weight) {}

  fn::Value<float> w;
#ifndef REFUSED
  Net() = default;
  static constexpr auto fields = std::tuple{&Net::w};
#endif
};

auto call(const Net& net) {
  return fn::jvp([](const Net& n) { return n.w * n.w; }, fn::primals(net), fn::tangents(net));
}

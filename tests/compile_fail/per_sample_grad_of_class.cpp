// Gradients of every sample by a class whose members are its own affair.
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
  const auto loss = [](const Net& n, const fn::Value<float>& x) { return fn::sum(n.w * x); };
  return fn::per_sample_grad(
      loss, net, fn::over(fn::Value<float>(fn::Tensor<float>(fn::Shape{2, 3}))));
}

// One gradient per sample, without a loop over samples: what clipping, influence and noise scales
// need.
#include <fenestra/fenestra.hpp>
#include <fenestra/spec/random.hpp>

#include <cmath>
#include <cstdio>

namespace fn = fenestra;

template <class V>
struct Net {
  V conv, linear;
};

int main() {
  fn::Random random(7);
  const auto draw = [&](const fn::Shape& shape) {
    fn::Tensor<double> t(shape);
    for (double& value : t.mutable_values()) {
      value = random.real();
    }
    return t;
  };
  const Net<fn::Tensor<double>> net{draw({4, 1, 3, 3}), draw({10, 64})};
  const auto images = draw({16, 1, 6, 6});  // sixteen images of one channel
  fn::Tensor<fn::Index> labels(fn::Shape{16});
  for (fn::Index& label : labels.mutable_values()) {
    label = random.between(0, 9);
  }

  // written for one image and one label
  const auto loss = [](const auto& n, const auto& image, const auto& label) {
    const auto h = fn::relu(fn::conv(image, n.conv));
    return fn::cross_entropy(fn::linear(fn::reshape(h, fn::Shape{64}), n.linear), label);
  };
  const auto bars = fn::per_sample_grad(loss, net, fn::over(images), fn::over(labels));

  const auto norms = fn::sqrt(fn::sum(bars.conv * bars.conv, {.axes = {1, 2, 3, 4}}));
  std::printf("gradients %s, one per image; norms from %.3f",
              fn::to_string(bars.conv.shape()).c_str(),
              fn::min_over(norms)[0]);
  std::printf(" to %.3f\n", fn::max_over(norms)[0]);
  return bars.conv.shape() == fn::Shape{16, 4, 1, 3, 3} && std::isfinite(fn::sum(norms)[0]) ? 0 : 1;
}

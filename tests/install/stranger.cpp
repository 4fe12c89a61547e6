// A stranger's whole program: one convolution with the specification, one value checked by hand.
// It is built against an installed Fenestra or its source tree, never against our build.
#include <fenestra/base/version.hpp>
#include <fenestra/ops/conv/spec.hpp>

#include <iostream>

int main() {
  const fenestra::Tensor<double> x(fenestra::Shape{1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const fenestra::Tensor<double> w(fenestra::Shape{1, 1, 3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  const fenestra::Tensor<double> y =
      fenestra::spec::conv(x, w, fenestra::ConvOptions{.padding = 1});

  // The main diagonal of the window: 1 + 5 + 9 in the middle, 1 + 5 in the corner, where the rest
  // of the window looks at padding.
  const bool right =
      y.shape() == fenestra::Shape{1, 1, 3, 3} && y.data()[4] == 15.0 && y.data()[0] == 6.0;
  std::cout << "fenestra " << fenestra::version << ": " << (right ? "right" : "wrong") << '\n';
  return right ? 0 : 1;
}

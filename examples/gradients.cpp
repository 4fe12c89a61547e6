// Gradients of a small network: the whole program.
#include <fenestra/fenestra.hpp>

#include <cstdio>

namespace fn = fenestra;

int main() {
  const fn::Tensor<float> x(fn::Shape{2, 1, 8, 8}, 0.5F);
  fn::Tape<float> tape;
  const auto w = tape.parameter(fn::Tensor<float>(fn::Shape{4, 1, 3, 3}, 0.1F));
  const auto b = tape.parameter(fn::Tensor<float>(fn::Shape{4}, 0.01F));

  const auto hidden = fn::relu(fn::conv(x, w, b, {.padding = 1}));
  const auto loss = fn::mean(fn::max_pool(hidden, {.kernel = 2}));
  const auto grads = tape.backward(loss);

  std::printf("loss %.4f, d loss / d b[0] = %.4f\n",
              static_cast<double>(loss[0]),
              static_cast<double>(grads[b][0]));
  return grads[b][0] == 0.25F ? 0
                              : 1;  // every mean of four channels feels its own bias by a quarter
}

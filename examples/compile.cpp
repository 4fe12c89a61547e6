// Compile and run: one callable, eagerly and as a program, then a training step that changes its
// parameters in place.
#include <fenestra/fenestra.hpp>
#include <fenestra/nn/models/functional.hpp>

#include <cstdio>

namespace fn = fenestra;

int main() {
  fn::Random random(7);
  auto parameters = fn::nn::LeNet5::initial<float>(random);
  const auto x = fn::nn::uniform<float>(fn::nn::LeNet5::input(8), random, 1.0);
  const fn::Tensor<fn::Index> labels(fn::Shape{8}, {0, 1, 2, 3, 4, 5, 6, 7});

  // The model is called once, with values that are nodes of a graph, and never again.
  const auto model = [](const auto& p, const auto& images) {
    using V = std::remove_cvref_t<decltype(images)>;
    return fn::nn::LeNet5::forward<V>(p, images);
  };
  const auto program = fn::compile<float>(model, parameters, x.shape());
  fn::Context<float> context(program);  // the memory of one thread
  std::vector<fn::RunArgument> arguments(parameters.begin(), parameters.end());
  arguments.emplace_back(x);
  std::vector<fn::Tensor<float>> scores{fn::Tensor<float>(fn::Shape{8, 10})};
  program.run(context, arguments, scores);
  std::printf("first score %.4f, %zu bytes of memory\n",
              static_cast<double>(scores[0][0]),
              context.bytes());

  const auto loss = [&](const auto& p, const auto& images, const auto& classes) {
    return fn::cross_entropy(model(p, images), classes);
  };
  const auto step = fn::compile_step<float>(
      fn::SgdUpdate{.momentum = 0.9}, loss, parameters, x.shape(), fn::DataShape{labels.shape()});
  fn::Context<float> memory(step);
  const fn::Tensor<float> rate(fn::Shape{}, 0.01F);
  std::vector<fn::Tensor<float>> velocities;
  for (const auto& parameter : parameters) {
    velocities.emplace_back(parameter.shape());
  }
  std::vector<fn::RunArgument> state(parameters.begin(), parameters.end());
  state.emplace_back(x);
  state.emplace_back(labels);
  state.emplace_back(rate);
  state.insert(state.end(), velocities.begin(), velocities.end());
  std::vector<fn::Tensor<float>> value{fn::Tensor<float>(fn::Shape{})};
  float first = 0;
  for (int i = 0; i < 30; ++i) {
    step.run(memory, state, value);
    first = i == 0 ? value[0][0] : first;
  }
  std::printf("loss %.3f before, %.3f after 30 steps\n",
              static_cast<double>(first),
              static_cast<double>(value[0][0]));
  return value[0][0] < first / 2 ? 0 : 1;
}

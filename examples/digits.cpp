// Trains a small convolutional network on the handwritten digits in data/digits, and leaves model
// and report behind.
//
//   digits [DATA_FOLDER [OUTPUT_FOLDER]]
//
// LeNet in miniature: two convolutions, two poolings, two linear layers; cross entropy; Adam;
// gradients by the tape. One of ten images is held out. Before training the gradients are compared
// with difference quotients.
#include <fenestra/base/file.hpp>
#include <fenestra/fenestra.hpp>
#include <fenestra/io/npy.hpp>
#include <fenestra/nn/accuracy.hpp>
#include <fenestra/nn/initialise.hpp>
#include <fenestra/nn/optimiser.hpp>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <vector>
#include <unistd.h>

namespace fn = fenestra;
using fn::Index;
using fn::Shape;

/// The parameters, for any value type: tensors to store, variables to differentiate.
template <class V>
struct LeNet {
  V conv1, bias1, conv2, bias2, linear1, bias3, linear2, bias4;
};

/// (N, 1, 8, 8) images to (N, 10) scores.
const auto forward = [](const auto& net, const auto& x) {
  auto h = fn::max_pool(fn::relu(fn::conv(x, net.conv1, net.bias1, {.padding = 1})), {.kernel = 2});
  h = fn::max_pool(fn::relu(fn::conv(h, net.conv2, net.bias2, {.padding = 1})), {.kernel = 2});
  h = fn::relu(fn::linear(fn::reshape(h, Shape{h.shape()[0], -1}), net.linear1, net.bias3));
  return fn::linear(h, net.linear2, net.bias4);
};

template <class T>
LeNet<fn::Tensor<T>> initial_net(fn::Random& random) {
  const auto weight = [&](const Shape& shape) { return fn::nn::kaiming_uniform<T>(shape, random); };
  const auto zeros = [](Index n) { return fn::Tensor<T>(Shape{n}); };
  return {weight({16, 1, 3, 3}),
          zeros(16),
          weight({32, 16, 3, 3}),
          zeros(32),
          weight({64, 128}),
          zeros(64),
          weight({10, 64}),
          zeros(10)};
}

struct Digits {
  fn::Tensor<float> images;  // (N, 1, 8, 8), 0 to 1
  fn::Tensor<Index> labels;  // (N)

  Digits pick(const std::vector<Index>& which) const {
    const auto n = static_cast<Index>(which.size());
    Digits result{fn::Tensor<float>(Shape{n, 1, 8, 8}), fn::Tensor<Index>(Shape{n})};
    for (Index i = 0; i < n; ++i) {
      const Index from = which[static_cast<std::size_t>(i)];
      std::copy_n(images.data() + from * 64, 64, result.images.mutable_data() + i * 64);
      result.labels.mutable_data()[i] = labels[from];
    }
    return result;
  }
};

int main(int argc, char** argv) try {
  const std::filesystem::path data = argc > 1 ? argv[1] : "data/digits";
  const std::filesystem::path output = argc > 2 ? argv[2] : "build/demo";
  const auto start = std::chrono::steady_clock::now();
  const auto pixels = fn::io::load_npy<float>(data / "images.npy");
  const Digits all{fn::scale(fn::reshape(pixels, Shape{-1, 1, 8, 8}), 1.0 / 16),
                   fn::io::load_npy<Index>(data / "labels.npy")};
  std::vector<Index> training, held_out;
  for (Index i = 0; i < all.labels.size(); ++i) {
    (i % 10 == 9 ? held_out : training).push_back(i);
  }
  const Digits test = all.pick(held_out);

  fn::Random random(1);
  {  // trust, but verify: a small batch in double
    const auto x = test.pick({0, 1}).images.map([](float v) { return static_cast<double>(v); });
    const auto labels = test.pick({0, 1}).labels;
    const auto loss = [&](const auto& net) { return fn::cross_entropy(forward(net, x), labels); };
    const auto net = initial_net<double>(random);
    const auto report = fn::gradcheck(
        [&](const auto& w) {
          auto moved =
              fn::tree_map([](const auto& t) { return std::decay_t<decltype(w)>(t); }, net);
          moved.conv2 = w;
          return loss(moved);
        },
        net.conv2);
    std::printf("gradients of the second convolution: %s\n", report.text().c_str());
    if (!report.ok) {
      return 1;
    }
  }

  auto net = initial_net<float>(random);
  fn::nn::Adam<float> adam({.rate = 2e-3});
  const int epochs = 20;
  const Index batch = 32;
  const bool on_terminal = isatty(fileno(stderr)) != 0;
  float last_loss = 0;
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    for (std::size_t i = training.size() - 1; i > 0; --i) {
      std::swap(training[i],
                training[static_cast<std::size_t>(random.between(0, static_cast<Index>(i)))]);
    }
    adam.set_rate(epoch <= 14 ? 2e-3 : 4e-4);
    for (std::size_t at = 0; at < training.size(); at += batch) {
      const std::size_t end = std::min(training.size(), at + batch);
      const Digits now = all.pick({training.begin() + static_cast<std::ptrdiff_t>(at),
                                   training.begin() + static_cast<std::ptrdiff_t>(end)});
      const auto [loss, bars] = fn::value_and_grad(
          [&](const auto& n) { return fn::cross_entropy(forward(n, now.images), now.labels); },
          net);
      adam.step(net, bars);
      last_loss = loss[0];
      if (on_terminal) {
        const int done = static_cast<int>(end * 30 / training.size());
        std::fprintf(stderr,
                     "\repoch %2d/%d [%-30s] loss %.4f ",
                     epoch,
                     epochs,
                     std::string(static_cast<std::size_t>(done), '#').c_str(),
                     static_cast<double>(last_loss));
      }
    }
  }
  if (on_terminal) {
    std::fprintf(stderr, "\r%-70s\r", "");
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double right = fn::nn::accuracy(forward(net, test.images), test.labels);

  std::filesystem::create_directories(output);
  int k = 0;
  for (const auto& tensor : fn::tree_flatten(net)) {
    fn::io::save_npy(output / ("parameter_" + std::to_string(k++) + ".npy"), tensor);
  }
  char line[200];
  std::snprintf(line,
                sizeof line,
                "%d epochs, %.1f s: %.2f %% of %d held-out images right, last loss %.4f\n",
                epochs,
                seconds,
                100 * right,
                static_cast<int>(test.labels.size()),
                static_cast<double>(last_loss));
  fn::replace_file(output / "report.txt", {line});
  std::printf("%smodel and report: %s\n", line, output.string().c_str());
  return right >= 0.97 ? 0 : 1;
} catch (const fn::Error& error) {
  std::fprintf(stderr, "digits: %s\n", error.what());
  return 3;
}

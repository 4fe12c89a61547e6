// A network as an ONNX file, and back: exported, given another head, trained on, saved, loaded.
#include <fenestra/io/onnx.hpp>
#include <fenestra/nn.hpp>

#include <iostream>

namespace fn = fenestra;
namespace nn = fenestra::nn;
namespace onnx = fenestra::onnx;

int main() {
  nn::Sequential own{nn::Conv(1, 8, {.kernel = 3}), nn::Relu(), nn::Flatten(), nn::Linear(288, 5)};
  nn::initialise(own, fn::Key(1));
  onnx::export_model("example_own.onnx", own, {1, 8, 8});

  // A file of any tool, with a last layer for the ten classes of the digits.
  const onnx::Model model = onnx::with_classes(onnx::read_model("example_own.onnx"), 10);
  onnx::Network<float> net(model);
  net.set_trained("0.weight", false);

  nn::Loader<float> training(nn::open_dataset("digits"), {.batch = 32, .seed = 1});
  nn::Loader<float> held_out(nn::open_dataset("digits", {.split = nn::Split::test}), {.batch = 64});
  nn::Trainer<onnx::Network<float>> trainer(net, {.optimiser = "adamw rate=0.005"});
  const nn::FitResult result = trainer.fit(training, 3, {.validation = &held_out});
  std::cout << "right: " << 100 * result.validation->score() << " %\n";

  // The same file with other weights, which other runtimes read too.
  onnx::save("example_tuned.onnx", trainer.trained());
  const onnx::Network<float> again = onnx::load<float>("example_tuned.onnx");
  const fn::Tensor<float> x(fn::Shape{1, 1, 8, 8}, 0.5F);
  return again(x) == trainer.trained()(x) && result.validation->score() > 0.8 ? 0 : 1;
}

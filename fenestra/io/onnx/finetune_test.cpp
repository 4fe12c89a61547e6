// Fine-tuning an ONNX model against torch: the losses of 20 steps from the same weights, and the
// loss of inference after them, in double.
#include <fenestra/io/onnx.hpp>
#include <fenestra/nn/layers.hpp>
#include <fenestra/nn/trainer.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

namespace fenestra::onnx {
namespace {

// Printed by tests/parity/finetune_curve.py with torch 1.13.
constexpr std::array<double, 21> kSgd = {
    1.2714955023064345,  1.011733881034699,    0.8587540615903221,   0.6958232385880213,
    0.5118105659366919,  0.3817388466722946,   0.30137557796802783,  0.2390854179014507,
    0.18310587343231743, 0.1353191602039878,   0.09651741758605571,  0.06792033410146447,
    0.04823939403690148, 0.03562497697127536,  0.027856550103805822, 0.023057846950668093,
    0.01976434384742302, 0.017060944837045285, 0.014458355753310692, 0.011911389938952606,
    0.010042280762707701};
constexpr std::array<double, 21> kAdam = {
    1.2714955023064345,  1.053813252204741,   0.932814410228671,   0.843665132953514,
    0.7637869548339628,  0.6845495804444485,  0.6093764235856115,  0.5438203143649079,
    0.4900757304896905,  0.44468185641273394, 0.40361400479569554, 0.3643037431649532,
    0.32672990004857855, 0.2918430576663816,  0.26030714177812675, 0.2329085239671476,
    0.20969112935890047, 0.18954980522063428, 0.17166961164393357, 0.15567234016871204,
    0.1571168589164219};

/// scale * sin(0.7 i + phase), added to `around`.
Tensor<double> wave(const Shape& shape, double phase, double scale, double around = 0) {
  Tensor<double> tensor(shape);
  Index i = 0;
  for (double& value : tensor.mutable_values()) {
    value = around + scale * std::sin(0.7 * static_cast<double>(i++) + phase);
  }
  return tensor;
}

Network<double> network() {
  nn::BasicSequential<double> net{nn::BasicConv<double>(1, 3, {.kernel = 3, .padding = 1}),
                                  nn::BasicBatchNorm<double>(3),
                                  nn::BasicActivation<double, nn::Nonlinearity::relu>(),
                                  nn::BasicMaxPool<double>({.kernel = 2}),
                                  nn::BasicFlatten<double>(),
                                  nn::BasicLinear<double>(48, 3)};
  const std::string bytes = exported(net, Shape{1, 8, 8});
  Network<double> result(read_model(std::as_bytes(std::span(bytes)), "exported"),
                         {.batch_norm = BatchNormMode::batch});
  result.find_weight("0.weight")->value() = wave(Shape{3, 1, 3, 3}, 0.1, 0.5);
  result.find_weight("0.bias")->value() = wave(Shape{3}, 0.2, 0.1);
  result.find_weight("1.weight")->value() = wave(Shape{3}, 0.3, 0.2, 1);
  result.find_weight("1.bias")->value() = wave(Shape{3}, 0.4, 0.1);
  result.find_weight("5.weight")->value() = wave(Shape{3, 48}, 0.5, 0.2);
  result.find_weight("5.bias")->value() = wave(Shape{3}, 0.6, 0.1);
  return result;
}

void expect_curve(const std::string& optimiser, const std::array<double, 21>& expected) {
  nn::Trainer<Network<double>> trainer(network(), {.optimiser = optimiser});
  const nn::Batch<double> batch{.inputs = wave(Shape{6, 1, 8, 8}, 0.7, 1),
                                .labels = Tensor<Index>(Shape{6}, {0, 1, 2, 2, 1, 0}),
                                .which = {0, 1, 2, 3, 4, 5}};
  // Sums of up to 384 products, 20 times over, with derivatives of at most some tens in between:
  // 20 * 384 * 2^-53 * 100 is below 1e-10. The epsilon of batch norm is a float in the file,
  // 1e-5 to 2^-24 of itself: 1e-12 of a variance.
  constexpr double kTolerance = 1e-10;
  for (std::size_t step = 0; step < 20; ++step) {
    EXPECT_NEAR(trainer.step(batch).loss, expected[step], kTolerance) << optimiser << " " << step;
  }
  // In inference, with the running statistics: the variance that they follow is what torch and ONNX
  // say differently, n/(n - 1) of it or not, so that only the rough value can agree.
  const Tensor<double> scores = trainer.predict(batch.inputs);
  double loss = 0;
  for (Index i = 0; i < 6; ++i) {
    double sum = 0;
    for (Index c = 0; c < 3; ++c) {
      sum += std::exp(scores[3 * i + c]);
    }
    loss += (std::log(sum) - scores[3 * i + batch.labels[i]]) / 6;
  }
  EXPECT_NEAR(loss, expected[20], 0.02 * expected[20]) << optimiser;
}

TEST(OnnxFinetune, TwentyStepsOfSgdAreTorchs) { expect_curve("sgd rate=0.05 momentum=0.9", kSgd); }
TEST(OnnxFinetune, TwentyStepsOfAdamAreTorchs) { expect_curve("adam rate=0.01", kAdam); }

}  // namespace
}  // namespace fenestra::onnx

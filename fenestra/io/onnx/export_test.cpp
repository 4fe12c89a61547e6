// Networks of our layers out and in again: what runs the file shares nothing with the layers but
// the operators of the engine, so both say the same up to rounding.
#include <fenestra/io/files_test.hpp>
#include <fenestra/io/onnx.hpp>
#include <fenestra/io/onnx/export_layers_test.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/layers.hpp>
#include <fenestra/nn/trainer.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>

namespace fenestra::onnx {
namespace {

using OnnxExport = io::Files;

Tensor<double> drawn(const Shape& shape, std::uint64_t seed) {
  Tensor<double> tensor(shape);
  std::uint64_t position = 0;
  for (double& value : tensor.mutable_values()) {
    value = Key(seed).normal(position++);
  }
  return tensor;
}

/// A layer by its description, with weights and statistics that are not what they begin with.
nn::Layer<double> made(std::string_view description) {
  auto layer = nn::build_layer<double>(description);
  std::uint64_t number = 0;
  for (const nn::Slot<double>& slot : nn::slots<double>(layer)) {
    Tensor<double> numbers = drawn(slot.value->shape(), 100 + number++);
    if (slot.name.ends_with("running_var")) {
      numbers = numbers.map([](double x) { return 0.5 + std::fabs(x); });
    }
    *slot.value = numbers;
  }
  return layer;
}

Network<double> reread(const std::string& bytes) {
  return Network<double>(read_model(io::bytes_of(bytes), "exported"));
}

/// That the file of a layer gives what the layer gives, for two samples.
void expect_equal(std::string_view description, const Shape& sample) {
  SCOPED_TRACE(description);
  const nn::Layer<double> layer = made(description);
  Shape batch{2};
  for (const Index extent : sample) {
    batch.push_back(extent);
  }
  const Tensor<double> x = drawn(batch, 7);
  const Tensor<double> expected = nn::infer(layer, x);
  const Network<double> network = reread(exported(layer, sample));
  EXPECT_TRUE(name_problems(network.model()).empty());
  const Tensor<double> y = network(x);
  ASSERT_EQ(y.shape(), expected.shape());
  for (Index i = 0; i < y.size(); ++i) {
    // Sums of fewer than 200 products of numbers near 1; attributes of nodes are floats, and so are
    // epsilon and the slopes: a part in 2^24.
    ASSERT_NEAR(y[i], expected[i], 2e-6 * (1 + std::fabs(expected[i]))) << i;
  }
}

TEST_F(OnnxExport, EveryKindOfLayerComesBack) {
  for (const ExportedLayer& layer : kExportedLayers) {
    expect_equal(layer.description, layer.sample);
  }
}

TEST_F(OnnxExport, WhatOnnxHasNothingForIsRefused) {
  const auto code = [](std::string_view description) {
    try {
      exported(made(description), Shape{4, 8, 6});
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("fix:"), std::string::npos);
      return error.code();
    }
    return ErrorCode::none;
  };
  EXPECT_EQ(code(R"({"layer":"smooth_max_pool","kernel":2})"), ErrorCode::unsupported);
  EXPECT_EQ(code(R"({"layer":"adaptive_avg_pool","output_size":5})"), ErrorCode::unsupported);
  EXPECT_EQ(code(R"({"layer":"avg_pool","kernel":2,"divisor_override":3})"),
            ErrorCode::unsupported);
}

/// A small classifier of 6x6 pictures, exported.
std::string classifier(Index classes) {
  nn::BasicSequential<double> net{nn::BasicConv<double>(1, 4, {.kernel = 3, .padding = 1}),
                                  nn::BasicBatchNorm<double>(4),
                                  nn::BasicActivation<double, nn::Nonlinearity::relu>(),
                                  nn::BasicFlatten<double>(),
                                  nn::BasicLinear<double>(4 * 36, classes)};
  nn::initialise(net, Key(3));
  return exported(net, Shape{1, 6, 6}, {.classes = {"a", "b", "c"}});
}

TEST_F(OnnxExport, FineTuningChangesWhatIsTrainedAndNothingElse) {
  const auto file = write("net.onnx", classifier(3));
  const Model other = with_classes(read_model(file), 2, 5);
  Network<double> network(other, {.batch_norm = BatchNormMode::frozen});
  for (const char* const frozen : {"0.weight", "0.bias", "1.weight", "1.bias"}) {
    network.set_trained(frozen, false);
  }
  nn::Trainer<Network<double>> trainer(network, {.optimiser = "sgd rate=0.1"});
  const nn::Batch<double> batch{.inputs = drawn(Shape{4, 1, 6, 6}, 1),
                                .labels = Tensor<Index>(Shape{4}, {0, 1, 1, 0}),
                                .which = {0, 1, 2, 3}};
  const double before = trainer.step(batch).loss;
  double after = before;
  for (int step = 0; step < 10; ++step) {
    after = trainer.step(batch).loss;
  }
  EXPECT_LT(after, 0.9 * before);
  save(path("tuned.onnx"), trainer.trained());
  const Network<double> again = load<double>(path("tuned.onnx"));
  const Tensor<double> x = drawn(Shape{2, 1, 6, 6}, 2);
  EXPECT_EQ(again(x), trainer.trained()(x));
  EXPECT_EQ(weights_of(again).at("0.weight"), weights_of(network).at("0.weight"));
  EXPECT_NE(weights_of(again).at("4.weight"), weights_of(network).at("4.weight"));
  // All but the numbers of the last layer is the file from before.
  EXPECT_EQ(patched(again.model(), {.tensors = weights_of(network)}), patched(other, {}));
}

TEST_F(OnnxExport, BatchNormByTheBatchMovesTheStatistics) {
  Network<double> network(read_model(write("net.onnx", classifier(3))),
                          {.batch_norm = BatchNormMode::batch});
  nn::Trainer<Network<double>> trainer(network, {.optimiser = "sgd rate=0.1"});
  trainer.step({.inputs = drawn(Shape{3, 1, 6, 6}, 1),
                .labels = Tensor<Index>(Shape{3}, {0, 1, 2}),
                .which = {0, 1, 2}});
  EXPECT_NE(weights_of(trainer.trained()).at("1.running_mean"),
            weights_of(network).at("1.running_mean"));
}

}  // namespace
}  // namespace fenestra::onnx

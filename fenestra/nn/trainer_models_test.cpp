// The ready models under the trainer: eager and compiled steps give the same bits.
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/models/make.hpp>
#include <fenestra/nn/trainer.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace fenestra::nn {
namespace {

std::vector<Tensor<float>> values_of(const Trainer<Layer<float>>& trainer) {
  std::vector<Tensor<float>> values;
  for_each_slot(trainer.model(), [&](const std::string&, const auto& slot) {
    values.push_back(slot.value.tensor());
  });
  return values;
}

class ReadyModels : public ::testing::TestWithParam<std::string> {};

TEST_P(ReadyModels, EagerAndCompiledStepsAreEqualToTheLastBit) {
  const ModelEntry& entry = model_entry(GetParam());
  Layer<float> model = make_model<float>(entry.name, {.width = 0.25});
  initialise(model, Key(1));
  Shape shape{2};
  for (int axis = 0; axis < entry.input.rank(); ++axis) {
    shape.push_back(axis == 0 ? entry.input[0] : std::min<Index>(entry.input[axis], 64));
  }
  Batch<float> batch;
  batch.inputs = Tensor<float>(shape);
  std::uint64_t i = 0;
  for (float& value : batch.inputs.mutable_values()) {
    value = static_cast<float>(Key(2).normal(i++));
  }
  batch.which = {0, 1};
  batch.labels = Tensor<Index>(Shape{0});
  TrainerOptions options{.loss = "mse", .optimiser = "adamw rate=0.001", .clip_norm = 1};
  Trainer compiled(model, options);
  options.compiled = false;
  Trainer eager(model, options);
  batch.targets = compiled.predict(batch.inputs).map([](float v) { return 0.5f - v; });
  for (int step = 0; step < 2; ++step) {
    EXPECT_EQ(compiled.step(batch).loss, eager.step(batch).loss) << "step " << step;
  }
  EXPECT_EQ(values_of(compiled), values_of(eager));
}

INSTANTIATE_TEST_SUITE_P(All,
                         ReadyModels,
                         ::testing::ValuesIn(model_names()),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace fenestra::nn

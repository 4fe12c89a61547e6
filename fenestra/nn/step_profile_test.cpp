// Where a step's time and memory go: by layers, of programs and of eager runs.
#include <fenestra/graph/report.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/layers.hpp>
#include <fenestra/nn/step_profile.hpp>
#include <fenestra/nn/trainer_test.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace fenestra::nn {
namespace {

Layer<float> small_model() {
  Sequential net;
  net.add("conv", Conv(1, 4, {.kernel = 3, .padding = 1}));
  net.add("norm", BatchNorm(4));
  net.add("relu", Relu());
  net.add("flatten", Flatten());
  net.add("head", Linear(4 * kTestSide * kTestSide, kTestClasses));
  Layer<float> model = net;
  initialise(model, Key(1));
  return model;
}

constexpr std::size_t kParameters = 4 * 9 + 4 + 8 + kTestClasses * (4 * kTestSide * kTestSide + 1);

std::vector<std::string> names_of(const StepProfile& profile) {
  std::vector<std::string> names;
  for (const PartTime& part : profile.parts) {
    names.push_back(part.name);
  }
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const PartTime& part(const StepProfile& profile, const std::string& name) {
  return *std::find_if(profile.parts.begin(), profile.parts.end(), [&](const PartTime& one) {
    return one.name == name;
  });
}

TEST(StepProfile, ACompiledStepIsKnownByLayersForwardAndBackward) {
  Trainer trainer(small_model());
  const Batch<float> batch = test_batch<float>(16, 2);
  trainer.step(batch);
  const StepProfile profile = trainer.profile(batch);
  EXPECT_EQ(profile.samples, 16);
  EXPECT_TRUE(profile.has_backward_parts);
  const std::vector<std::string> names = names_of(profile);
  for (const char* name : {"conv", "norm", "head", "loss"}) {
    ASSERT_TRUE(has(names, name)) << name;
    EXPECT_GT(part(profile, name).forward, 0) << name;
    EXPECT_GT(part(profile, name).backward, 0) << name;
  }
  // A relu may run in what is before it or after it.
  for (const std::string& name : names) {
    EXPECT_TRUE(name == "relu" || name == "conv" || name == "norm" || name == "head" ||
                name == "loss")
        << name;
  }
  double forward = 0;
  double backward = 0;
  for (const PartTime& one : profile.parts) {
    forward += one.forward;
    backward += one.backward;
  }
  EXPECT_DOUBLE_EQ(profile.forward, forward);
  EXPECT_DOUBLE_EQ(profile.backward, backward);
}

TEST(StepProfile, AnEagerStepIsKnownByLayersForwardAndAsAWholeBackward) {
  Trainer trainer(small_model(), {.compiled = false});
  const Batch<float> batch = test_batch<float>(16, 2);
  const StepProfile profile = trainer.profile(batch);
  EXPECT_FALSE(profile.has_backward_parts);
  EXPECT_EQ(names_of(profile),
            (std::vector<std::string>{
                "conv", "norm", "relu", "flatten", "head", "rest of the model", "loss"}));
  EXPECT_GT(profile.backward, 0);
  EXPECT_EQ(part(profile, "conv").backward, 0);
  EXPECT_FALSE(profile.memory.activations);
  EXPECT_FALSE(profile.memory.arena);
}

TEST(StepProfile, MemoryIsWhatTheNumbersTake) {
  Trainer trainer(small_model(), {.optimiser = "adam", .average = 0.9});
  const Batch<float> batch = test_batch<float>(16, 2);
  EXPECT_EQ(trainer.profile(batch).memory.optimiser, 0U) << "before the first step";
  trainer.step(batch);
  const StepMemory memory = trainer.profile(batch).memory;
  EXPECT_EQ(memory.parameters, kParameters * sizeof(float));
  EXPECT_EQ(memory.gradients, kParameters * sizeof(float));
  EXPECT_EQ(memory.optimiser, 2 * kParameters * sizeof(float));
  EXPECT_EQ(memory.average, kParameters * sizeof(float));
  EXPECT_EQ(memory.buffers, 8 * sizeof(float));
  EXPECT_EQ(memory.batch, 16 * (kTestSide * kTestSide * sizeof(float) + sizeof(Index)));
  ASSERT_TRUE(memory.activations && memory.arena);
  // The derivative of the norm needs what it was given, that of the head what the relu gave.
  constexpr std::size_t kMaps = 16 * 4 * kTestSide * kTestSide * sizeof(float);
  EXPECT_GE(*memory.activations, 2 * kMaps);
  EXPECT_LE(*memory.activations, *memory.arena);
}

TEST(StepProfile, NothingIsTrainedByIt) {
  for (const bool compiled : {true, false}) {
    Trainer measured(small_model(), {.compiled = compiled});
    Trainer plain(small_model(), {.compiled = compiled});
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const Batch<float> batch = test_batch<float>(8, seed);
      measured.profile(batch);
      const StepResult a = measured.step(batch);
      const StepResult b = plain.step(batch);
      EXPECT_EQ(a.loss, b.loss);
    }
    EXPECT_EQ(numbers_of(measured), numbers_of(plain)) << compiled;
  }
}

TEST(StepProfile, OfLeavesOneIsMeasured) {
  Trainer trainer(small_model(), {.leaf = 4});
  EXPECT_EQ(trainer.profile(test_batch<float>(16, 2)).samples, 4);
  EXPECT_EQ(trainer.profile(test_batch<float>(3, 2)).samples, 3);
}

TEST(StepProfile, WhatTheBackwardPassReadsIsKept) {
  graph::Report report;
  const auto step = [&](graph::NodeId node, bool is_backward, std::size_t bytes) -> auto& {
    graph::ReportStep& one = report.steps.emplace_back();
    one.node = node;
    one.part = "layer";
    one.is_backward = is_backward;
    one.result.bytes = bytes;
    one.seconds = 1;
    return one;
  };
  const auto read = [](graph::NodeId source, bool is_workspace = false) {
    graph::ReportRead one;
    one.source = source;
    one.is_workspace = is_workspace;
    return one;
  };
  step(1, false, 100).workspace.bytes = 7;
  step(2, false, 20).reads = {read(1)};
  step(3, false, 3).reads = {read(2)};
  step(4, true, 1000).reads = {read(2), read(0)};
  step(5, true, 1000).reads = {read(4), read(2), read(1, true)};
  const StepProfile profile = detail::profile_of(report);
  EXPECT_EQ(profile.memory.activations, 27U);
  EXPECT_EQ(profile.forward, 3);
  EXPECT_EQ(profile.backward, 2);
}

}  // namespace
}  // namespace fenestra::nn

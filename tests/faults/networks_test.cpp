// Networks while memory runs out: models of layers and of ONNX files, their files, steps of a
// trainer and its checkpoints. After a failure the file, or the trainer, is what it was.
#include <fenestra/fenestra.hpp>
#include <fenestra/io/onnx.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/layers.hpp>
#include <fenestra/nn/model_file.hpp>
#include <fenestra/nn/trainer_test.hpp>
#include <tests/faults/failing_memory.hpp>
#include <tests/faults/survival.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <utility>

namespace fenestra::faults {
namespace {

using T = Tensor<float>;
using V = Value<float>;
using nn::numbers_of;
using nn::test_batch;
using TestNet = nn::TestNet<float>;
using Trainer = nn::Trainer<TestNet>;

/// The next allocation to fail: all of the first ones, and of what takes many thousand ever fewer.
std::int64_t after(std::int64_t which) { return which + 1 + which / 16; }

T bytes_as_numbers(const std::string& bytes) {
  T tensor(Shape{static_cast<Index>(bytes.size())});
  std::transform(
      bytes.begin(), bytes.end(), tensor.mutable_data(), [](char c) { return float(c); });
  return tensor;
}

nn::Sequential layers(std::uint64_t seed) {
  nn::Sequential net{nn::Conv(1, 3, {.kernel = 3, .padding = 1}),
                     nn::BatchNorm(3),
                     nn::Relu(),
                     nn::MaxPool({.kernel = 2}),
                     nn::Flatten(),
                     nn::Linear(27, 4)};
  nn::initialise(net, Key(seed));
  return net;
}

template <class Net>
T run(const Net& net, const T& x) {
  auto pass = nn::Pass<float>::inference();
  return net(V(x), pass).tensor();
}

class Networks : public testing::TestWithParam<int> {
 protected:
  Networks() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fenestra_XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    set_threads(GetParam());
  }
  ~Networks() override {
    set_threads(1);
    std::filesystem::remove_all(folder);
  }
  std::ptrdiff_t count() const {
    return std::distance(std::filesystem::directory_iterator(folder), {});
  }
  /// `save` fails again and again, and the file is still what `before` wrote; then it succeeds.
  void expect_whole(const std::function<void()>& before,
                    const std::function<void()>& save,
                    const std::function<Tensors()>& load) const {
    before();
    const Tensors old = load();
    for (std::int64_t which = 1;; which = after(which)) {
      try {
        const FailingMemory memory(which, Failing::on);
        save();
        break;
      } catch (const std::bad_alloc&) {
      } catch (const Error&) {
      }
      ASSERT_EQ(count(), 1) << "allocation " << which;
      ASSERT_TRUE(same_bits(load(), old)) << "allocation " << which;
    }
    EXPECT_FALSE(same_bits(load(), old));
    EXPECT_EQ(count(), 1);
  }

  std::filesystem::path folder;
  const T x = test_batch<float>(2, 1).inputs;
};

TEST_P(Networks, OfLayersAndTheirFilesSurvive) {
  const std::filesystem::path path = folder / "a_model_with_a_long_name.safetensors";
  const nn::Sequential first = layers(1);
  const nn::Sequential second = layers(2);
  const auto load = [&] { return Tensors{run(nn::load_model<float>(path).model, x)}; };
  const auto save = [&](const nn::Sequential& net) {
    nn::save_model(path, net, {.classes = {"a"}});
  };
  expect_whole([&] { save(first); }, [&] { save(second); }, load);
  expect_survival("load_model", load);
  expect_survival("save_model", [&] {
    save(second);
    return Tensors{};
  });
  expect_survival("load_weights", [&] {
    nn::Sequential net = layers(3);
    nn::load_weights(path, net);
    return Tensors{run(net, x)};
  });
  // All numbers are read, or none.
  nn::Sequential net = first;
  const T y = run(net, x);
  for (std::int64_t which = 1;; which = after(which)) {
    try {
      const FailingMemory memory(which, Failing::on);
      nn::load_weights(path, net);
      break;
    } catch (const std::bad_alloc&) {
    } catch (const Error&) {
    }
    ASSERT_TRUE(same_bits({run(net, x)}, {y})) << "allocation " << which;
  }
  EXPECT_TRUE(same_bits({run(net, x)}, {run(second, x)}));
}

TEST_P(Networks, OfOnnxFilesSurvive) {
  const std::string bytes = onnx::exported(layers(1), Shape{1, 6, 6});
  const auto read = [&] { return onnx::read_model(std::as_bytes(std::span(bytes)), "in memory"); };
  expect_survival("export", [&] {
    return Tensors{bytes_as_numbers(onnx::exported(layers(1), Shape{1, 6, 6}))};
  });
  expect_survival("read and run", [&] { return Tensors{onnx::Network<float>(read())(x)}; });
  const onnx::Network<float> network(read());
  expect_survival("run", [&] { return Tensors{network(x)}; });
  expect_survival("check", [&] {
    return Tensors{
        T(Shape{static_cast<Index>(network.check({{"input", Shape{2, 2, 6, 6}}}).size())})};
  });
  expect_survival("gradient", [&] {
    return Tensors{grad([&](const auto& v) { return sum(network(v)); }, V(x)).tensor()};
  });
  expect_survival("patch", [&] {
    const onnx::Changes changes{.tensors = {{"0.bias", T(Shape{3}, 2.0f)}},
                                .metadata = {{"a", "b"}}};
    return Tensors{bytes_as_numbers(onnx::patched(network.model(), changes))};
  });
  expect_survival("another head", [&] {
    return Tensors{onnx::Network<float>(onnx::with_classes(network.model(), 7, 1))(x)};
  });
}

TEST_P(Networks, AreWholeWhereSavingOnnxFails) {
  const std::filesystem::path path = folder / "a_model_with_a_long_name.onnx";
  onnx::export_model(path, layers(1), Shape{1, 6, 6});
  onnx::Network<float> network = onnx::load<float>(path);
  network.find_weight("5.weight")->value() = T(Shape{4, 27}, 0.5f);
  const auto load = [&] { return Tensors{onnx::load<float>(path)(x)}; };
  expect_whole(
      [&] {
        onnx::export_model(path, layers(1), Shape{1, 6, 6});
      },
      [&] { onnx::save(path, network); },
      load);
  expect_survival("load", load);
  expect_survival("save", [&] {
    onnx::save(path, network);
    return Tensors{};
  });
}

constexpr bool kBoth[] = {true, false};

nn::TrainerOptions options(bool compiled) {
  return {.optimiser = "adamw rate=0.01",
          .clip_norm = 1,
          .average = 0.9,
          .seed = 5,
          .compiled = compiled};
}

TEST_P(Networks, StepsOfATrainerSurvive) {
  const nn::Batch<float> batch = test_batch<float>(3, 1);
  for (const bool compiled : kBoth) {
    expect_survival(compiled ? "compiled" : "eager", [&] {
      Trainer trainer(TestNet::make(1), options(compiled));
      trainer.step(batch);
      return numbers_of(trainer);
    });
  }
}

TEST_P(Networks, AreTrainedByWholeStepsOrNotAtAll) {
  const nn::Batch<float> batch = test_batch<float>(3, 1);
  for (const bool compiled : kBoth) {
    Trainer reference(TestNet::make(1), options(compiled));
    Trainer trainer(TestNet::make(1), options(compiled));
    for (Index step = 0; step < 3; ++step) {
      const Tensors before = numbers_of(trainer);
      for (std::int64_t which = 1;; which = after(which)) {
        release_memory();
        try {
          const FailingMemory memory(which, Failing::on);
          trainer.step(batch);
          break;
        } catch (const std::bad_alloc&) {
        }
        ASSERT_EQ(trainer.steps(), step) << "allocation " << which;
        ASSERT_TRUE(same_bits(numbers_of(trainer), before)) << "allocation " << which;
      }
      reference.step(batch);
      ASSERT_TRUE(same_bits(numbers_of(trainer), numbers_of(reference))) << "step " << step;
    }
    EXPECT_TRUE(same_bits({trainer.predict(x)}, {reference.predict(x)}));
  }
}

TEST_P(Networks, HaveAWholeCheckpointWhereSavingOrResumingFails) {
  const std::filesystem::path path = folder / "a_checkpoint_with_a_long_name.safetensors";
  Trainer trainer(TestNet::make(1), options(false));
  trainer.step(test_batch<float>(3, 1));
  trainer.save(path);
  const auto resumed = [&] {
    Trainer other(TestNet::make(2));
    other.resume(path);
    return numbers_of(other);
  };
  expect_survival("resume", resumed);
  const Tensors first = numbers_of(trainer);
  trainer.step(test_batch<float>(3, 2));
  const Tensors second = numbers_of(trainer);
  ASSERT_FALSE(same_bits(first, second));
  for (std::int64_t which = 1;; which = after(which)) {
    try {
      const FailingMemory memory(which, Failing::on);
      trainer.save(path);
      break;
    } catch (const std::bad_alloc&) {
    } catch (const Error&) {
    }
    // The one that was there may have its new name already.
    ASSERT_LE(count(), 2) << "allocation " << which;
    ASSERT_TRUE(same_bits(resumed(), first)) << "allocation " << which;
  }
  EXPECT_TRUE(same_bits(resumed(), second));
  EXPECT_EQ(count(), 2);
  // No memory is no damage: the one before is not taken instead.
  expect_survival("resume where there are two", resumed);
  // What cannot be resumed goes on as it was.
  Trainer other(TestNet::make(3));
  const Tensors before = numbers_of(other);
  for (std::int64_t which = 1;; which = after(which)) {
    try {
      const FailingMemory memory(which, Failing::on);
      other.resume(path);
      break;
    } catch (const std::bad_alloc&) {
    } catch (const Error&) {
    }
    ASSERT_EQ(other.steps(), 0) << "allocation " << which;
    ASSERT_TRUE(same_bits(numbers_of(other), before)) << "allocation " << which;
  }
  EXPECT_TRUE(same_bits(numbers_of(other), second));
}

INSTANTIATE_TEST_SUITE_P(On, Networks, testing::Values(1, 3), [](const auto& one) {
  return std::to_string(one.param) + (one.param == 1 ? "Thread" : "Threads");
});

}  // namespace
}  // namespace fenestra::faults

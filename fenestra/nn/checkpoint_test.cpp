// Checkpoints: runs that are resumed, killed at random moments, or given damaged files end as those
// that were not.
#include <fenestra/io/safetensors.hpp>
#include <fenestra/nn/trainer_test.hpp>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace fenestra::nn {
namespace {

namespace fs = std::filesystem;

template <class F>
ErrorCode code_of(F&& f, std::string* text = nullptr) {
  try {
    f();
  } catch (const Error& error) {
    if (text != nullptr) {
      *text = error.what();
    }
    return error.code();
  }
  return ErrorCode::none;
}

/// A folder of the test's own, removed with it.
class Checkpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "fenestra-checkpoint-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path path(const char* name = "run.safetensors") const { return folder_ / name; }
  fs::path previous() const { return path("run.safetensors.previous"); }

 private:
  fs::path folder_;
};

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

const TrainerOptions kOptions{.loss = "cross-entropy smoothing=0.05",
                              .optimiser = "adamw rate=0.01",
                              .schedule = "cosine warmup=2",
                              .clip_norm = 1,
                              .average = 0.9,
                              .seed = 5};

template <class T>
Loader<T> new_loader(Index prefetch = 0) {
  return Loader<T>(test_dataset(20, 2), {.batch = 8, .seed = 3, .prefetch = prefetch});
}
constexpr Index kEpochs = 4;  // of 3 steps

template <class T>
std::vector<Tensor<T>> unbroken(const TrainerOptions& options) {
  Trainer trainer(TestNet<T>::make(1), options);
  Loader<T> loader = new_loader<T>();
  trainer.fit(loader, kEpochs);
  std::vector<Tensor<T>> values = numbers_of(trainer);
  const Trainer deployed(trainer.trained());
  for (Tensor<T>& value : numbers_of(deployed)) {
    values.push_back(value);
  }
  return values;
}

template <class T>
std::vector<Tensor<T>> all_numbers(const Trainer<TestNet<T>>& trainer) {
  std::vector<Tensor<T>> values = numbers_of(trainer);
  for (Tensor<T>& value : numbers_of(Trainer(trainer.trained()))) {
    values.push_back(value);
  }
  return values;
}

// --- Resuming ----------------------------------------------------------------------------------

TEST_F(Checkpoint, ARunBrokenAfterAnyStepEndsWithTheSameBits) {
  for (const std::string optimiser : {"adamw rate=0.01",
                                      "sgd rate=0.1 momentum=0.9",
                                      "rmsprop momentum=0.5 centred=1",
                                      "lion",
                                      "lamb"}) {
    TrainerOptions options = kOptions;
    options.optimiser = optimiser;
    const auto expected = unbroken<float>(options);
    const bool every = optimiser.starts_with("adamw");
    for (Index at = 0; at < kEpochs * 3; at += every ? 1 : 5) {
      Loader<float> loader = new_loader<float>();
      {
        Trainer first(TestNet<float>::make(1), options);
        std::atomic<bool> stop = false;
        first.fit(loader,
                  kEpochs,
                  {.checkpoint = path(), .stop = &stop, .on_step = [&](const StepResult& step) {
                     stop = step.step == at;
                   }});
        ASSERT_EQ(first.steps(), at + 1);
      }
      // Made otherwise: the file decides.
      Trainer second(TestNet<float>::make(77), {.optimiser = "sgd", .compiled = at % 2 == 0});
      Loader<float> again = new_loader<float>(2);
      EXPECT_EQ(second.resume(path()), path());
      EXPECT_EQ(second.steps(), at + 1);
      second.fit(again, kEpochs);
      EXPECT_EQ(all_numbers(second), expected) << optimiser << ", broken after step " << at;
    }
  }
}

TEST_F(Checkpoint, KeepsWhatTheCallerSaysAndTheSaveBefore) {
  Trainer trainer(TestNet<double>::make(1), {.average = 0.5});
  trainer.metadata()["fenestra.classes"] = "[\"a\"]";
  trainer.save(path());
  EXPECT_FALSE(fs::exists(previous()));
  const std::string first = bytes_of(path());
  trainer.step(test_batch<double>(4, 1));
  trainer.set_cursor({2, 3});
  trainer.save(path());
  EXPECT_EQ(bytes_of(previous()), first);
  Trainer other(TestNet<double>::make(2));
  other.resume(path());
  EXPECT_EQ(other.cursor(), (Cursor{2, 3}));
  EXPECT_EQ(other.metadata().at("fenestra.classes"), "[\"a\"]");
  EXPECT_EQ(all_numbers(other), all_numbers(trainer));
  // The same state is the same file.
  other.save(path("copy"));
  EXPECT_EQ(bytes_of(path("copy")), bytes_of(path()));
  EXPECT_EQ(std::distance(fs::directory_iterator(path().parent_path()), {}), 3);
}

TEST_F(Checkpoint, NoNameIsLeftOverAfterAProcessWasKilledBetweenTwo) {
  // Killed when the old file was kept and the new one not yet written: two names of one file, and
  // renaming a third to one of them does nothing.
  const Trainer trainer(TestNet<float>::make(1));
  trainer.save(path());
  fs::create_hard_link(path(), previous());
  trainer.save(path());
  EXPECT_TRUE(fs::exists(previous()));
  EXPECT_EQ(std::distance(fs::directory_iterator(path().parent_path()), {}), 2);
}

TEST_F(Checkpoint, EveryTensorHasAName) {
  Trainer trainer(TestNet<float>::make(1), {.average = 0.5});
  trainer.step(test_batch<float>(4, 1));
  trainer.save(path());
  const io::SafetensorsReader file(path());
  for (const char* name : {"conv",
                           "norm.gamma",
                           "norm.mean",
                           "optimiser.steps",
                           "optimiser.mean.norm.gamma",
                           "optimiser.square.weight",
                           "optimiser.average.bias"}) {
    EXPECT_NE(file.find(name), nullptr) << name;
  }
  EXPECT_EQ(file.find("optimiser.mean.norm.mean"), nullptr);
  EXPECT_EQ(file.metadata().at("fenestra.training.step"), "1");
}

// --- Killed ------------------------------------------------------------------------------------

constexpr Index kKilledEpochs = 12;

/// Trains on from the checkpoint, if there is one, and saves after every step. A process that ends
/// with 0 where it came to the end.
pid_t start_training(const fs::path& path) {
  const pid_t child = fork();
  if (child != 0) {
    return child;
  }
  try {
    TrainerOptions options = kOptions;
    options.compiled = false;  // a child lives too short a time to compile anything
    Trainer trainer(TestNet<float>::make(1), options);
    if (fs::exists(path)) {
      trainer.resume(path);
    }
    Loader<float> loader = new_loader<float>();
    trainer.fit(loader, kKilledEpochs, {.checkpoint = path, .checkpoint_every = 1});
    _exit(0);
  } catch (const std::exception&) {
    _exit(1);
  }
}

/// Whether a child came to its end by itself, and well.
bool ended_well(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(!WIFEXITED(status) || WEXITSTATUS(status) == 0);
  return WIFEXITED(status);
}

TEST_F(Checkpoint, ARunKilledAtRandomMomentsEndsWithTheSameBits) {
  Trainer whole(TestNet<float>::make(1), kOptions);
  Loader<float> loader = new_loader<float>();
  whole.fit(loader, kKilledEpochs);
  const auto expected = all_numbers(whole);
  const auto check_end = [&] {
    Trainer resumed(TestNet<float>::make(3));
    EXPECT_EQ(resumed.resume(path()), path());
    EXPECT_EQ(resumed.steps(), kKilledEpochs * 3);
    EXPECT_EQ(all_numbers(resumed), expected);
    fs::remove(path());
    fs::remove(previous());
  };
  // How long a run takes here and now; a child lives for a 25th of it at most.
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(ended_well(start_training(path())));
  const auto most = (std::chrono::steady_clock::now() - start) / 25;
  check_end();

  std::mt19937 random(20);
  int kills = 0;
  int interrupted = 0;  // killed between the first save of the run and its last
  while (kills < 200 && !HasFailure()) {
    const pid_t child = start_training(path());
    ASSERT_GE(child, 0);
    std::this_thread::sleep_for(most * std::uniform_real_distribution<double>(0, 1)(random));
    ::kill(child, SIGKILL);
    if (ended_well(child)) {
      check_end();
      continue;
    }
    ++kills;
    interrupted += fs::exists(path()) ? 1 : 0;
  }
  ASSERT_TRUE(ended_well(start_training(path())));
  check_end();
  EXPECT_GT(interrupted, 20);
}

// --- Damaged -----------------------------------------------------------------------------------

TEST_F(Checkpoint, DamagedFilesAreToldAndTheOneBeforeIsTaken) {
  Trainer trainer(TestNet<float>::make(1), kOptions);
  Loader<float> loader = new_loader<float>();
  trainer.fit(loader, 1, {.checkpoint = path(), .checkpoint_every = 1});
  const std::string good = bytes_of(path());
  const std::string before = bytes_of(previous());
  ASSERT_NE(good, before);

  std::mt19937 random(1);
  const auto at_random = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  std::vector<std::string> damaged{"", "x", good.substr(0, 8), std::string(good.size(), '\0')};
  for (int i = 0; i < 20; ++i) {
    damaged.push_back(good.substr(0, at_random(good.size())));
    std::string flipped = good;
    flipped[at_random(good.size())] ^= static_cast<char>(1 << at_random(8));
    damaged.push_back(flipped);
  }
  Trainer other(TestNet<float>::make(9));
  const auto untouched = numbers_of(other);
  for (const std::string& bytes : damaged) {
    write_bytes(path(), bytes);
    fs::remove(previous());
    std::string text;
    ASSERT_EQ(code_of([&] { other.resume(path()); }, &text), ErrorCode::bad_file);
    EXPECT_NE(text.find("run.safetensors"), std::string::npos);
    EXPECT_EQ(numbers_of(other), untouched);
    // A whole one is beside it: it is taken, and another save does not lose it.
    write_bytes(previous(), before);
    Trainer third(TestNet<float>::make(9));
    EXPECT_EQ(third.resume(path()), previous());
    EXPECT_EQ(third.steps(), trainer.steps());
    third.save(path());
    EXPECT_EQ(bytes_of(previous()), before);
    EXPECT_EQ(bytes_of(path()), before);
  }
  write_bytes(path(), "x");
  write_bytes(previous(), "y");
  std::string text;
  EXPECT_EQ(code_of([&] { other.resume(path()); }, &text), ErrorCode::bad_file);
  EXPECT_NE(text.find("run.safetensors.previous"), std::string::npos);
  EXPECT_EQ(bytes_of(previous()), "y");
}

TEST_F(Checkpoint, FilesOfOtherModelsAreRefusedWhole) {
  Trainer trainer(TestNet<float>::make(1));
  trainer.save(path());
  Trainer wider(TestNet<float>::make(1, 4));
  const auto before = numbers_of(wider);
  std::string text;
  EXPECT_EQ(code_of([&] { wider.resume(path()); }, &text), ErrorCode::shape_mismatch);
  EXPECT_NE(text.find("weight"), std::string::npos) << text;
  EXPECT_NE(text.find("(4, 144)"), std::string::npos) << text;
  EXPECT_NE(text.find("(3, 144)"), std::string::npos) << text;
  EXPECT_EQ(numbers_of(wider), before);
  Trainer other_type(TestNet<double>::make(1));
  EXPECT_EQ(code_of([&] { other_type.resume(path()); }), ErrorCode::shape_mismatch);
  // A model alone is no checkpoint.
  io::save_safetensors(path("model"), {{"conv", Tensor<float>(Shape{1})}});
  EXPECT_EQ(code_of([&] { trainer.resume(path("model")); }), ErrorCode::bad_file);
  EXPECT_EQ(code_of([&] { trainer.resume(path("nothing")); }), ErrorCode::bad_file);
  EXPECT_EQ(code_of([&] { trainer.save(path("no/such/folder")); }), ErrorCode::bad_file);
  EXPECT_EQ(code_of([&] { trainer.save(path(".")); }), ErrorCode::bad_file);
}

TEST_F(Checkpoint, ALossOfOnesOwnIsNotForgotten) {
  const LossFunction<float> loss = [](const Value<float>& y, const Target<float>& target) {
    return cross_entropy(y, *target.labels);
  };
  Trainer own(TestNet<float>::make(1), loss);
  own.save(path());
  Trainer named(TestNet<float>::make(1));
  EXPECT_EQ(code_of([&] { named.resume(path()); }), ErrorCode::bad_file);
  Trainer again(TestNet<float>::make(1), loss);
  again.resume(path());
}

}  // namespace
}  // namespace fenestra::nn

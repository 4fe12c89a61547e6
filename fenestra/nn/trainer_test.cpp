// The trainer: eager and compiled runs side by side, learning, loops, refusals. Checkpoints are in
// checkpoint_test.cpp.
#include <fenestra/base/parallel.hpp>
#include <fenestra/nn/trainer_test.hpp>
#include <fenestra/ops/reduce/reduce.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace fenestra::nn {
namespace {

template <class F>
ErrorCode code_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("fix: "), std::string::npos) << error.what();
    return error.code();
  }
  return ErrorCode::none;
}

// --- Eager and compiled ------------------------------------------------------------------------

template <class T>
void check_equal_runs(TrainerOptions options) {
  options.compiled = true;
  Trainer compiled(TestNet<T>::make(1), options);
  options.compiled = false;
  Trainer eager(TestNet<T>::make(1), options);
  Loader<T> loader(test_dataset(50, 2), {.batch = 16, .seed = 3, .prefetch = 0});
  int steps = 0;
  for (int epoch = 0; steps < 30; ++epoch) {
    while (const auto batch = loader.next()) {  // the last one of an epoch is of 2
      const StepResult a = compiled.step(*batch);
      const StepResult b = eager.step(*batch);
      EXPECT_EQ(a.loss, b.loss) << "step " << steps;
      EXPECT_EQ(a.correct, b.correct);
      EXPECT_EQ(a.labels, batch->size());
      EXPECT_EQ(a.gradient_norm, b.gradient_norm);
      EXPECT_EQ(a.traced, epoch == 0 && (steps == 0 || batch->size() == 2));
      EXPECT_FALSE(b.traced);
      ++steps;
    }
    EXPECT_EQ(numbers_of(compiled), numbers_of(eager)) << "after step " << steps;
  }
}

TEST(Trainer, EagerAndCompiledRunsAreEqualToTheLastBit) {
  check_equal_runs<float>({.optimiser = "adamw rate=0.01"});
  check_equal_runs<double>({.optimiser = "adamw rate=0.01"});
  check_equal_runs<float>({.loss = "cross-entropy smoothing=0.1",
                           .optimiser = "sgd rate=0.1 momentum=0.9 nesterov=1",
                           .schedule = "cosine warmup=5 steps=30",
                           .clip_norm = 0.5,
                           .clip_value = 0.2,
                           .average = 0.9,
                           .seed = 9});
  check_equal_runs<float>({.loss = "focal", .optimiser = "lamb rate=0.01"});
  check_equal_runs<float>({.loss = "dice", .optimiser = "lion rate=0.001"});
}

TEST(Trainer, ResultsDoNotDependOnThreads) {
  const int before = threads();
  const Batch<float> batch = test_batch<float>(16, 4);
  std::vector<std::vector<Tensor<float>>> runs;
  for (const int count : {1, 4}) {
    set_threads(count);
    Trainer trainer(TestNet<float>::make(1), {.optimiser = "adam rate=0.01", .clip_norm = 1});
    for (int i = 0; i < 5; ++i) {
      trainer.step(batch);
    }
    runs.push_back(numbers_of(trainer));
  }
  set_threads(before);
  EXPECT_EQ(runs[0], runs[1]);
}

TEST(Trainer, PredictsWithRunningStatisticsAndWithoutMasks) {
  Trainer trainer(TestNet<double>::make(1), {.optimiser = "adam rate=0.01"});
  const Batch<double> batch = test_batch<double>(8, 4);
  for (int i = 0; i < 3; ++i) {
    trainer.step(batch);
  }
  const Tensor<double> compiled = trainer.predict(batch.inputs);
  auto pass = Pass<double>::inference();
  const Tensor<double> eager = trainer.model()(Value<double>(batch.inputs), pass).tensor();
  ASSERT_EQ(compiled.shape(), eager.shape());
  for (Index i = 0; i < eager.size(); ++i) {
    // Folding the statistics into the weights rounds otherwise: a sum of 144 terms below 8.
    EXPECT_NEAR(compiled[i], eager[i], 144 * 8 * std::numeric_limits<double>::epsilon());
  }
  // Any number of samples, each as if alone.
  const Tensor<double> one = trainer.predict(test_batch<double>(1, 4).inputs);
  EXPECT_EQ(one.shape(), (Shape{1, kTestClasses}));
}

// --- Learning ----------------------------------------------------------------------------------

TEST(Trainer, OneBatchIsLearntByHeart) {
  for (const bool compiled : {true, false}) {
    TestNet<float> net = TestNet<float>::make(1);
    net.keep = 1;
    Trainer trainer(net, {.optimiser = "adam rate=0.05", .compiled = compiled});
    const Batch<float> batch = test_batch<float>(16, 4);
    double first = 0;
    StepResult last;
    for (int i = 0; i < 100; ++i) {
      last = trainer.step(batch);
      first = i == 0 ? last.loss : first;
    }
    EXPECT_GT(first, 0.5);
    EXPECT_LT(last.loss, 1e-3);
    EXPECT_EQ(last.correct, 16);
    EXPECT_EQ(trainer.steps(), 100);
  }
}

TEST(Trainer, RegressionAndYesOrNoAreTrainedToo) {
  Trainer trainer(TestNet<float>::make(1, 2), {.loss = "huber", .optimiser = "adam rate=0.02"});
  Batch<float> batch = test_batch<float>(16, 4);
  batch.labels = Tensor<Index>(Shape{0});
  batch.targets = test_normal<float>(Shape{16, 2}, Key(5), 1);
  const double first = trainer.step(batch).loss;
  StepResult last;
  for (int i = 0; i < 100; ++i) {
    last = trainer.step(batch);
  }
  EXPECT_LT(last.loss, first / 4);
  EXPECT_EQ(last.labels, 0);

  // One score for two classes: labels become numbers.
  TestNet<float> net = TestNet<float>::make(1, 1);
  net.keep = 1;
  Trainer yes_or_no(net, {.loss = "bce", .optimiser = "adam rate=0.05"});
  batch = test_batch<float>(16, 4);
  for (Index& label : batch.labels.mutable_values()) {
    label = label == 0 ? 0 : 1;
  }
  for (int i = 0; i < 100; ++i) {
    last = yes_or_no.step(batch);
  }
  EXPECT_EQ(last.correct, 16);
  EXPECT_EQ(last.labels, 16);
}

TEST(Trainer, ALossOfOnesOwnIsTaken) {
  const LossFunction<float> loss = [](const Value<float>& y, const Target<float>& target) {
    return Value<float>(scale(cross_entropy(y, *target.labels), 2));
  };
  Trainer own(TestNet<float>::make(1), loss);
  Trainer named(TestNet<float>::make(1));
  const Batch<float> batch = test_batch<float>(8, 4);
  EXPECT_EQ(own.step(batch).loss, 2 * named.step(batch).loss);
}

// --- The loop ----------------------------------------------------------------------------------

TEST(Trainer, FitLearnsAndTellsWhatItDoes) {
  Trainer trainer(TestNet<float>::make(1),
                  {.optimiser = "adam rate=0.01", .schedule = "one-cycle", .average = 0.9});
  Loader<float> loader(test_dataset(200, 2), {.batch = 32, .seed = 3});
  Loader<float> validation(test_dataset(100, 8), {.batch = 64, .shuffle = false});
  Index steps = 0;
  std::vector<EpochResult> epochs;
  const FitResult result =
      trainer.fit(loader,
                  5,
                  {.validation = &validation,
                   .on_step = [&](const StepResult& step) { EXPECT_EQ(step.step, steps++); },
                   .on_epoch = [&](const EpochResult& epoch) { epochs.push_back(epoch); }});
  EXPECT_EQ(result.end, FitEnd::finished);
  EXPECT_EQ(result.epochs, 5);
  EXPECT_EQ(steps, 5 * 7);
  ASSERT_EQ(epochs.size(), 5u);
  EXPECT_EQ(epochs[4].epoch, 4);
  EXPECT_EQ(epochs[4].samples, 200);
  EXPECT_LT(epochs[4].loss, epochs[0].loss);
  EXPECT_TRUE(epochs[0].is_best);
  ASSERT_TRUE(result.validation.has_value());
  EXPECT_EQ(result.validation->samples, 100);
  EXPECT_GT(result.validation->confusion->accuracy(), 0.9);
  EXPECT_EQ(trainer.evaluate(validation).confusion, result.validation->confusion);
  EXPECT_EQ(trainer.best_score(), result.best_score);
  // What is deployed has the averages: it says the same.
  const TestNet<float> deployed = trainer.trained();
  Trainer other(deployed);
  EXPECT_EQ(other.evaluate(validation).confusion, result.validation->confusion);
  EXPECT_NE(numbers_of(other), numbers_of(trainer));
  // Nothing is left to do.
  EXPECT_EQ(trainer.fit(loader, 5).epochs, 5);
  EXPECT_EQ(trainer.steps(), 35);
}

TEST(Trainer, FitStopsWhenToldAndGoesOnWhereItWas) {
  const TrainerOptions options{.optimiser = "adam rate=0.01", .schedule = "cosine"};
  Trainer unbroken(TestNet<float>::make(1), options);
  Loader<float> loader(test_dataset(64, 2), {.batch = 16, .seed = 3});
  unbroken.fit(loader, 3);

  Trainer trainer(TestNet<float>::make(1), options);
  std::atomic<bool> stop = false;
  const auto stop_at = [&](Index at) {
    return [&, at](const StepResult& step) { stop = step.step == at; };
  };
  EXPECT_EQ(trainer.fit(loader, 3, {.stop = &stop, .on_step = stop_at(5)}).end, FitEnd::stopped);
  EXPECT_EQ(trainer.steps(), 6);
  EXPECT_EQ(trainer.cursor(), (Cursor{1, 32}));
  EXPECT_EQ(trainer.fit(loader, 3, {.stop = &stop, .on_step = stop_at(7)}).end, FitEnd::stopped);
  stop = false;
  EXPECT_EQ(trainer.fit(loader, 3).end, FitEnd::finished);
  EXPECT_EQ(numbers_of(trainer), numbers_of(unbroken));
}

TEST(Trainer, AValidationStopsBetweenItsBatchesAndIsDoneAgain) {
  const TrainerOptions options{.optimiser = "adam rate=0.01", .schedule = "cosine"};
  Loader<float> loader(test_dataset(64, 2), {.batch = 16, .seed = 3});
  Loader<float> held_out(test_dataset(40, 4), {.batch = 8, .shuffle = false});
  Trainer unbroken(TestNet<float>::make(1), options);
  const FitResult whole = unbroken.fit(loader, 2, {.validation = &held_out});

  Trainer trainer(TestNet<float>::make(1), options);
  std::atomic<bool> stop = false;
  Index batches = 0;
  const FitResult broken = trainer.fit(loader,
                                       2,
                                       {.validation = &held_out,
                                        .stop = &stop,
                                        .on_epoch = [](const EpochResult&) { ADD_FAILURE(); },
                                        .on_validation_batch = [&] { stop = ++batches == 2; }});
  EXPECT_EQ(broken.end, FitEnd::stopped);
  EXPECT_EQ(broken.epochs, 0);
  EXPECT_EQ(batches, 2);
  EXPECT_EQ(trainer.cursor(), (Cursor{0, 64}));
  std::vector<Index> samples;
  const FitResult rest =
      trainer.fit(loader, 2, {.validation = &held_out, .on_epoch = [&](const EpochResult& epoch) {
                                samples.push_back(epoch.validation->samples);
                              }});
  EXPECT_EQ(samples, (std::vector<Index>{40, 40}));
  EXPECT_EQ(rest.validation->loss, whole.validation->loss);
  EXPECT_EQ(numbers_of(trainer), numbers_of(unbroken));

  batches = 0;
  EXPECT_EQ(trainer.evaluate(held_out, [&] { return ++batches < 3; }).samples, 24);
  EXPECT_EQ(trainer.evaluate(held_out).samples, 40);
}

TEST(Trainer, FitGoesOnAfterAnEpoch) {
  const TrainerOptions options{.optimiser = "adam rate=0.01"};
  Loader<float> loader(test_dataset(50, 2), {.batch = 16, .seed = 3});
  Trainer unbroken(TestNet<float>::make(1), options);
  unbroken.fit(loader, 3);
  Trainer trainer(TestNet<float>::make(1), options);
  trainer.fit(loader, 1);
  EXPECT_EQ(trainer.cursor(), (Cursor{1, 0}));
  trainer.fit(loader, 3);
  EXPECT_EQ(numbers_of(trainer), numbers_of(unbroken));
}

/// Adds up all that it is given.
struct Remembering {
  Parameter<double> weight{Tensor<double>(Shape{kTestClasses, kTestSide* kTestSide})};
  Buffer<double> total{Tensor<double>(Shape{})};

  Value<double> operator()(const Value<double>& x, Pass<double>& pass) const {
    pass.update(total, add(pass.current(total), sum(x)));
    return linear(reshape(x, Shape{x.shape()[0], -1}), weight.value, Tensor<double>(Shape{3}));
  }
};

TEST(Trainer, BuffersBecomeWhatStepsFound) {
  const Batch<double> batch = test_batch<double>(5, 2);
  double total = 0;
  for (Index i = 0; i < batch.inputs.size(); ++i) {
    total += batch.inputs[i];
  }
  // Any order of the sums of two steps: n roundings of at most the sum of magnitudes each.
  double magnitudes = 0;
  for (Index i = 0; i < batch.inputs.size(); ++i) {
    magnitudes += 2 * std::fabs(batch.inputs[i]);
  }
  const double bound = 2 * static_cast<double>(batch.inputs.size()) * 0x1p-53 * magnitudes;
  for (const bool compiled : {true, false}) {
    Trainer trainer(Remembering(), {.compiled = compiled});
    trainer.step(batch);
    trainer.step(batch);
    EXPECT_NEAR(trainer.model().total.value.tensor()[0], 2 * total, bound) << compiled;
  }
}

TEST(Trainer, FitHasPatienceAndSeesDivergence) {
  Loader<float> loader(test_dataset(32, 2), {.batch = 16, .seed = 3});
  Trainer still(TestNet<float>::make(1), {.optimiser = "sgd rate=0"});
  Loader<float> validation(test_dataset(10, 8), {.batch = 10});
  // Statistics still move, so that the score may: the patience is short.
  const FitResult result = still.fit(loader, 200, {.validation = &validation, .patience = 2});
  EXPECT_EQ(result.end, FitEnd::patience);
  EXPECT_LT(result.epochs, 200);

  Trainer wild(TestNet<float>::make(1), {.loss = "mse", .optimiser = "sgd rate=1e30"});
  Tensor<float> x = test_normal<float>(Shape{32, 1, kTestSide, kTestSide}, Key(1), 1);
  Loader<float> numbers(target_dataset(x, test_normal<float>(Shape{32, 3}, Key(2), 1)),
                        {.batch = 16});
  EXPECT_EQ(wild.fit(numbers, 50).end, FitEnd::diverged);
}

// --- Refusals ----------------------------------------------------------------------------------

TEST(Trainer, AStepThatThrowsChangesNothing) {
  for (const bool compiled : {true, false}) {
    Trainer trainer(TestNet<float>::make(1), {.average = 0.9, .compiled = compiled});
    const Batch<float> good = test_batch<float>(8, 4);
    trainer.step(good);
    const auto before = numbers_of(trainer);
    Batch<float> bad = good;
    bad.labels.mutable_data()[3] = kTestClasses;
    EXPECT_EQ(code_of([&] { trainer.step(bad); }), ErrorCode::invalid_index);
    bad = good;
    bad.labels = Tensor<Index>(Shape{7});
    EXPECT_NE(code_of([&] { trainer.step(bad); }), ErrorCode::none);
    bad.labels = Tensor<Index>(Shape{0});
    EXPECT_EQ(code_of([&] { trainer.step(bad); }), ErrorCode::dtype_mismatch);
    bad = good;
    bad.inputs = Tensor<float>(Shape{8, 2, kTestSide, kTestSide});
    EXPECT_NE(code_of([&] { trainer.step(bad); }), ErrorCode::none);
    EXPECT_EQ(numbers_of(trainer), before);
    EXPECT_EQ(trainer.steps(), 1);
    trainer.step(good);
  }
}

TEST(Trainer, OptionsThatMakeNoSenseAreRefused) {
  const auto with = [](const TrainerOptions& options) {
    return [=] { Trainer trainer(TestNet<float>::make(1), options); };
  };
  EXPECT_EQ(code_of(with({.loss = "entropy"})), ErrorCode::unknown_choice);
  EXPECT_EQ(code_of(with({.optimiser = "adam speed=3"})), ErrorCode::unknown_choice);
  EXPECT_EQ(code_of(with({.schedule = "cosine warmup=-1"})), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(with({.clip_norm = -1})), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(with({.average = 1})), ErrorCode::invalid_option);
  // A schedule that needs to know how long the run is.
  Trainer trainer(TestNet<float>::make(1), {.schedule = "cosine"});
  EXPECT_EQ(code_of([&] { trainer.step(test_batch<float>(4, 1)); }), ErrorCode::invalid_option);
  const LossFunction<float> not_one = [](const Value<float>& y, const Target<float>&) { return y; };
  Trainer many(TestNet<float>::make(1), not_one);
  EXPECT_EQ(code_of([&] { many.step(test_batch<float>(4, 1)); }), ErrorCode::shape_mismatch);
}

}  // namespace
}  // namespace fenestra::nn

// Training in leaves: the bits are those of one rank, whatever the number of ranks and threads.
#include <fenestra/base/parallel.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/leaf_step.hpp>
#include <fenestra/nn/models/make.hpp>
#include <fenestra/nn/trainer_test.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>

namespace fenestra::nn {
namespace {

using ranks::CommunicatorPtr;

const TrainerOptions kHard{.loss = "cross-entropy smoothing=0.1",
                           .optimiser = "adamw rate=0.01",
                           .schedule = "cosine",
                           .clip_norm = 0.5,
                           .average = 0.9,
                           .seed = 9,
                           .leaf = 4};

/// All that a run leaves behind: weights and statistics, averages, losses.
template <class T>
struct Trace {
  std::vector<Tensor<T>> numbers;
  std::vector<double> losses;
  std::vector<Index> correct;
  double score = 0;

  friend bool operator==(const Trace&, const Trace&) = default;
};

template <class Model>
using TraceOf = Trace<typename Trainer<Model>::T>;

template <class Model>
TraceOf<Model> run(const Model& model,
                   const DatasetPtr& data,
                   Index batch,
                   TrainerOptions options,
                   const CommunicatorPtr& communicator) {
  using T = typename Trainer<Model>::T;
  options.communicator = communicator;
  Trainer trainer(model, options);
  Loader<T> loader(data, {.batch = batch, .seed = 3, .prefetch = 0});
  Loader<T> held_out(data, {.batch = 16, .shuffle = false, .prefetch = 0});
  TraceOf<Model> trace;
  const FitResult fit =
      trainer.fit(loader, 2, {.validation = &held_out, .on_step = [&](const StepResult& step) {
                                trace.losses.push_back(step.loss);
                                trace.losses.push_back(step.gradient_norm);
                                trace.correct.push_back(step.correct);
                              }});
  trace.numbers = numbers_of(trainer);
  const Model averaged = trainer.trained();
  const auto more = numbers_of(Trainer(averaged));
  trace.numbers.insert(trace.numbers.end(), more.begin(), more.end());
  trace.score = fit.best_score;
  return trace;
}

template <class Model>
std::vector<TraceOf<Model>> run_on(int ranks,
                                   const Model& model,
                                   const DatasetPtr& data,
                                   Index batch,
                                   const TrainerOptions& options) {
  std::vector<TraceOf<Model>> traces(static_cast<std::size_t>(ranks));
  ranks::run_ranks(ranks, [&](const CommunicatorPtr& communicator) {
    traces[static_cast<std::size_t>(communicator->rank())] =
        run(model, data, batch, options, communicator);
  });
  return traces;
}

template <class Model>
void check_equal(const Model& model,
                 const DatasetPtr& data,
                 Index batch,
                 const TrainerOptions& options,
                 const std::vector<int>& counts) {
  const TraceOf<Model> alone = run(model, data, batch, options, nullptr);
  ASSERT_FALSE(alone.losses.empty());
  for (const int ranks : counts) {
    const auto traces = run_on(ranks, model, data, batch, options);
    for (std::size_t rank = 0; rank < traces.size(); ++rank) {
      EXPECT_TRUE(traces[rank] == alone) << "rank " << rank << " of " << ranks;
    }
  }
}

TEST(Leaves, AnyNumberOfRanksHasTheBitsOfOne) {
  // Batches of 26 samples, of 7 leaves, the last one of 2; and at the end one of 10.
  check_equal(TestNet<float>::make(1), test_dataset(62, 2), 26, kHard, {1, 2, 3, 4, 5, 6, 7, 8});
  check_equal(TestNet<double>::make(1), test_dataset(62, 2), 26, kHard, {3});
}

/// A network whose gradients no cache holds, so that leaves are computed side by side.
constexpr Index kManyOutputs = 1000;

TEST(Leaves, AnyNumberOfRanksHasTheBitsOfOneWithManyWeights) {
  // One rank computes 4 leaves, 2 and the last one; seven ranks one each.
  check_equal(TestNet<float>::make(1, kManyOutputs), test_dataset(62, 2), 26, kHard, {2, 3, 7});
  check_equal(TestNet<double>::make(1, kManyOutputs), test_dataset(62, 2), 26, kHard, {3});
  TrainerOptions eager = kHard;
  eager.compiled = false;
  EXPECT_TRUE(run(TestNet<float>::make(1, kManyOutputs), test_dataset(62, 2), 26, kHard, nullptr) ==
              run(TestNet<float>::make(1, kManyOutputs), test_dataset(62, 2), 26, eager, nullptr));
}

TEST(Leaves, EagerStepsHaveTheSameBits) {
  TrainerOptions options = kHard;
  options.compiled = false;
  const auto compiled = run(TestNet<float>::make(1), test_dataset(62, 2), 26, kHard, nullptr);
  const auto eager = run_on(3, TestNet<float>::make(1), test_dataset(62, 2), 26, options);
  EXPECT_TRUE(eager[2] == compiled);
}

TEST(Leaves, ThreadsDoNotMatter) {
  const int before = threads();
  std::vector<Trace<float>> traces;
  for (const int count : {1, 2}) {
    set_threads(count);
    for (const int ranks : {1, 3}) {
      traces.push_back(run_on(ranks, TestNet<float>::make(1), test_dataset(62, 2), 26, kHard)[0]);
    }
  }
  set_threads(before);
  for (const Trace<float>& trace : traces) {
    EXPECT_TRUE(trace == traces[0]);
  }
}

TEST(Leaves, ReadyNetworksHaveTheBitsOfOne) {
  for (const auto& [name, width] :
       {std::pair{"lenet", 0.25}, {"small_resnet", 0.25}, {"small_resnet", 1.0}}) {
    Layer<float> model = make_model<float>(name, {.classes = 3, .channels = 1, .width = width});
    initialise(model, Key(4));
    const Tensor<float> x = test_normal<float>(Shape{11, 1, 28, 28}, Key(5), 1);
    Tensor<Index> labels(Shape{11});
    for (Index i = 0; i < 11; ++i) {
      labels.mutable_data()[i] = i % 3;
    }
    check_equal(model, array_dataset(x, labels), 8, kHard, {2, 3});
  }
}

/// A step of a model, compiled for leaves of that many samples.
template <class Model>
detail::StepProgram<float> program_of(Model& model, const Batch<float>& leaf) {
  const std::vector<Slot<float>> all = slots<float>(model);
  const TrainerCore<float>::Parts parts{
      .slots = [&] { return all; },
      .forward = [&](const Value<float>& x, Pass<float>& pass) { return model(x, pass); }};
  const Loss<float> loss = Loss<float>::make("cross-entropy");
  return {parts,
          LossFunction<float>(loss),
          std::span<const Slot<float>>(all),
          detail::BatchView<float>{.inputs = &leaf.inputs, .labels = &leaf.labels}};
}

/// Weights that are used twice: their gradient is written and then added to.
struct TiedNet {
  Parameter<float> first;
  Parameter<float> tied;

  static TiedNet make() {
    return {{test_normal<float>(Shape{kTestSide * kTestSide, 400}, Key(1), 0.1)},
            {test_normal<float>(Shape{400, 400}, Key(2), 0.1)}};
  }
  Value<float> operator()(const Value<float>& x, Pass<float>&) const {
    const Value<float> h = matmul(reshape(x, Shape{x.shape()[0], -1}), first.value);
    return matmul(relu(matmul(relu(h), tied.value)), tied.value);
  }
};

/// Leaves of `first`'s size side by side, beside one after the other. Says whether a part of the
/// latter completed several gradients.
template <class Model>
bool expect_the_same_side_by_side(Model net, const Batch<float>& all, const Batch<float>& first) {
  constexpr Index kLeaves = 4;
  const Index leaf = first.inputs.shape()[0];
  detail::StepProgram<float> program = program_of(net, first);
  EXPECT_EQ(program.joint_batches(kLeaves), kLeaves);
  EXPECT_EQ(program.joint_batches(7), 4);
  const std::vector<Slot<float>> slots = nn::slots<float>(net);
  const std::span<const Slot<float>> seen(slots);
  const detail::GradientLayout layout = detail::gradient_layout(seen);
  std::vector<Key> keys;
  for (Index i = 0; i < kLeaves; ++i) {
    keys.push_back(Key(5).fold(static_cast<std::uint64_t>(i)));
  }
  // Every gradient of every leaf in memory of its own, and one that all of them pass.
  const auto elements = static_cast<std::size_t>(layout.elements);
  std::vector<Tensor<float>> expected;
  std::vector<Tensor<float>> found(kLeaves, Tensor<float>(Shape{layout.elements}));
  std::vector<Tensor<float>> results;
  Tensor<float> passed(Shape{layout.elements});
  Tensor<float> each(Shape{layout.elements});
  std::size_t most_at_once = 0;
  for (Index i = 0; i < kLeaves; ++i) {
    const auto cells = static_cast<std::size_t>(first.inputs.size());
    const Tensor<float> inputs(
        first.inputs.shape(),
        all.inputs.values().subspan(static_cast<std::size_t>(i) * cells, cells));
    const Tensor<Index> labels(Shape{leaf},
                               all.labels.values().subspan(static_cast<std::size_t>(i * leaf),
                                                           static_cast<std::size_t>(leaf)));
    detail::GradientRoom<float> room{.found = [&](std::span<const std::size_t> gradients) {
      most_at_once = std::max(most_at_once, gradients.size());
    }};
    for (const ranks::ElementRange& range : layout.gradients) {
      room.memory.push_back(each.mutable_data() + range.begin);
    }
    const detail::StepFindings<float>& one = program.run(
        seen, {.inputs = &inputs, .labels = &labels}, keys[static_cast<std::size_t>(i)], room);
    expected.emplace_back(Shape{layout.elements}, std::span<const float>(each.data(), elements));
    results.insert(results.end(), one.results.begin(), one.results.end());
  }
  std::vector<detail::GradientRoom<float>> rooms(kLeaves);
  std::vector<std::size_t> announced(kLeaves);
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    rooms[i].memory.assign(layout.gradients.size(), passed.mutable_data());
    rooms[i].found = [&, i](std::span<const std::size_t> gradients) {
      announced[i] += gradients.size();
      for (const std::size_t gradient : gradients) {
        std::copy_n(passed.data(),
                    layout.sizes[gradient],
                    found[i].mutable_data() + layout.gradients[gradient].begin);
      }
    };
  }
  std::vector<Tensor<float>> joint;
  for (const detail::StepFindings<float>& one :
       program.run_joint(seen, {.inputs = &all.inputs, .labels = &all.labels}, keys, rooms)) {
    joint.insert(joint.end(), one.results.begin(), one.results.end());
  }
  EXPECT_TRUE(joint == results) << leaf;
  EXPECT_TRUE(found == expected) << leaf;
  EXPECT_EQ(announced, std::vector<std::size_t>(kLeaves, layout.gradients.size())) << leaf;
  return most_at_once > 1;
}

TEST(Leaves, SideBySideTheyHaveTheBitsOfOneAfterTheOther) {
  // With masks, statistics, and sizes that fill cache lines and that do not.
  for (const Index leaf : {1, 3, 4, 16}) {
    expect_the_same_side_by_side(TestNet<float>::make(1, kManyOutputs),
                                 test_batch<float>(4 * leaf, 3),
                                 test_batch<float>(leaf, 3));
  }
}

/// A batch norm on series that no cache holds, which runs for a few channels after another, and
/// numbers per channel in front of it, whose gradients are computed in the same run.
struct ChannelNet {
  Parameter<float> conv;
  Parameter<float> first;
  Parameter<float> second;
  TestNorm<float> norm;
  Parameter<float> weight;
  bool ends_with_sums = true;  ///< the run, or with the gradient of a rectifier

  static constexpr Index kCells = 1300;
  static constexpr Index kOutputs = 32;

  static ChannelNet make(bool ends_with_sums) {
    return {.conv = {test_normal<float>(Shape{4, 1, 3}, Key(1), 0.5)},
            .first = {test_normal<float>(Shape{1, 4, 1}, Key(2), 0.5)},
            .second = {test_normal<float>(Shape{1, 4, 1}, Key(3), 0.5)},
            .norm = {},
            .weight = {test_normal<float>(Shape{kOutputs, 4 * kCells}, Key(4), 0.05)},
            .ends_with_sums = ends_with_sums};
  }
  static Batch<float> batch(Index samples) {
    Batch<float> batch{.inputs = test_normal<float>(Shape{samples, 1, kCells}, Key(5), 1),
                       .labels = Tensor<Index>(Shape{samples})};
    for (Index i = 0; i < samples; ++i) {
      batch.labels.mutable_data()[i] = i % kOutputs;
    }
    return batch;
  }
  Value<float> operator()(const Value<float>& x, Pass<float>& pass) const {
    Value<float> h = fenestra::conv(x, conv.value, ConvOptions{.padding = 1});
    h = relu(ends_with_sums ? Value<float>(add(h, first.value)) : h);
    h = norm(add(h, second.value), pass);
    h = relu(ends_with_sums ? h : Value<float>(add(h, first.value)));
    return linear(reshape(h, Shape{h.shape()[0], -1}), weight.value);
  }
};

TEST(Leaves, ChannelsInTurnHaveTheBitsOfOneAfterTheOther) {
  constexpr Index kLeaf = 32;
  const Batch<float> all = ChannelNet::batch(4 * kLeaf);
  const Batch<float> first = ChannelNet::batch(kLeaf);
  TrainerOptions options = kHard;
  options.leaf = kLeaf;
  for (const bool ends_with_sums : {true, false}) {
    const ChannelNet net = ChannelNet::make(ends_with_sums);
    EXPECT_EQ(expect_the_same_side_by_side(net, all, first), ends_with_sums);
    // One rank computes four leaves, two or one.
    check_equal(net, array_dataset(all.inputs, all.labels), 4 * kLeaf, options, {1, 2, 4});
  }
}

TEST(Leaves, WeightsThatAreUsedTwiceHaveTheBitsOfOne) {
  TiedNet net = TiedNet::make();
  EXPECT_EQ(program_of(net, test_batch<float>(4, 3)).joint_batches(4), 1);
  check_equal(TiedNet::make(), test_dataset(62, 2), 26, kHard, {2, 7});
}

TEST(Leaves, SmallNetworksAreNotComputedSideBySide) {
  TestNet<float> small = TestNet<float>::make(1);
  EXPECT_EQ(program_of(small, test_batch<float>(4, 3)).joint_batches(4), 1);
}

TEST(Leaves, ALeafAsLargeAsTheBatchIsThePlainStep) {
  TrainerOptions plain = kHard;
  plain.leaf = 0;
  TrainerOptions large = kHard;
  large.leaf = 1000;
  const DatasetPtr data = test_dataset(50, 2);
  const auto expected = run(TestNet<float>::make(1), data, 16, plain, nullptr);
  EXPECT_TRUE(run(TestNet<float>::make(1), data, 16, large, nullptr) == expected);
  EXPECT_TRUE(run_on(2, TestNet<float>::make(1), data, 16, large)[1] == expected);
}

TEST(Leaves, TheStepIsTheMeanOfTheStepsOfLeaves) {
  // Without masks and clipping, plain gradient descent moves by the mean of what leaves move by.
  const TrainerOptions sgd{.optimiser = "sgd rate=1"};
  TestNet<double> net = TestNet<double>::make(1);
  net.keep = 1;
  const Batch<double> whole = test_batch<double>(10, 4);
  const auto begin = numbers_of(Trainer(net, sgd));
  std::vector<std::vector<double>> moved(begin.size());
  double loss = 0;
  const Index cells = kTestSide * kTestSide;
  for (const auto& [first, count] : {std::pair<Index, Index>{0, 4}, {4, 4}, {8, 2}}) {
    Batch<double> part{.inputs = Tensor<double>(Shape{count, 1, kTestSide, kTestSide}),
                       .labels = Tensor<Index>(Shape{count})};
    std::copy_n(whole.inputs.data() + first * cells, count * cells, part.inputs.mutable_data());
    std::copy_n(whole.labels.data() + first, count, part.labels.mutable_data());
    Trainer trainer(net, sgd);
    const double share = static_cast<double>(count) / 10;
    loss += share * trainer.step(part).loss;
    const auto after = numbers_of(trainer);
    for (std::size_t k = 0; k < begin.size(); ++k) {
      moved[k].resize(static_cast<std::size_t>(begin[k].size()));
      for (Index i = 0; i < begin[k].size(); ++i) {
        moved[k][static_cast<std::size_t>(i)] += share * (after[k][i] - begin[k][i]);
      }
    }
  }
  TrainerOptions in_leaves = sgd;
  in_leaves.leaf = 4;
  Trainer trainer(net, in_leaves);
  const StepResult step = trainer.step(whole);
  EXPECT_EQ(step.samples, 10);
  EXPECT_EQ(step.labels, 10);
  // A few roundings of numbers below 8.
  const double bound = 32 * 8 * std::numeric_limits<double>::epsilon();
  EXPECT_NEAR(step.loss, loss, bound);
  const auto after = numbers_of(trainer);
  for (std::size_t k = 0; k < begin.size(); ++k) {
    for (Index i = 0; i < begin[k].size(); ++i) {
      EXPECT_NEAR(after[k][i] - begin[k][i], moved[k][static_cast<std::size_t>(i)], bound);
    }
  }
}

TEST(Leaves, ARunGoesOnWithAnotherNumberOfRanks) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "leaves.safetensors";
  std::filesystem::remove(path);
  const DatasetPtr data = test_dataset(62, 2);
  const auto expected = run(TestNet<float>::make(1), data, 26, kHard, nullptr);
  // Stopped after four steps, in the middle of the second epoch, by one rank alone.
  ranks::run_ranks(3, [&](const CommunicatorPtr& communicator) {
    TrainerOptions options = kHard;
    options.communicator = communicator;
    Trainer trainer(TestNet<float>::make(1), options);
    Loader<float> loader(data, {.batch = 26, .seed = 3});
    std::atomic<bool> stop = false;
    const FitResult fit = trainer.fit(
        loader, 2, {.checkpoint = path, .stop = &stop, .on_step = [&](const StepResult& step) {
                      stop = step.step == 3 && communicator->rank() == 1;
                    }});
    EXPECT_EQ(fit.end, FitEnd::stopped);
    EXPECT_EQ(trainer.steps(), 4);
  });
  for (const int count : {1, 2}) {
    ranks::run_ranks(count, [&](const CommunicatorPtr& communicator) {
      Trainer trainer(TestNet<float>::make(8), {.leaf = 1, .communicator = communicator});
      trainer.resume(path);
      EXPECT_EQ(trainer.options().leaf, 4);
      Loader<float> loader(data, {.batch = 26, .seed = 3});
      trainer.fit(loader, 2);
      const auto numbers = numbers_of(trainer);
      EXPECT_TRUE(std::equal(numbers.begin(), numbers.end(), expected.numbers.begin()));
    });
  }
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Leaves, ACheckpointHoldsTheWholeOptimiserWhoeverHasItsParts) {
  const std::filesystem::path folder = testing::TempDir();
  const Tensor<float> x = test_normal<float>(Shape{16, 1, 28, 28}, Key(5), 1);
  Batch<float> batch{.inputs = x, .labels = Tensor<Index>(Shape{16})};
  for (const char* optimiser : {"sgd rate=0.01",
                                "sgd rate=0.01 momentum=0.9",
                                "adamw",
                                "rmsprop centred=1 momentum=0.5",
                                "lion",
                                "lamb"}) {
    // Clipped, so that norms count; a linear layer of several blocks.
    const TrainerOptions options{
        .optimiser = optimiser, .clip_norm = 0.01, .clip_value = 0.5, .leaf = 2};
    const auto train = [&](int ranks, const std::filesystem::path& from, Index steps) {
      const auto path = folder / ("whole" + std::to_string(ranks) + ".safetensors");
      std::filesystem::remove(path);
      ranks::run_ranks(ranks, [&](const CommunicatorPtr& communicator) {
        TrainerOptions mine = options;
        mine.communicator = communicator;
        Layer<float> model = make_model<float>("lenet", {.classes = 10, .channels = 1});
        initialise(model, Key(4));
        Trainer trainer(model, mine);
        if (!from.empty()) {
          trainer.resume(from);
        }
        for (Index step = 0; step < steps; ++step) {
          trainer.step(batch);
        }
        trainer.save(path);
      });
      return path;
    };
    const std::string expected = bytes_of(train(1, {}, 4));
    const std::filesystem::path half = folder / "half.safetensors";
    std::filesystem::copy_file(
        train(1, {}, 2), half, std::filesystem::copy_options::overwrite_existing);
    for (const int ranks : {2, 3, 8}) {
      EXPECT_EQ(bytes_of(train(ranks, {}, 4)), expected) << optimiser << ", " << ranks << " ranks";
      EXPECT_EQ(bytes_of(train(ranks, half, 2)), expected)
          << optimiser << ", resumed by " << ranks << " ranks";
    }
  }
}

TEST(Leaves, RanksHaveAllBlocksOfGradientsOnceAndEquallyMany) {
  // Tensors of few and of many blocks.
  std::vector<Value<float>> values;
  for (const Index size : {5, 400000, 16384, 0, 1, 3000000}) {
    values.push_back(Value<float>(Tensor<float>(Shape{size})));
  }
  std::vector<Slot<float>> slots;
  for (Value<float>& value : values) {
    slots.push_back({.name = "w", .value = &value, .trained = true});
  }
  const detail::GradientLayout layout =
      detail::gradient_layout(std::span<const Slot<float>>(slots));
  Index last = layout.elements;
  for (const ranks::ElementRange& range : layout.gradients) {  // from the back to the front
    EXPECT_EQ(range.end, last);
    EXPECT_EQ(range.begin % 16, 0);
    last = range.begin;
  }
  EXPECT_EQ(last, 0);
  for (const int ranks : {1, 2, 3, 8, 16}) {
    std::vector<Index> found(values.size());
    for (int rank = 0; rank < ranks; ++rank) {
      Index own = 0;
      for (const detail::GradientPiece& piece : detail::rank_pieces(layout, rank, ranks)) {
        EXPECT_EQ(piece.begin % 16384, 0);
        EXPECT_TRUE(piece.size % 16384 == 0 ||
                    piece.begin + piece.size == layout.sizes[piece.gradient]);
        EXPECT_EQ(piece.place, layout.gradients[piece.gradient].begin + piece.begin);
        found[piece.gradient] += piece.size;
        own += piece.size;
      }
      // But for a block in each bucket.
      EXPECT_LE(own, layout.elements / ranks + static_cast<Index>(layout.ends.size()) * 16384);
    }
    EXPECT_EQ(found, layout.sizes);
  }
}

TEST(Leaves, RanksStopAValidationTogether) {
  const DatasetPtr data = test_dataset(62, 2);
  ranks::run_ranks(3, [&](const CommunicatorPtr& communicator) {
    TrainerOptions options = kHard;
    options.communicator = communicator;
    Trainer trainer(TestNet<float>::make(1), options);
    Loader<float> loader(data, {.batch = 26, .seed = 3});
    Loader<float> held_out(data, {.batch = 9, .shuffle = false});  // seven batches
    // Every rank is asked as often as the others, however many batches are its own.
    int asked = 0;
    EXPECT_EQ(trainer.evaluate(held_out, [&] { return ++asked > 0; }).samples, 62);
    EXPECT_EQ(asked, 2);
    std::atomic<bool> stop = false;
    const FitOptions<float> told{.validation = &held_out,
                                 .stop = &stop,
                                 .on_validation_batch = [&] { stop = communicator->rank() == 2; }};
    EXPECT_EQ(trainer.fit(loader, 2, told).end, FitEnd::stopped);
    EXPECT_EQ(trainer.steps(), 3);  // one epoch, whose validation is still to be done
    EXPECT_EQ(trainer.cursor().epoch, 0);
  });
}

TEST(Leaves, BatchesMayBeMadeByHand) {
  const Batch<float> made = test_batch<float>(6, 4);
  const Batch<float> by_hand{.inputs = made.inputs, .labels = made.labels};
  Trainer a(TestNet<float>::make(1), {.leaf = 4});
  Trainer b(TestNet<float>::make(1), {.leaf = 4});
  EXPECT_EQ(a.step(made).loss, b.step(by_hand).loss);
  EXPECT_EQ(numbers_of(a), numbers_of(b));
  EXPECT_THROW(a.step({.inputs = made.inputs, .labels = Tensor<Index>(Shape{5})}), Error);
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Leaves, RefusesWhatCannotGiveTheBitsOfOne) {
  EXPECT_THROW(Trainer(TestNet<float>::make(1), {.leaf = -1}), Error);
  const auto trained = [](const std::function<void(int, TrainerOptions&, Index&, int&)>& change) {
    return message_of([&] {
      ranks::run_ranks(2, [&](const CommunicatorPtr& communicator) {
        TrainerOptions options{.leaf = 4, .communicator = communicator};
        Index samples = 8;
        int seed = 1;
        change(communicator->rank(), options, samples, seed);
        Trainer trainer(TestNet<float>::make(static_cast<std::uint64_t>(seed)), options);
        trainer.step(test_batch<float>(samples, 4));
      });
    });
  };
  EXPECT_EQ(trained([](int, TrainerOptions&, Index&, int&) {}), "");
  EXPECT_NE(trained([](int, TrainerOptions& o, Index&, int&) { o.leaf = 0; }).find("no leaf"),
            std::string::npos);
  EXPECT_NE(trained([](int rank, TrainerOptions& o, Index&, int&) {
              o.leaf = 4 + rank;
            }).find("leaf = 5 on rank 1, 4 on rank 0"),
            std::string::npos);
  EXPECT_NE(trained([](int rank, TrainerOptions&, Index& samples, int&) {
              samples += rank;
            }).find("samples in the batch = 9 on rank 1, 8 on rank 0"),
            std::string::npos);
  EXPECT_NE(trained([](int rank, TrainerOptions&, Index&, int& seed) {
              seed += rank;
            }).find("checksum of weights"),
            std::string::npos);
}

}  // namespace
}  // namespace fenestra::nn

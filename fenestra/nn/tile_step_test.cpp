// Training on tiles: their gradients are leaves of one tree. In exact arithmetic they add up to the
// gradient of the whole; in float the bits depend on neither ranks nor threads.
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/operation.hpp>
#include <fenestra/engine/primitive_of.hpp>
#include <fenestra/engine/tape.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/layers.hpp>
#include <fenestra/nn/models/make.hpp>
#include <fenestra/nn/tile_step.hpp>
#include <fenestra/nn/trainer_test.hpp>
#include <fenestra/ops/concat/concat.hpp>
#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/loss/loss.hpp>
#include <fenestra/ops/pool/pool.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/ops/slice/slice.hpp>
#include <fenestra/spec/random.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <map>

namespace fenestra::nn {
namespace {

using ranks::CommunicatorPtr;

template <class T>
Layer<T> built(std::string_view text, std::uint64_t seed) {
  Layer<T> model = build_layer<T>(text);
  initialise(model, Key(seed));
  return model;
}

// --- Exact arithmetic ---------------------------------------------------------------------------

using Exact = Value<Rational>;
using ExactSlots = std::map<std::string, Exact>;

/// Small whole numbers.
Tensor<Rational> exact_numbers(const Shape& shape, Random& random) {
  Tensor<Rational> x(shape);
  for (Rational& number : x.mutable_values()) {
    number = Rational(random.between(-3, 3));
  }
  return x;
}

template <class... P>
std::optional<Exact> applied(const Primitive<double>& primitive, const std::vector<Exact>& in) {
  std::optional<Exact> y;
  const auto try_as = [&]<class Q>() {
    if (const auto* known = dynamic_cast<const PrimitiveOf<Q, double>*>(&primitive)) {
      y = apply_all(
              known->primitive(), std::span<const Exact>(in), std::span<const Indices>(), false)
              .y;
    }
  };
  (try_as.template operator()<P>(), ...);
  return y;
}

/// What a graph computes, in rationals.
Exact run_exactly(const graph::Graph& graph, const Exact& x, const ExactSlots& slots) {
  std::vector<Exact> values;
  for (const graph::Node& node : graph.nodes()) {
    if (node.kind == graph::NodeKind::input) {
      values.push_back(x);
      continue;
    }
    if (node.is_argument()) {
      values.push_back(slots.at(node.name));
      continue;
    }
    const auto* operation = dynamic_cast<const graph::OperationOn<double>*>(node.operation.get());
    std::vector<Exact> in;
    for (const graph::NodeId id : node.in) {
      in.push_back(values[static_cast<std::size_t>(id)]);
    }
    const std::optional<Exact> y = operation == nullptr
                                       ? std::nullopt
                                       : applied<ConvPrimitive,
                                                 ReshapePrimitive,
                                                 SlicePrimitive,
                                                 UnaryPrimitive,
                                                 BinaryPrimitive,
                                                 ConcatPrimitive,
                                                 MaxPoolPrimitive,
                                                 AvgPoolPrimitive>(operation->primitive(), in);
    if (!y) {
      ADD_FAILURE() << "no exact form of " << node.operation->name();
      return x;
    }
    values.push_back(*y);
  }
  return values[static_cast<std::size_t>(graph.outputs()[0].node)];
}

Tensor<Rational> part_of(const Tensor<Rational>& x, const Box& box) {
  std::vector<AxisRange> ranges;
  for (int axis = 0; axis < box.rank(); ++axis) {
    ranges.push_back({axis, box.begin[axis], box.count[axis]});
  }
  return slice(x, std::span<const AxisRange>(ranges));
}

/// The loss of a box of the scores, its share of the whole, and the gradients of the weights.
struct ExactStep {
  Rational loss;
  std::map<std::string, Tensor<Rational>> gradients;
};

ExactStep exact_step(const graph::Graph& graph,
                     const Tensor<Rational>& x,
                     const Tensor<Rational>& target,
                     const std::map<std::string, Tensor<Rational>>& weights) {
  Tape<Rational> tape;
  ExactSlots slots;
  for (const auto& [name, weight] : weights) {
    slots.emplace(name, tape.parameter(weight, name));
  }
  const Exact loss = mse_loss(run_exactly(graph, Exact(x), slots), Exact(target));
  const Gradients<Rational> gradients = tape.backward(loss);
  ExactStep step{loss.tensor()[0], {}};
  for (const auto& [name, slot] : slots) {
    step.gradients.emplace(name, gradients[slot].tensor());
  }
  return step;
}

TEST(TileSteps, TheGradientsOfTilesAddUpToThoseOfTheWholeInRationals) {
  const std::string_view networks[] = {
      R"({"layer": "sequential", "layers": [
           {"layer": "conv", "in": 2, "out": 3, "kernel": 3, "padding": 1}, {"layer": "relu"},
           {"layer": "branches", "layers": [{"layer": "identity"},
             {"layer": "sequential", "layers": [{"layer": "max_pool", "kernel": 2},
               {"layer": "conv", "in": 3, "out": 2, "kernel": 3, "padding": 1}, {"layer": "relu"},
               {"layer": "conv_transpose", "in": 2, "out": 2, "kernel": 2, "stride": 2}]}]},
           {"layer": "conv", "in": 5, "out": 2, "kernel": 3, "dilation": 2, "padding": 2}]})",
      R"({"layer": "sequential", "layers": [
           {"layer": "conv", "in": 2, "out": 2, "kernel": [3, 2], "stride": [1, 2],
            "padding": [[2, 0], [1, 1]]},
           {"layer": "avg_pool", "kernel": 3, "stride": 1, "padding": 1},
           {"layer": "residual",
            "body": {"layer": "conv", "in": 2, "out": 2, "kernel": 3, "padding": 1}}]})"};
  Random random(7);
  for (const std::string_view text : networks) {
    Layer<double> model = build_layer<double>(text);
    const std::vector<Slot<double>> all = slots<double>(model);
    const TrainerCore<double>::Parts parts{
        .slots = {},
        .forward = [&](const Value<double>& x, Pass<double>& pass) { return model(x, pass); }};
    const Shape input{2, 2, 8, 10};
    const TracedNetwork network = detail::trace_training<double>(parts, all, input);
    const detail::TileGraph<double> tiles =
        detail::tile_graph<double>(network, detail::TileKernels::own);

    const Tensor<Rational> x = exact_numbers(input, random);
    const Tensor<Rational> target = exact_numbers(tiles.output(), random);
    std::map<std::string, Tensor<Rational>> weights;
    for (const Slot<double>& slot : all) {
      weights.emplace(slot.name, exact_numbers(slot.value->shape(), random));
    }
    const ExactStep whole = exact_step(network.graph, x, target, weights);
    for (const Shape& tile : {Shape{3, 4}, Shape{8, 1}, Shape{1, 7}}) {
      const detail::TileGrid grid = detail::TileGrid::of(tiles.output(), tile);
      ASSERT_GT(grid.count(), 1);
      ExactStep sum{Rational(0), {}};
      for (Index number = 0; number < grid.count(); ++number) {
        const detail::GraphTile cut = tiles.tile(grid.box(number));
        const ExactStep part =
            exact_step(cut.graph, part_of(x, cut.input), part_of(target, cut.output), weights);
        const Rational share(*cut.output.shape().elements(), *tiles.output().elements());
        sum.loss += share * part.loss;
        for (const auto& [name, gradient] : part.gradients) {
          Tensor<Rational>& total = sum.gradients.try_emplace(name, gradient.shape()).first->second;
          for (Index i = 0; i < gradient.size(); ++i) {
            total.mutable_data()[i] += share * gradient[i];
          }
        }
      }
      EXPECT_EQ(sum.loss, whole.loss) << to_string(tile);
      for (const auto& [name, gradient] : whole.gradients) {
        EXPECT_EQ(sum.gradients.at(name), gradient) << name << " " << to_string(tile);
      }
    }
  }
}

// --- The trainer --------------------------------------------------------------------------------

constexpr std::string_view kHardNet =
    R"({"layer": "sequential", "layers": [
         {"layer": "conv", "in": 1, "out": 4, "kernel": 3, "padding": 1},
         {"layer": "batch_norm", "channels": 4}, {"layer": "relu"},
         {"layer": "branches", "layers": [{"layer": "identity"},
           {"layer": "sequential", "layers": [{"layer": "max_pool", "kernel": 2},
             {"layer": "conv", "in": 4, "out": 6, "kernel": 3, "padding": 1},
             {"layer": "batch_norm", "channels": 6}, {"layer": "relu"},
             {"layer": "dropout", "drop": 0.25},
             {"layer": "conv_transpose", "in": 6, "out": 4, "kernel": 2, "stride": 2}]}]},
         {"layer": "conv", "in": 8, "out": 3, "kernel": 3, "padding": 1}]})";
constexpr std::string_view kPlainNet =
    R"({"layer": "sequential", "layers": [
         {"layer": "conv", "in": 1, "out": 4, "kernel": 3, "padding": 1}, {"layer": "relu"},
         {"layer": "max_pool", "kernel": 3, "stride": 1, "padding": 1},
         {"layer": "conv", "in": 4, "out": 3, "kernel": 3, "padding": 1}]})";

/// Pictures of noise, and a class for each cell.
template <class T>
Batch<T> cell_batch(Index samples, const Shape& size, std::uint64_t seed) {
  Batch<T> batch{
      .inputs = test_normal<T>(Shape{samples, 1, size[0], size[1]}, Key(seed).fold("x"), 1),
      .labels = Tensor<Index>(Shape{samples, size[0], size[1]})};
  for (Index i = 0; i < batch.labels.size(); ++i) {
    batch.labels.mutable_data()[i] = batch.inputs[i] > T(0.5)    ? 2
                                     : batch.inputs[i] > T(-0.5) ? 1
                                                                 : 0;
  }
  return batch;
}

template <class T>
struct Steps {
  std::vector<Tensor<T>> numbers;
  std::vector<double> figures;

  friend bool operator==(const Steps&, const Steps&) = default;
};

template <class T>
Steps<T> steps_of(const Layer<T>& model,
                  TrainerOptions options,
                  const CommunicatorPtr& communicator,
                  const std::vector<Index>& batches = {3, 3, 2}) {
  options.communicator = communicator;
  Trainer trainer(model, options);
  Steps<T> steps;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const StepResult step = trainer.step(cell_batch<T>(batches[i], Shape{18, 22}, i));
    steps.figures.insert(steps.figures.end(),
                         {step.loss,
                          step.gradient_norm,
                          static_cast<double>(step.labels),
                          static_cast<double>(step.correct)});
  }
  steps.numbers = numbers_of(trainer);
  return steps;
}

const TrainerOptions kTiled{.loss = "cross-entropy smoothing=0.1",
                            .optimiser = "adamw rate=0.01",
                            .clip_norm = 0.5,
                            .seed = 9,
                            .leaf = 2,
                            .tile = Shape{7, 12}};

TEST(TileSteps, AnyNumberOfRanksAndThreadsHasTheBitsOfOne) {
  const Layer<float> model = built<float>(kHardNet, 3);
  for (const Index leaf : {0, 2}) {
    TrainerOptions options = kTiled;
    options.leaf = leaf;
    const int before = threads();
    set_threads(1);
    const Steps<float> alone = steps_of(model, options, nullptr);
    set_threads(2);
    EXPECT_TRUE(steps_of(model, options, nullptr) == alone);
    set_threads(before);
    for (const int ranks : {2, 3, 7, 16}) {
      std::vector<Steps<float>> all(static_cast<std::size_t>(ranks));
      ranks::run_ranks(ranks, [&](const CommunicatorPtr& communicator) {
        all[static_cast<std::size_t>(communicator->rank())] =
            steps_of(model, options, communicator);
      });
      for (const Steps<float>& steps : all) {
        EXPECT_TRUE(steps == alone) << ranks << " ranks, leaf " << leaf;
      }
    }
  }
}

TEST(TileSteps, ATileAsLargeAsThePictureIsThePlainStep) {
  const Layer<float> model = built<float>(kHardNet, 3);
  TrainerOptions plain = kTiled;
  plain.leaf = 0;
  plain.tile = {};
  TrainerOptions large = plain;
  large.tile = Shape{100, 22};
  EXPECT_TRUE(steps_of(model, large, nullptr) == steps_of(model, plain, nullptr));
}

TEST(TileSteps, WithoutStatisticsAndMasksAStepIsThatOfTheWhole) {
  const Layer<double> model = built<double>(kPlainNet, 3);
  TrainerOptions plain{.optimiser = "sgd rate=1"};
  TrainerOptions tiled = plain;
  tiled.leaf = 2;
  tiled.tile = Shape{7, 12};
  const Steps<double> expected = steps_of(model, plain, nullptr, {3});
  const Steps<double> found = steps_of(model, tiled, nullptr, {3});
  // A gradient is a sum over 3 x 18 x 22 cells of products of numbers below 8.
  const double bound = 3 * 18 * 22 * 8 * std::numeric_limits<double>::epsilon();
  for (std::size_t i = 0; i < expected.figures.size(); ++i) {
    EXPECT_NEAR(found.figures[i], expected.figures[i], bound);
  }
  ASSERT_EQ(found.numbers.size(), expected.numbers.size());
  for (std::size_t k = 0; k < expected.numbers.size(); ++k) {
    for (Index i = 0; i < expected.numbers[k].size(); ++i) {
      EXPECT_NEAR(found.numbers[k][i], expected.numbers[k][i], bound);
    }
  }
}

TEST(TileSteps, AReadyUNetLearns) {
  Layer<float> model = make_model<float>("unet", {.classes = 3, .channels = 1, .width = 0.25});
  initialise(model, Key(1));
  Trainer trainer(model, {.optimiser = "adamw rate=0.01", .leaf = 1, .tile = Shape{16, 16}});
  const Batch<float> batch = cell_batch<float>(2, Shape{32, 40}, 1);
  const double first = trainer.step(batch).loss;
  double last = first;
  for (int i = 0; i < 15; ++i) {
    last = trainer.step(batch).loss;
  }
  EXPECT_LT(last, 0.8 * first);
}

TEST(TileSteps, ACheckpointKeepsTheTile) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "tiles.safetensors";
  const Layer<float> model = built<float>(kHardNet, 3);
  const Batch<float> batch = cell_batch<float>(3, Shape{18, 22}, 1);
  Trainer first(model, kTiled);
  first.step(batch);
  first.save(path);
  first.step(batch);
  Trainer second(model, TrainerOptions{});
  second.resume(path);
  EXPECT_EQ(second.options().tile, kTiled.tile);
  second.step(batch);
  EXPECT_TRUE(numbers_of(first) == numbers_of(second));
}

TEST(TileSteps, EvaluationGoesByTilesToo) {
  const Layer<float> model = built<float>(kPlainNet, 3);
  const Tensor<float> x = cell_batch<float>(2, Shape{18, 22}, 1).inputs;
  Trainer trainer(model, TrainerOptions{.tile = Shape{5, 22}});
  EXPECT_EQ(trainer.predict(x), infer(model, x));
}

/// A class of the program whose statistics are of all that it is given.
struct OwnNorm {
  Parameter<float> conv{Tensor<float>(Shape{4, 1, 1, 1}, 1.0F)};
  TestNorm<float> norm;

  Value<float> operator()(const Value<float>& x, Pass<float>& pass) const {
    return relu(norm(fenestra::conv(x, conv.value), pass));
  }
};

/// What is thrown, its code as expected.
template <class F>
std::string refusal(const F& f, ErrorCode code) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "nothing";
}

TEST(TileSteps, WhatHasNoTilesIsRefusedByItsName) {
  const auto step = [](const auto& model, TrainerOptions options) {
    options.tile = Shape{4, 4};
    return [model, options] { Trainer(model, options).step(cell_batch<float>(1, Shape{8, 8}, 1)); };
  };
  const Layer<float> squeezed = built<float>(
      R"({"layer": "sequential", "names": ["first", "guilty"], "layers": [
           {"layer": "conv", "in": 1, "out": 4, "kernel": 3, "padding": 1},
           {"layer": "instance_norm", "channels": 4}]})",
      1);
  EXPECT_NE(refusal(step(squeezed, {}), ErrorCode::memory_limit).find("\"guilty\" (instance_norm)"),
            std::string::npos);
  const Layer<float> plain = built<float>(kPlainNet, 1);
  EXPECT_NE(refusal(step(plain, {.loss = "dice"}), ErrorCode::unsupported).find("dice"),
            std::string::npos);
  EXPECT_NE(refusal(step(plain, {.compiled = false}), ErrorCode::unsupported).find("compiled"),
            std::string::npos);
  // Statistics and masks that nobody told of.
  EXPECT_NE(refusal(step(TestNet<float>::make(1), {}), ErrorCode::unsupported).find("a mask"),
            std::string::npos);
  EXPECT_NE(refusal(step(OwnNorm{}, {}), ErrorCode::unsupported).find("a buffer (4"),
            std::string::npos);
  EXPECT_NE(refusal(
                [&] {
                  Batch<float> batch = cell_batch<float>(1, Shape{8, 8}, 1);
                  batch.labels = Tensor<Index>(Shape{1, 4, 4});
                  Trainer(plain, {.tile = Shape{4, 4}}).step(batch);
                },
                ErrorCode::shape_mismatch)
                .find("labels"),
            std::string::npos);
}

}  // namespace
}  // namespace fenestra::nn

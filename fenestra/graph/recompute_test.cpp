// Recomputation under a memory limit: what is copied, that limits hold, and that no bit changes.
#include <fenestra/graph/plan.hpp>
#include <fenestra/graph/recompute.hpp>
#include <fenestra/graph/testing_test.hpp>
#include <fenestra/nn/compile_step.hpp>
#include <fenestra/nn/models/functional.hpp>

#include <gtest/gtest.h>

#include <cstdlib>

namespace fenestra::graph {
namespace {

constexpr std::size_t kOne = 16 * 16 * sizeof(double);

std::string error_of(const auto& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::memory_limit) << error.what();
    return error.what();
  }
  return "none";
}

/// exp(w), which two products wait for and a third one reads.
struct Waiting {
  Builder<double> builder;
  Value<double> w = builder.parameter({16, 16}, "w");
  Value<double> v = builder.input({16, 16}, "v");
  Value<double> a = exp(w);
  Value<double> b = matmul(a, w);

  Value<double> finish() {
    const Value<double> y = matmul(matmul(b, v), a);
    builder.output(y, "y");
    return y;
  }
};

TEST(Recompute, AValueThatWaitsIsComputedAgainBeforeItsReader) {
  Waiting waiting;
  waiting.finish();
  const Graph& graph = waiting.builder.graph();
  EXPECT_EQ(to_string(graph),
            "%0 = parameter \"w\" : f64 (16, 16)\n"
            "%1 = input \"v\" : f64 (16, 16)\n"
            "%2 = exp(%0) : f64 (16, 16)\n"
            "%3 = matmul(%2, %0) {a b} : f64 (16, 16)\n"
            "%4 = matmul(%3, %1) {a b} : f64 (16, 16)\n"
            "%5 = matmul(%4, %2) {a b} : f64 (16, 16)\n"
            "output \"y\" = %5\n");
  EXPECT_EQ(Plan(graph).arena_bytes(), 3 * kOne);
  const Graph again = recompute(graph, {.memory_limit = 2 * kOne});
  verify(again);
  EXPECT_EQ(to_string(again),
            "%0 = parameter \"w\" : f64 (16, 16)\n"
            "%1 = input \"v\" : f64 (16, 16)\n"
            "%2 = exp(%0) : f64 (16, 16)\n"
            "%3 = matmul(%2, %0) {a b} : f64 (16, 16)\n"
            "%4 = matmul(%3, %1) {a b} : f64 (16, 16)\n"
            "%5 = exp(%0) : f64 (16, 16)\n"
            "%6 = matmul(%4, %5) {a b} : f64 (16, 16)\n"
            "output \"y\" = %6\n");
  EXPECT_EQ(Plan(again).arena_bytes(), 2 * kOne);
}

TEST(Recompute, AGraphThatFitsIsLeftAlone) {
  Waiting waiting;
  waiting.finish();
  const Graph& graph = waiting.builder.graph();
  EXPECT_EQ(to_string(recompute(graph, {.memory_limit = 3 * kOne})), to_string(graph));
}

TEST(Recompute, AParameterThatHasChangedIsNotReadAgain) {
  Waiting late;
  const auto y = late.finish();
  late.builder.update(late.w, sub(late.w, y));
  const Plan plan(recompute(late.builder.graph(), {.memory_limit = 2 * kOne}));
  EXPECT_LE(plan.arena_bytes(), 2 * kOne);
  EXPECT_TRUE(plan.copies().empty()) << "w is still written where it lies";

  // Changed between the two readers of exp(w), which therefore has to wait.
  Waiting early;
  early.builder.update(early.w, sub(early.w, early.v));
  early.finish();
  EXPECT_EQ(Plan(early.builder.graph()).arena_bytes(), 3 * kOne);
  EXPECT_NE(error_of([&] { recompute(early.builder.graph(), {.memory_limit = 2 * kOne}); }),
            "none");
}

TEST(Recompute, AReshapedValueIsComputedAgainWithItsReshapes) {
  Builder<double> builder;
  const auto w = builder.input({16, 16}, "w");
  const auto a = exp(w);
  const auto flat = reshape(a, {1, 256});
  const auto b = matmul(matmul(a, w), w);
  builder.output(matmul(matmul(flat, reshape(b, {256, 1})), sum(a, {.axes = {0, 1}, .keep = true})),
                 "y");
  const Graph graph = builder.graph();
  const std::size_t limit = Plan(graph).arena_bytes() - kOne / 2;
  const Graph again = recompute(graph, {.memory_limit = limit});
  verify(again);
  EXPECT_EQ(count_named(again, "exp"), 2u);
  EXPECT_EQ(count_named(again, "reshape"), count_named(graph, "reshape"));
}

TEST(Recompute, WinnersAreFoundAgain) {
  // The winners of the pool wait while wide products need memory.
  const auto model = [](const auto& x, const auto& w) {
    const auto y = matmul(max_pool(x, {.kernel = 2}), w);
    return sum(tanh(matmul(tanh(y), transpose(w, {1, 0}))));
  };
  const Tensor<double> x = sample_tensor<double>({1, 1, 32, 32});
  const Tensor<double> w = sample_tensor<double>({16, 64}, 2);
  CompileOptions options{.run = false, .value_and_grad = true, .wrt = {0}};
  const auto free = compile<double>(model, x.shape(), w.shape(), options);
  const Plan& plan = free.plan(ProgramForm::value_and_grad);
  options.memory_limit = plan.arena_bytes() - 1;
  const auto limited = compile<double>(model, x.shape(), w.shape(), options);
  EXPECT_LE(limited.plan(ProgramForm::value_and_grad).arena_bytes(), options.memory_limit);
  EXPECT_EQ(count_named(plan.graph(), "max_pool"), 1u);
  EXPECT_EQ(count_named(limited.plan(ProgramForm::value_and_grad).graph(), "max_pool"), 2u);
  Context<double> one(free);
  Context<double> two(limited);
  EXPECT_EQ(limited.value_and_grad(two, x, w), free.value_and_grad(one, x, w));
}

// --- Training steps ------------------------------

/// A step of a model, run twice: its losses and what became of its parameters.
template <class Model>
struct Training {
  std::vector<Tensor<double>> parameters = [] {
    Random random(1);
    return Model::template initial<double>(random);
  }();
  Tensor<double> x;
  Tensor<Index> labels;  ///< of classes; empty where the target is an image
  Tensor<double> image;

  static auto loss() {
    return [](const auto& p, const auto& in, const auto& targets) {
      using V = std::remove_cvref_t<decltype(in)>;
      const V y = Model::template forward<V>(std::span<const V>(p), in);
      if constexpr (std::is_same_v<Model, nn::UNet>) {
        return bce_with_logits(y, targets);
      } else {
        return cross_entropy(y, targets);
      }
    };
  }
  Program<double> compiled(std::size_t limit) const {
    const CompileOptions options{.threads = 2, .memory_limit = limit};
    const SgdUpdate update{.momentum = 0.5};
    if constexpr (std::is_same_v<Model, nn::UNet>) {
      return compile_step<double>(update, loss(), parameters, x.shape(), image.shape(), options);
    } else {
      return compile_step<double>(
          update, loss(), parameters, x.shape(), DataShape{labels.shape()}, options);
    }
  }
  std::vector<Tensor<double>> run(const Program<double>& program) const {
    std::vector<Tensor<double>> state = parameters;
    for (const Tensor<double>& parameter : parameters) {
      state.emplace_back(parameter.shape());
    }
    const Tensor<double> rate(Shape{}, 0.01);
    std::vector<RunArgument> arguments(state.begin(),
                                       state.begin() + static_cast<Index>(parameters.size()));
    arguments.push_back(x);
    arguments.push_back(labels.size() > 0 ? RunArgument(labels) : RunArgument(image));
    arguments.push_back(rate);
    arguments.insert(
        arguments.end(), state.begin() + static_cast<Index>(parameters.size()), state.end());
    Context<double> context(program);
    std::vector<Tensor<double>> results = program.execute_new(ProgramForm::run, context, arguments);
    results.push_back(program.execute_new(ProgramForm::run, context, arguments)[0]);
    results.insert(results.end(), state.begin(), state.end());
    return results;
  }
  void test(const std::vector<double>& parts) const {
    const Program<double> free = compiled(0);
    const std::vector<Tensor<double>> needed = run(free);
    EXPECT_NE(needed[0], needed[1]) << "the first step changes nothing";
    for (const double part : parts) {
      const auto limit =
          static_cast<std::size_t>(part * static_cast<double>(free.plan().arena_bytes()));
      const Program<double> limited = compiled(limit);
      EXPECT_LE(limited.plan().arena_bytes(), limit);
      EXPECT_GT(limited.plan().steps().size(), free.plan().steps().size());
      EXPECT_EQ(run(limited), needed) << "limit " << limit;
      EXPECT_EQ(limited.plan().copies().size(), free.plan().copies().size())
          << "parameters are still written where they lie";
    }
  }
};

Training<nn::LeNet5> lenet() {
  return {.x = sample_tensor<double>({6, 1, 28, 28}),
          .labels = Tensor<Index>({6}, {0, 9, 3, 3, 5, 1}),
          .image = {}};
}

Training<nn::UNet> unet() {
  return {.x = sample_tensor<double>({3, 3, 32, 32}),
          .labels = Tensor<Index>(Shape{0}),
          .image = sample_tensor<double>({3, 1, 32, 32}, 2).map([](double v) {
            return v > 0 ? 1.0 : 0.0;
          })};
}

TEST(Recompute, ALeNetLearnsTheSameInLessMemory) { lenet().test({0.95, 0.9}); }

TEST(Recompute, AUNetLearnsTheSameInHalfTheMemory) { unet().test({0.9, 0.75, 0.6, 0.5}); }

TEST(Recompute, ALimitThatCannotBeMetIsRefusedWithOneThatCan) {
  const Training<nn::UNet> training = unet();
  const std::string text = error_of([&] { training.compiled(1000); });
  EXPECT_NE(text.find("limit of 1000 bytes"), std::string::npos) << text;
  const std::size_t at = text.find("fix: ");
  ASSERT_NE(at, std::string::npos) << text;
  const auto least = static_cast<std::size_t>(std::atoll(text.c_str() + at + 5));
  EXPECT_LE(training.compiled(least).plan().arena_bytes(), least);
  EXPECT_LT(least, training.compiled(0).plan().arena_bytes());
}

TEST(Recompute, ALimitHoldsForEveryForm) {
  const auto model = [](const auto& x, const auto& w) {
    return matmul(matmul(matmul(exp(x), w), w), exp(x));
  };
  const Shape shape{16, 16};
  CompileOptions options{.vjp = true, .jvp = true};
  const Program<double> free = compile<double>(model, shape, shape, options);
  options.memory_limit = free.peak_bytes() - kOne;
  const Program<double> limited = compile<double>(model, shape, shape, options);
  EXPECT_LE(limited.peak_bytes(), options.memory_limit);
  const Tensor<double> x = sample_tensor<double>(shape, 1);
  const Tensor<double> w = sample_tensor<double>(shape, 2);
  const Tensor<double> v = sample_tensor<double>(shape, 3);
  Context<double> one(free);
  Context<double> two(limited);
  EXPECT_EQ(limited.run(two, x, w), free.run(one, x, w));
  EXPECT_EQ(limited.vjp(two, x, w, v), free.vjp(one, x, w, v));
  EXPECT_EQ(limited.jvp(two, x, w, v, x), free.jvp(one, x, w, v, x));
}

}  // namespace
}  // namespace fenestra::graph

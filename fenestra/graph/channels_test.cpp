// Runs of channels: what becomes one, that it has the bits of its members on any number of threads,
// and what is left alone.
#include <fenestra/base/parallel.hpp>
#include <fenestra/graph/channels.hpp>
#include <fenestra/graph/plan.hpp>
#include <fenestra/graph/simplify.hpp>
#include <fenestra/graph/testing_test.hpp>
#include <fenestra/nn/compile_step.hpp>

#include <gtest/gtest.h>

#include <cstring>

namespace fenestra::graph {
namespace {

/// The names of the members of each run.
std::vector<std::string> runs_of(const Graph& graph,
                                 const BatchTilingOptions& options = kSmallestPieces) {
  const Graph joined = join_channels(simplify(graph));
  verify(joined);
  std::vector<std::string> runs;
  for (const ChannelRun& run : channel_runs(joined, options)) {
    std::string names;
    for (const NodeId id : run.members) {
      names += (names.empty() ? "" : " ") + std::string(joined.node(id).operation->name());
    }
    runs.push_back(names);
  }
  return runs;
}

/// Two normalisations, an activation that keeps what it was given, a short cut, and a result that
/// is read once more.
constexpr auto kLoss = [](const auto& p, const auto& x, const auto& target) {
  const auto first = batch_norm(x, p[0], p[1]);
  const auto h = clip(first.y, 0, 1);
  const auto y = relu(add(batch_norm(mul(h, target), p[2], p[3]).y, h));
  return sum(mul(sub(y, target), first.y));
};

template <class T>
Program<T> step_of(const Shape& shape, const CompileOptions& options) {
  const std::vector<Tensor<T>> parameters(4, Tensor<T>(Shape{shape[1]}));
  return compile_step<T>(SgdUpdate{.momentum = 0.9}, kLoss, parameters, shape, shape, options);
}

/// Two steps: what the loss was, and what became of parameters and velocities.
template <class T>
std::vector<Tensor<T>> learnt(const Shape& shape, const CompileOptions& options) {
  const Program<T> program = step_of<T>(shape, options);
  std::vector<Tensor<T>> values;
  for (const NodeId id : program.plan().arguments()) {
    values.push_back(sample_tensor<T>(program.plan().graph().node(id).shape,
                                      static_cast<int>(values.size()) + 1));
  }
  const std::vector<RunArgument> arguments(values.begin(), values.end());
  Context<T> context(program);
  std::vector<Tensor<T>> results = program.execute_new(ProgramForm::run, context, arguments);
  for (const Tensor<T>& again : program.execute_new(ProgramForm::run, context, arguments)) {
    results.push_back(again);
  }
  results.insert(results.end(), values.begin(), values.end());
  return results;
}

template <class T>
void expect_same_bits(const Shape& shape) {
  const std::string what = to_string(shape);
  const auto needed = learnt<T>(shape, CompileOptions{.batch_tiling = std::nullopt});
  const int before = threads();
  for (const int n : {1, 2, 3, 7}) {
    set_threads(n);
    // Pieces of one channel, and of three with a smaller one behind them.
    const auto channel =
        static_cast<std::size_t>(shape.elements().value_or(0) / shape[1]) * sizeof(T);
    BatchTilingOptions three = kSmallestPieces;
    three.cache_bytes = 9 * channel;
    for (const BatchTilingOptions& options : {kSmallestPieces, three}) {
      const CompileOptions compiled{.threads = n, .batch_tiling = options};
      const bool is_cut = !step_of<T>(shape, compiled).plan().channel_loops().empty();
      EXPECT_EQ(is_cut, shape[1] > 9 || options.cache_bytes == 1) << what;
      const auto got = learnt<T>(shape, compiled);
      ASSERT_EQ(got.size(), needed.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        const auto bytes = static_cast<std::size_t>(got[i].size()) * sizeof(T);
        EXPECT_EQ(std::memcmp(got[i].data(), needed[i].data(), bytes), 0)
            << what << ", " << n << " threads, result " << i;
      }
    }
  }
  set_threads(before);
}

TEST(Channels, RunInTurnWithTheBitsOfWholeTensors) {
  for (const Shape& shape : {Shape{2, 2, 1, 3},
                             Shape{3, 7, 5, 5},
                             Shape{1, 5, 4, 4},
                             Shape{4, 10, 3, 17},
                             Shape{2, 35, 9, 2},
                             Shape{5, 13, 64},
                             Shape{4, 40, 32, 32}}) {
    expect_same_bits<float>(shape);
    expect_same_bits<double>(shape);
  }
}

TEST(Channels, StatisticsNormalisationAndActivationBecomeARun) {
  Builder<float> builder;
  const auto x = builder.input({2, 3, 4, 4}, "x");
  const auto normed =
      batch_norm(x, builder.parameter({3}, "gamma"), builder.parameter({3}, "beta"));
  builder.output(relu(normed.y), "y");
  EXPECT_EQ(runs_of(builder.graph()),
            std::vector<std::string>{"sum_to div norm_variance normalise relu"});
}

TEST(Channels, TheBackwardPassOfANormalisationIsARun) {
  const Program<float> program = step_of<float>({8, 64, 56, 56}, {});
  std::vector<std::string> runs;
  for (const ChannelLoop& loop : program.plan().channel_loops()) {
    std::string& names = runs.emplace_back();
    for (std::size_t s = loop.first; s < loop.end; ++s) {
      const Node& node = program.plan().graph().node(program.plan().steps()[s].node);
      names += std::string(node.operation->name()) + " ";
    }
  }
  const auto holds = [&](const std::string& words) {
    return std::any_of(runs.begin(), runs.end(), [&](const std::string& run) {
      return run.find(words) != std::string::npos;
    });
  };
  EXPECT_TRUE(holds("norm_sums norm_input_grad ")) << "gradients of gamma and beta wait";
  EXPECT_TRUE(holds("sum_to div norm_variance normalise "));
}

TEST(Channels, GoOnWithWhatFollowsThemElementByElement) {
  Builder<float> builder;
  const auto x = builder.input({2, 3, 5}, "x");
  const auto y = batch_norm(x).y;
  const auto row = builder.input({5}, "row");
  // A row is read by all channels: it may not be computed among them.
  builder.output(mul(exp(y), row), "z");
  EXPECT_EQ(runs_of(builder.graph()),
            std::vector<std::string>{"sum_to div norm_variance normalise exp"});
}

TEST(Channels, AreLeftAloneWhereTheyAreNoPartsOfMemory) {
  const auto runs = [](const Shape& shape, Layout layout) {
    Builder<float> builder;
    builder.output(relu(batch_norm(builder.input(shape, "x"), {.layout = layout}).y), "y");
    return runs_of(builder.graph());
  };
  EXPECT_TRUE(runs({2, 4, 4, 3}, Layout::channels_last).empty());
  EXPECT_TRUE(runs({6, 3}, Layout::channels_first).empty()) << "no cells";
  Builder<float> groups;
  groups.output(relu(group_norm(groups.input({2, 4, 4, 4}, "x"), 2)), "y");
  EXPECT_TRUE(runs_of(groups.graph()).empty());
}

TEST(Channels, AreLeftAloneWhereTheCacheHoldsAllOrNotOne) {
  const auto count = [](const Shape& shape) {
    Builder<float> builder;
    builder.output(relu(batch_norm(builder.input(shape, "x")).y), "y");
    return runs_of(builder.graph(), {}).size();
  };
  EXPECT_EQ(count({8, 64, 56, 56}), 1U);
  EXPECT_EQ(count({8, 64, 8, 8}), 0U) << "128 KiB";
  EXPECT_EQ(count({64, 2, 112, 112}), 0U) << "a channel of 3 MiB";
}

}  // namespace
}  // namespace fenestra::graph

// Groups: how they are found, what the verifier refuses, and that pieces have the bits of the
// whole.
#include <fenestra/engine/differentiate.hpp>
#include <fenestra/graph/batch_tiling.hpp>
#include <fenestra/graph/plan.hpp>
#include <fenestra/graph/simplify.hpp>
#include <fenestra/graph/testing_test.hpp>
#include <fenestra/nn/compile_step.hpp>
#include <fenestra/nn/models/functional.hpp>

#include <gtest/gtest.h>

namespace fenestra::graph {
namespace {

/// A layer, its loss and the gradient by its input: two chains, with a weight gradient in between.
Graph layer_graph() {
  Builder<double> builder;
  const auto x = builder.input({4, 1, 4, 4}, "x");
  const auto w = builder.parameter({1, 1, 1, 1}, "w");
  const auto v = builder.parameter({1, 1, 1, 1}, "v");
  const auto y = max_pool(relu(conv(relu(conv(x, w)), v)), {.kernel = 2});
  builder.output(sum(y), "loss");
  const std::size_t first[] = {0};
  const NodeId wrt[] = {w.node(), v.node()};
  return simplify(reverse(builder.graph(), first, wrt, Seed::one));
}

TEST(ReadSoon, AnInputGradientStandsBeforeItsReader) {
  const Graph graph = layer_graph();
  EXPECT_EQ(to_string(graph),
            "%0 = input \"x\" : f64 (4, 1, 4, 4)\n"
            "%1 = parameter \"w\" : f64 (1, 1, 1, 1)\n"
            "%2 = parameter \"v\" : f64 (1, 1, 1, 1)\n"
            "%3 = conv(%0, %1) {x=4x1x4x4 w=1x1x1x1 stride=1,1 padding=0,0 dilation=1,1 groups=1} "
            ": f64 (4, 1, 4, 4)\n"
            "%4 = relu(%3) : f64 (4, 1, 4, 4)\n"
            "%5 = conv(%4, %2) {x=4x1x4x4 w=1x1x1x1 stride=1,1 padding=0,0 dilation=1,1 groups=1} "
            ": f64 (4, 1, 4, 4)\n"
            "%6 = relu(%5) : f64 (4, 1, 4, 4)\n"
            "%7 = max_pool(%6) {x=4x1x4x4 kernel=2,2 stride=2,2 padding=0,0 dilation=1,1} : f64 "
            "(4, 1, 2, 2), leaves taps (4, 1, 2, 2)\n"
            "%8 = sum_to(%7) : f64 (1, 1, 1, 1)\n"
            "%9 = reshape(%8) : f64 ()\n"
            "%10 = constant : f64 (4, 1, 2, 2)\n"
            "%11 = max_pool_scatter(%10; %7.workspace) {x=4x1x4x4 kernel=2,2 stride=2,2 "
            "padding=0,0 dilation=1,1} : f64 (4, 1, 4, 4)\n"
            "%12 = gate(%11, %6) {low=0 high=inf} : f64 (4, 1, 4, 4)\n"
            "%13 = conv_input_grad(%12, %2) {x=4x1x4x4 w=1x1x1x1 stride=1,1 padding=0,0 "
            "dilation=1,1 groups=1} : f64 (4, 1, 4, 4)\n"
            "%14 = conv_weight_grad(%4, %12) {x=4x1x4x4 w=1x1x1x1 stride=1,1 padding=0,0 "
            "dilation=1,1 groups=1} : f64 (1, 1, 1, 1)\n"
            "%15 = gate(%13, %4) {low=0 high=inf} : f64 (4, 1, 4, 4)\n"
            "%16 = conv_weight_grad(%0, %15) {x=4x1x4x4 w=1x1x1x1 stride=1,1 padding=0,0 "
            "dilation=1,1 groups=1} : f64 (1, 1, 1, 1)\n"
            "output \"loss\" = %9\n"
            "output \"w_bar\" = %16\n"
            "output \"v_bar\" = %14\n");
  const Graph ordered = read_soon(graph);
  verify(ordered);
  EXPECT_EQ(to_string(ordered),
            "%0 = input \"x\" : f64 (4, 1, 4, 4)\n"
            "%1 = parameter \"w\" : f64 (1, 1, 1, 1)\n"
            "%2 = parameter \"v\" : f64 (1, 1, 1, 1)\n"
            "%3 = conv(%0, %1) {x=4x1x4x4 w=1x1x1x1 stride=1,1 padding=0,0 dilation=1,1 groups=1} "
            ": f64 (4, 1, 4, 4)\n"
            "%4 = relu(%3) : f64 (4, 1, 4, 4)\n"
            "%5 = conv(%4, %2) {x=4x1x4x4 w=1x1x1x1 stride=1,1 padding=0,0 dilation=1,1 groups=1} "
            ": f64 (4, 1, 4, 4)\n"
            "%6 = relu(%5) : f64 (4, 1, 4, 4)\n"
            "%7 = max_pool(%6) {x=4x1x4x4 kernel=2,2 stride=2,2 padding=0,0 dilation=1,1} : f64 "
            "(4, 1, 2, 2), leaves taps (4, 1, 2, 2)\n"
            "%8 = sum_to(%7) : f64 (1, 1, 1, 1)\n"
            "%9 = reshape(%8) : f64 ()\n"
            "%10 = constant : f64 (4, 1, 2, 2)\n"
            "%11 = max_pool_scatter(%10; %7.workspace) {x=4x1x4x4 kernel=2,2 stride=2,2 "
            "padding=0,0 dilation=1,1} : f64 (4, 1, 4, 4)\n"
            "%12 = gate(%11, %6) {low=0 high=inf} : f64 (4, 1, 4, 4)\n"
            "%13 = conv_weight_grad(%4, %12) {x=4x1x4x4 w=1x1x1x1 stride=1,1 padding=0,0 "
            "dilation=1,1 groups=1} : f64 (1, 1, 1, 1)\n"
            "%14 = conv_input_grad(%12, %2) {x=4x1x4x4 w=1x1x1x1 stride=1,1 padding=0,0 "
            "dilation=1,1 groups=1} : f64 (4, 1, 4, 4)\n"
            "%15 = gate(%14, %4) {low=0 high=inf} : f64 (4, 1, 4, 4)\n"
            "%16 = conv_weight_grad(%0, %15) {x=4x1x4x4 w=1x1x1x1 stride=1,1 padding=0,0 "
            "dilation=1,1 groups=1} : f64 (1, 1, 1, 1)\n"
            "output \"loss\" = %9\n"
            "output \"w_bar\" = %16\n"
            "output \"v_bar\" = %13\n");
}

TEST(BatchTiling, AConvolutionItsActivationAndItsPoolBecomeAGroup) {
  Builder<double> builder;
  const auto x = builder.input({5, 1, 4, 4}, "x");
  const auto w = builder.parameter({2, 1, 3, 3}, "w");
  const auto b = builder.parameter({2}, "b");
  const auto y = max_pool(relu(conv(x, w, b, {.padding = 1})), {.kernel = 2});
  builder.output(y, "y");
  // The sum over the samples needs all of them: no member, and nothing after it is.
  builder.output(exp(sum(y, {.axes = {0}})), "z");
  const Graph tiled = tile_batch(builder.graph(), kSmallestPieces);
  verify(tiled);
  EXPECT_EQ(to_string(tiled),
            "%0 = input \"x\" : f64 (5, 1, 4, 4)\n"
            "%1 = parameter \"w\" : f64 (2, 1, 3, 3)\n"
            "%2 = parameter \"b\" : f64 (2,)\n"
            "%3 = conv(%0, %1, %2) {x=5x1x4x4 w=2x1x3x3 stride=1,1 padding=1,1 dilation=1,1 "
            "groups=1} : f64 (5, 2, 4, 4)\n"
            "%4 = relu(%3) : f64 (5, 2, 4, 4)\n"
            "%5 = max_pool(%4) {x=5x2x4x4 kernel=2,2 stride=2,2 padding=0,0 dilation=1,1} : f64 "
            "(5, 2, 2, 2), leaves taps (5, 2, 2, 2)\n"
            "%6 = sum_to(%5) : f64 (1, 2, 2, 2)\n"
            "%7 = reshape(%6) : f64 (2, 2, 2)\n"
            "%8 = exp(%7) : f64 (2, 2, 2)\n"
            "group %3 %4 %5: 5 samples, 1 at a time\n"
            "output \"y\" = %5\n"
            "output \"z\" = %8\n");
}

TEST(BatchTiling, AChainOfElementwiseOperationsBecomesAGroup) {
  Builder<double> builder;
  const auto x = builder.input({6, 3}, "x");
  const auto scales = builder.parameter({3, 1}, "scales");
  const auto columns = reshape(x, {6, 3, 1});
  builder.output(tanh(add(mul(columns, scales), columns)), "y");
  BatchTilingOptions options = kSmallestPieces;
  options.cache_bytes = 2 * (3 * 3 * sizeof(double) + 1);  // two samples of the sum
  const Graph tiled = tile_batch(builder.graph(), options);
  verify(tiled);
  EXPECT_EQ(to_string(tiled),
            "%0 = input \"x\" : f64 (6, 3)\n"
            "%1 = parameter \"scales\" : f64 (3, 1)\n"
            "%2 = reshape(%0) : f64 (6, 3, 1)\n"
            "%3 = mul(%2, %1) : f64 (6, 3, 1)\n"
            "%4 = add(%3, %2) : f64 (6, 3, 1)\n"
            "%5 = tanh(%4) : f64 (6, 3, 1)\n"
            "group %3 %4 %5: 6 samples, 2 at a time\n"
            "output \"y\" = %5\n");
}

TEST(BatchTiling, LeavesAloneWhatMovesLittle) {
  Builder<double> builder;
  builder.output(tanh(exp(builder.input({6, 3}, "x"))), "y");
  EXPECT_EQ(tile_batch(builder.graph(), kSmallestPieces).groups().size(), 1u);
  EXPECT_TRUE(tile_batch(builder.graph(), {}).groups().empty());
}

// --- The verifier ------------------------------

/// %2 and %3 treat samples one by one; %4 does not.
Graph group_graph() {
  Builder<double> builder;
  const auto x = builder.input({4, 4}, "x");
  builder.input({4, 4}, "unused");
  builder.output(sum(tanh(exp(x)), {.axes = {0}}), "sum");
  return builder.graph();
}

ErrorCode code_of_group(Group group) {
  Graph graph = group_graph();
  graph.add_group(std::move(group));
  return code_of([&] { verify(graph); });
}

TEST(Verify, RefusesGroupsThatCannotRunInPieces) {
  EXPECT_EQ(code_of_group({{2, 3}, 4, 2}), ErrorCode::none);
  EXPECT_EQ(code_of_group({{}, 4, 2}), ErrorCode::invalid_graph);
  EXPECT_EQ(code_of_group({{2, 3}, 4, 0}), ErrorCode::invalid_graph);
  EXPECT_EQ(code_of_group({{1, 2}, 4, 2}), ErrorCode::invalid_graph) << "an input";
  EXPECT_EQ(code_of_group({{2, 99}, 4, 2}), ErrorCode::invalid_graph) << "no node";
  EXPECT_EQ(code_of_group({{2, 3}, 8, 2}), ErrorCode::shape_mismatch) << "other samples";
  EXPECT_EQ(code_of_group({{2, 3, 4}, 4, 2}), ErrorCode::shape_mismatch) << "sums samples";
}

TEST(Verify, RefusesAGroupOfWhichOneMemberReadsAnotherWhole) {
  Builder<double> builder;
  const auto kernels = exp(builder.input({4, 1, 1, 1}, "kernels"));
  const auto y = conv(builder.input({4, 1, 2, 2}, "x"), kernels);
  builder.output(y, "y");
  Graph graph = builder.graph();
  graph.add_group({{kernels.node(), y.node()}, 4, 2});
  EXPECT_EQ(code_of([&] { verify(graph); }), ErrorCode::invalid_graph);
}

// --- The same bits ------------------------------

/// What a form gives, run twice so that what is written in place counts, and what it is given
/// then holds.
std::vector<Tensor<double>> results_of(const Program<double>& program,
                                       ProgramForm form,
                                       std::vector<Tensor<double>> values,
                                       const std::vector<Tensor<Index>>& data) {
  std::vector<RunArgument> arguments;
  std::size_t value = 0;
  std::size_t index = 0;
  for (const NodeId id : program.plan(form).arguments()) {
    if (program.plan(form).graph().node(id).type == DataType::index) {
      arguments.emplace_back(data[index++]);
    } else {
      arguments.emplace_back(values[value++]);
    }
  }
  Context<double> context(program);
  std::vector<Tensor<double>> results = program.execute_new(form, context, arguments);
  for (const Tensor<double>& again : program.execute_new(form, context, arguments)) {
    results.push_back(again);
  }
  results.insert(results.end(), values.begin(), values.end());
  return results;
}

/// `compiled` takes options: pieces in one, two and three workers against no groups at all.
template <class F>
void expect_same_bits(const F& compiled,
                      ProgramForm form,
                      const std::vector<Tensor<double>>& values,
                      const std::vector<Tensor<Index>>& data = {},
                      const BatchTilingOptions& batch_tiling = kSmallestPieces) {
  const std::vector<Tensor<double>> needed =
      results_of(compiled(CompileOptions{.batch_tiling = std::nullopt}), form, values, data);
  for (const int workers : {1, 2, 3}) {
    const Program<double> program =
        compiled(CompileOptions{.threads = workers, .batch_tiling = batch_tiling});
    EXPECT_FALSE(program.plan(form).loops().empty());
    EXPECT_EQ(results_of(program, form, values, data), needed) << workers << " workers";
  }
}

template <class Model>
constexpr auto kForward = [](const auto& parameters, const auto& x) {
  using V = std::remove_cvref_t<decltype(x)>;
  return Model::template forward<V>(std::span<const V>(parameters), x);
};

template <class Model>
std::vector<Tensor<double>> parameters_of() {
  Random random(1);
  return Model::template initial<double>(random);
}

/// Values, then one more for each of `more`.
std::vector<Tensor<double>> with_samples_of(std::vector<Tensor<double>> values,
                                            const std::vector<Shape>& more) {
  constexpr std::size_t kSeeds = 20;
  for (const Shape& shape : more) {
    values.push_back(sample_tensor<double>(shape, static_cast<int>(values.size() % kSeeds)));
  }
  return values;
}

TEST(Pieces, ALeNetLearnsTheSame) {
  const auto parameters = parameters_of<nn::LeNet5>();
  const auto loss = [](const auto& p, const auto& x, const auto& labels) {
    return cross_entropy(kForward<nn::LeNet5>(p, x), labels);
  };
  const Shape x{5, 1, 28, 28};
  std::vector<Tensor<double>> values = with_samples_of(parameters, {x});
  values.emplace_back(Shape{}, 0.1);
  expect_same_bits(
      [&](const CompileOptions& options) {
        return compile_step<double>(SgdUpdate{}, loss, parameters, x, DataShape{{5}}, options);
      },
      ProgramForm::run,
      values,
      {Tensor<Index>({5}, {0, 9, 3, 3, 5})});
}

TEST(Pieces, ALeNetDerivesTheSame) {
  const auto parameters = parameters_of<nn::LeNet5>();
  const Shape x{3, 1, 28, 28};
  const auto compiled = [&](CompileOptions options) {
    options.vjp = true;
    options.jvp = true;
    return compile<double>(kForward<nn::LeNet5>, parameters, x, options);
  };
  const auto values = with_samples_of(parameters, {x});
  std::vector<Shape> dots = nn::LeNet5::parameters();
  dots.push_back(x);
  expect_same_bits(compiled, ProgramForm::run, values);
  expect_same_bits(compiled, ProgramForm::vjp, with_samples_of(values, {{3, 10}}));
  expect_same_bits(compiled, ProgramForm::jvp, with_samples_of(values, dots));
}

TEST(Pieces, AUNetLearnsTheSame) {
  const auto parameters = parameters_of<nn::UNet>();
  const auto loss = [](const auto& p, const auto& x, const auto& mask) {
    return bce_with_logits(kForward<nn::UNet>(p, x), mask);
  };
  const Shape x{3, 3, 8, 8};
  const Shape mask{3, 1, 8, 8};
  std::vector<Tensor<double>> values = with_samples_of(parameters, {x, mask});
  values.emplace_back(Shape{}, 0.1);
  expect_same_bits(
      [&](const CompileOptions& options) {
        return compile_step<double>(SgdUpdate{}, loss, parameters, x, mask, options);
      },
      ProgramForm::run,
      values);
}

TEST(Pieces, AResidualNetworkInfersTheSame) {
  const auto parameters = parameters_of<nn::ResNet18>();
  const auto statistics = nn::ResNet18::initial_statistics<double>();
  const auto infer = [](const auto& p, const auto& s, const auto& x) {
    using V = std::remove_cvref_t<decltype(x)>;
    return nn::ResNet18::infer<V>(std::span<const V>(p), std::span<const V>(s), x);
  };
  const Shape x{3, 3, 32, 32};
  std::vector<Tensor<double>> values = parameters;
  values.insert(values.end(), statistics.begin(), statistics.end());
  expect_same_bits(
      [&](const CompileOptions& options) {
        return compile<double>(infer, parameters, statistics, x, options);
      },
      ProgramForm::run,
      with_samples_of(values, {x}));
}

/// What becomes of the parameters in a run of the graph, which is given `given` first.
std::vector<Tensor<double>> updated(const Program<double>& program,
                                    std::vector<Tensor<double>> parameters,
                                    const Tensor<double>& arguments) {
  Context<double> context(program);
  std::vector<RunArgument> all{arguments};
  all.insert(all.end(), parameters.begin(), parameters.end());
  program.execute_new(ProgramForm::run, context, all);
  return parameters;
}

TEST(Pieces, AGroupReplacesParametersWhereTheyLie) {
  const Shape shape{5, 3};
  Builder<double> builder;
  const auto g = builder.input(shape, "g");
  const auto w = builder.parameter(shape, "w");
  const auto velocity = builder.parameter(shape, "velocity");
  const auto now = add(scale(velocity, 0.5), tanh(g));
  builder.update(velocity, now);
  builder.update(w, sub(w, scale(now, 0.25)));
  const std::vector<Tensor<double>> start{sample_tensor<double>(shape, 1),
                                          sample_tensor<double>(shape, 2)};
  const Tensor<double> arguments = sample_tensor<double>(shape, 3);
  const auto whole = compile<double>(builder.graph(), {.batch_tiling = std::nullopt});
  for (const int workers : {1, 2}) {
    const auto pieces =
        compile<double>(builder.graph(), {.threads = workers, .batch_tiling = kSmallestPieces});
    ASSERT_EQ(pieces.plan().loops().size(), 1u);
    EXPECT_TRUE(pieces.plan().copies().empty());
    EXPECT_EQ(updated(pieces, start, arguments), updated(whole, start, arguments));
  }
}

TEST(Pieces, AParameterThatAGroupReadsWholeIsReplacedAfterIt) {
  const Shape shape{2, 2, 1, 1};
  Builder<double> builder;
  const auto x = builder.input(shape, "x");
  const auto w = builder.parameter(shape, "w");
  builder.update(w, tanh(tanh(conv(x, w))));
  const std::vector<Tensor<double>> start{sample_tensor<double>(shape, 1)};
  const Tensor<double> arguments = sample_tensor<double>(shape, 2);
  const auto whole = compile<double>(builder.graph(), {.batch_tiling = std::nullopt});
  const auto pieces =
      compile<double>(builder.graph(), {.threads = 1, .batch_tiling = kSmallestPieces});
  ASSERT_EQ(pieces.plan().loops().size(), 1u);
  EXPECT_EQ(pieces.plan().copies().size(), 1u);
  EXPECT_EQ(updated(pieces, start, arguments), updated(whole, start, arguments));
}

TEST(Pieces, TheLastPieceMayBeSmaller) {
  const auto model = [](const auto& x, const auto& w) {
    return max_pool(relu(conv(x, w, {.padding = 1})), {.kernel = 2});
  };
  const Shape x{5, 2, 6, 6};
  const Shape w{3, 2, 3, 3};
  // The rectifier reads and writes 3 channels of 36 doubles.
  BatchTilingOptions batch_tiling = kSmallestPieces;
  batch_tiling.cache_bytes = 2 * (6 * 36 * sizeof(double) + 1);
  const auto compiled = [&](CompileOptions options) {
    options.vjp = true;
    return compile<double>(model, x, w, options);
  };
  const Plan plan = Plan(compiled({.threads = 1, .batch_tiling = batch_tiling}).plan().graph());
  ASSERT_EQ(plan.loops().size(), 1u);
  EXPECT_EQ(plan.loops()[0].piece, 2);
  EXPECT_NE(plan.steps()[0].rest, nullptr);
  const auto values = with_samples_of({}, {x, w});
  expect_same_bits(compiled, ProgramForm::run, values, {}, batch_tiling);
  expect_same_bits(
      compiled, ProgramForm::vjp, with_samples_of(values, {{5, 3, 3, 3}}), {}, batch_tiling);
}

}  // namespace
}  // namespace fenestra::graph

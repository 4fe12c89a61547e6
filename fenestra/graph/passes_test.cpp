// The graph, its verifier and its passes: prints before and after.
#include <fenestra/engine/differentiate.hpp>
#include <fenestra/graph/names.hpp>
#include <fenestra/graph/plan.hpp>
#include <fenestra/graph/schedule.hpp>
#include <fenestra/graph/simplify.hpp>
#include <fenestra/graph/testing_test.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace fenestra::graph {
namespace {

/// (x + x) * 2 + a constant, with a dead exponential.
Graph small_graph() {
  Builder<float> builder;
  const auto x = builder.input({2, 3}, "x");
  const auto w = builder.parameter({3}, "w");
  exp(x);
  const Value<float> two(Tensor<float>(Shape{}, 2.0f));
  builder.output(mul(add(x, w), two), "y");
  builder.output(mul(add(x, w), two), "again");
  return builder.graph();
}

TEST(Graph, PrintsOneNodeToALine) {
  EXPECT_EQ(to_string(small_graph()),
            "%0 = input \"x\" : f32 (2, 3)\n"
            "%1 = parameter \"w\" : f32 (3,)\n"
            "%2 = exp(%0) : f32 (2, 3)\n"
            "%3 = add(%0, %1) : f32 (2, 3)\n"
            "%4 = constant 2 : f32 ()\n"
            "%5 = mul(%3, %4) : f32 (2, 3)\n"
            "%6 = add(%0, %1) : f32 (2, 3)\n"
            "%7 = constant 2 : f32 ()\n"
            "%8 = mul(%6, %7) : f32 (2, 3)\n"
            "output \"y\" = %5\n"
            "output \"again\" = %8\n");
}

TEST(Graph, EliminateDeadKeepsWhatIsGivenAndWhatOutputsNeed) {
  EXPECT_EQ(to_string(eliminate_dead(small_graph())),
            "%0 = input \"x\" : f32 (2, 3)\n"
            "%1 = parameter \"w\" : f32 (3,)\n"
            "%2 = add(%0, %1) : f32 (2, 3)\n"
            "%3 = constant 2 : f32 ()\n"
            "%4 = mul(%2, %3) : f32 (2, 3)\n"
            "%5 = add(%0, %1) : f32 (2, 3)\n"
            "%6 = constant 2 : f32 ()\n"
            "%7 = mul(%5, %6) : f32 (2, 3)\n"
            "output \"y\" = %4\n"
            "output \"again\" = %7\n");
}

TEST(Graph, EliminateCommonMergesEqualOperationsAndConstants) {
  EXPECT_EQ(to_string(eliminate_common(small_graph())),
            "%0 = input \"x\" : f32 (2, 3)\n"
            "%1 = parameter \"w\" : f32 (3,)\n"
            "%2 = exp(%0) : f32 (2, 3)\n"
            "%3 = add(%0, %1) : f32 (2, 3)\n"
            "%4 = constant 2 : f32 ()\n"
            "%5 = mul(%3, %4) : f32 (2, 3)\n"
            "output \"y\" = %5\n"
            "output \"again\" = %5\n");
}

TEST(Graph, EliminateCommonKeepsOperationsWithOtherAttributesApart) {
  Builder<double> builder;
  const auto x = builder.input({4}, "x");
  builder.output(scale(x, 2), "two");
  builder.output(scale(x, 3), "three");
  builder.output(x + Tensor<double>({4}, 0.0), "plus");
  builder.output(x + Tensor<double>({4}, -0.0), "minus");
  EXPECT_EQ(eliminate_common(builder.graph()).size(), builder.graph().size());
}

/// 6 * 7 as nodes of a graph, and a broadcast of it.
Graph constant_graph(const Shape& shape) {
  Builder<double> builder;
  Graph graph = builder.graph();
  const auto shared = std::make_shared<Graph>();
  const Value<double> six(shared, shared->add_constant(Tensor<double>(Shape{}, 6.0)));
  const Value<double> seven(shared, shared->add_constant(Tensor<double>(Shape{}, 7.0)));
  const Value<double> y = broadcast_to(mul(six, seven), shape);
  shared->add_output(y.node(), "y");
  return *shared;
}

TEST(Graph, FoldConstantsComputesWhatIsKnown) {
  EXPECT_EQ(to_string(constant_graph({2})),
            "%0 = constant 6 : f64 ()\n"
            "%1 = constant 7 : f64 ()\n"
            "%2 = mul(%0, %1) : f64 ()\n"
            "%3 = broadcast_to(%2) : f64 (2,)\n"
            "output \"y\" = %3\n");
  const Graph folded = eliminate_dead(fold_constants(constant_graph({2})));
  EXPECT_EQ(to_string(folded), "%0 = constant : f64 (2,)\noutput \"y\" = %0\n");
  EXPECT_EQ(std::get<Tensor<double>>(folded.node(0).constant), Tensor<double>({2}, 42.0));
}

TEST(Graph, FoldConstantsDoesNotGrowMemory) {
  const Graph folded = eliminate_dead(fold_constants(constant_graph({1000})));
  EXPECT_EQ(to_string(folded),
            "%0 = constant 42 : f64 ()\n"
            "%1 = broadcast_to(%0) : f64 (1000,)\n"
            "output \"y\" = %1\n");
}

TEST(Graph, ReverseAppendsOnlyNeededGradients) {
  Builder<double> builder;
  const auto x = builder.input({3}, "x");
  const auto w = builder.parameter({3}, "w");
  builder.output(sum(mul(x, w)), "loss");
  const std::size_t first[] = {0};
  const NodeId wrt[] = {w.node()};
  const Graph reversed = eliminate_dead(reverse(builder.graph(), first, wrt, Seed::one));
  EXPECT_EQ(to_string(reversed),
            "%0 = input \"x\" : f64 (3,)\n"
            "%1 = parameter \"w\" : f64 (3,)\n"
            "%2 = mul(%0, %1) : f64 (3,)\n"
            "%3 = sum_to(%2) : f64 (1,)\n"
            "%4 = reshape(%3) : f64 ()\n"
            "%5 = constant 1 : f64 ()\n"
            "%6 = reshape(%5) : f64 (1,)\n"
            "%7 = broadcast_to(%6) : f64 (3,)\n"
            "%8 = mul(%7, %0) : f64 (3,)\n"
            "output \"loss\" = %4\n"
            "output \"w_bar\" = %8\n");
}

TEST(Differentiate, AddsTheCotangentsOfAnInputThatIsTwoOutputs) {
  Builder<double> builder;
  const auto x = builder.input({2}, "x");
  builder.output(x, "y");
  builder.output(x, "z");
  const std::vector<std::size_t> both{0, 1};
  const Program<double> program(
      reverse(builder.graph(), both, differentiable(builder.graph()), Seed::input));
  Context<double> context(program);
  const auto results = program.run(context,
                                   Tensor<double>(Shape{2}, 1.0),
                                   Tensor<double>(Shape{2}, 3.0),
                                   Tensor<double>(Shape{2}, 4.0));
  EXPECT_EQ(results.at(2), Tensor<double>(Shape{2}, 7.0));
}

TEST(Graph, ForwardTakesATangentPerInput) {
  Builder<double> builder;
  const auto x = builder.input({3}, "x");
  builder.output(mul(x, x), "y");
  const NodeId wrt[] = {x.node()};
  EXPECT_EQ(to_string(eliminate_dead(forward(builder.graph(), wrt))),
            "%0 = input \"x\" : f64 (3,)\n"
            "%1 = mul(%0, %0) : f64 (3,)\n"
            "%2 = input \"x_dot\" : f64 (3,)\n"
            "%3 = mul(%2, %0) : f64 (3,)\n"
            "%4 = mul(%2, %0) : f64 (3,)\n"
            "%5 = add(%3, %4) : f64 (3,)\n"
            "output \"y\" = %1\n"
            "output \"y_dot\" = %5\n");
}

TEST(Graph, GradientsOfWhatNothingDependsOnAreZeros) {
  Builder<double> builder;
  const auto x = builder.input({2}, "x");
  builder.input({2}, "unused");
  builder.output(sum(x), "loss");
  const std::size_t first[] = {0};
  const std::vector<NodeId> wrt = differentiable(builder.graph());
  const Program<double> program(reverse(builder.graph(), first, wrt, Seed::one));
  Context<double> context(program);
  const auto results =
      program.run(context, Tensor<double>({2}, {1.0, 2.0}), Tensor<double>({2}, {3.0, 4.0}));
  EXPECT_EQ(results[1], Tensor<double>({2}, 1.0));
  EXPECT_EQ(results[2], Tensor<double>({2}, 0.0));
}

TEST(Graph, ASeedOfOneNeedsASingleElement) {
  Builder<double> builder;
  builder.output(exp(builder.input({2}, "x")), "y");
  const std::size_t first[] = {0};
  EXPECT_EQ(
      code_of([&] { reverse(builder.graph(), first, differentiable(builder.graph()), Seed::one); }),
      ErrorCode::shape_mismatch);
}

TEST(Verify, AcceptsWhatTheBuilderMakes) { EXPECT_NO_THROW(verify(small_graph())); }

TEST(Verify, RefusesAReaderBeforeItsInput) {
  const Graph good = small_graph();
  Graph bad;
  bad.append(good.node(0));
  Node node = good.node(2);
  node.in = {1};
  bad.append(node);
  EXPECT_EQ(code_of([&] { verify(bad); }), ErrorCode::invalid_graph);
}

TEST(Verify, RefusesAShapeThatTheOperationDoesNotGive) {
  const Graph good = small_graph();
  Graph bad;
  bad.append(good.node(0));
  Node node = good.node(2);
  node.shape = Shape{3, 2};
  bad.append(node);
  EXPECT_EQ(code_of([&] { verify(bad); }), ErrorCode::shape_mismatch);
  try {
    verify(bad);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("%1 = exp"), std::string::npos) << error.what();
  }
}

TEST(Verify, RefusesAnotherType) {
  const Graph good = small_graph();
  Graph bad;
  bad.add_input(DataType::f64, {2, 3}, "x");
  bad.append(good.node(2));
  EXPECT_EQ(code_of([&] { verify(bad); }), ErrorCode::dtype_mismatch);
}

TEST(Verify, RefusesAnOutputThatDoesNotExist) {
  Graph bad = small_graph();
  bad.add_output(99, "nowhere");
  EXPECT_EQ(code_of([&] { verify(bad); }), ErrorCode::invalid_graph);
}

TEST(Verify, RefusesToOverwriteAnInput) {
  Graph bad = small_graph();
  bad.add_output(3, "y", 0);
  EXPECT_EQ(code_of([&] { verify(bad); }), ErrorCode::invalid_graph);
}

TEST(Verify, RefusesToOverwriteAParameterTwiceOrByAnotherShape) {
  Graph bad;
  const NodeId w = bad.add_parameter(DataType::f32, {2, 3}, "w");
  const NodeId v = bad.add_parameter(DataType::f32, {3, 2}, "v");
  bad.add_output(w, "first", w);
  EXPECT_NO_THROW(verify(bad));
  Graph other = bad;
  bad.add_output(w, "second", w);
  EXPECT_EQ(code_of([&] { verify(bad); }), ErrorCode::invalid_graph);
  other.add_output(w, "second", v);
  EXPECT_EQ(code_of([&] { verify(other); }), ErrorCode::shape_mismatch);
}

TEST(Verify, RefusesIndicesOfANodeThatLeavesNone) {
  Builder<float> builder;
  const auto x = builder.input({1, 4}, "x");
  const auto labels = builder.data({1}, "labels");
  builder.output(cross_entropy(x, labels), "loss");
  Graph bad;
  for (Node node : builder.graph().nodes()) {
    for (NodeId& input : node.data) {
      input = 0;
    }
    bad.append(node);
  }
  EXPECT_EQ(code_of([&] { verify(bad); }), ErrorCode::dtype_mismatch);
}

/// The loss of x times one parameter after another, and all of them moved at the end.
Graph update_graph(int layers, const Shape& shape) {
  Builder<double> builder;
  auto y = builder.input(shape, "x");
  std::vector<NodeId> parameters;
  for (int i = 0; i < layers; ++i) {
    const auto w = builder.parameter(shape, "w" + std::to_string(i));
    parameters.push_back(w.node());
    y = matmul(y, w);
  }
  builder.output(sum(y), "loss");
  const std::size_t first[] = {0};
  Graph reversed = reverse(builder.graph(), first, parameters, Seed::one);
  const std::vector<Output> outputs = reversed.outputs();
  reversed.clear_outputs();
  reversed.add_output(outputs[0].node, outputs[0].name);
  Builder<double> step(std::move(reversed));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto w = step.value(parameters[i]);
    step.update(w, sub(w, step.value(outputs[i + 1].node)));
  }
  return simplify(step.graph());
}

TEST(Graph, UpdateEarlyReplacesAParameterAfterItsLastReader) {
  const Graph graph = update_graph(3, {1, 1});
  EXPECT_EQ(to_string(graph),
            "%0 = input \"x\" : f64 (1, 1)\n"
            "%1 = parameter \"w0\" : f64 (1, 1)\n"
            "%2 = matmul(%0, %1) {a b} : f64 (1, 1)\n"
            "%3 = parameter \"w1\" : f64 (1, 1)\n"
            "%4 = matmul(%2, %3) {a b} : f64 (1, 1)\n"
            "%5 = parameter \"w2\" : f64 (1, 1)\n"
            "%6 = matmul(%4, %5) {a b} : f64 (1, 1)\n"
            "%7 = reshape(%6) : f64 ()\n"
            "%8 = constant 1 : f64 (1, 1)\n"
            "%9 = matmul(%8, %5) {a b'} : f64 (1, 1)\n"
            "%10 = matmul(%4, %8) {a' b} : f64 (1, 1)\n"
            "%11 = matmul(%9, %3) {a b'} : f64 (1, 1)\n"
            "%12 = matmul(%2, %9) {a' b} : f64 (1, 1)\n"
            "%13 = matmul(%0, %11) {a' b} : f64 (1, 1)\n"
            "%14 = sub(%1, %13) : f64 (1, 1)\n"
            "%15 = sub(%3, %12) : f64 (1, 1)\n"
            "%16 = sub(%5, %10) : f64 (1, 1)\n"
            "output \"loss\" = %7\n"
            "output \"w0\" = %14 over %1\n"
            "output \"w1\" = %15 over %3\n"
            "output \"w2\" = %16 over %5\n");
  // What is given comes first, whoever reads it.
  const Graph ordered = update_early(graph);
  verify(ordered);
  EXPECT_EQ(to_string(ordered),
            "%0 = input \"x\" : f64 (1, 1)\n"
            "%1 = parameter \"w0\" : f64 (1, 1)\n"
            "%2 = parameter \"w1\" : f64 (1, 1)\n"
            "%3 = parameter \"w2\" : f64 (1, 1)\n"
            "%4 = constant 1 : f64 (1, 1)\n"
            "%5 = matmul(%0, %1) {a b} : f64 (1, 1)\n"
            "%6 = matmul(%5, %2) {a b} : f64 (1, 1)\n"
            "%7 = matmul(%6, %4) {a' b} : f64 (1, 1)\n"
            "%8 = matmul(%6, %3) {a b} : f64 (1, 1)\n"
            "%9 = reshape(%8) : f64 ()\n"
            "%10 = matmul(%4, %3) {a b'} : f64 (1, 1)\n"
            "%11 = sub(%3, %7) : f64 (1, 1)\n"
            "%12 = matmul(%10, %2) {a b'} : f64 (1, 1)\n"
            "%13 = matmul(%5, %10) {a' b} : f64 (1, 1)\n"
            "%14 = sub(%2, %13) : f64 (1, 1)\n"
            "%15 = matmul(%0, %12) {a' b} : f64 (1, 1)\n"
            "%16 = sub(%1, %15) : f64 (1, 1)\n"
            "output \"loss\" = %9\n"
            "output \"w0\" = %16 over %1\n"
            "output \"w1\" = %14 over %2\n"
            "output \"w2\" = %11 over %3\n");
}

TEST(Plan, UpdatingEarlyNeedsLessMemory) {
  const Graph graph = update_graph(8, {16, 16});
  const std::size_t one = 16 * 16 * sizeof(double);
  const std::size_t late = Plan(graph).arena_bytes();
  const std::size_t early = Plan(update_early(graph)).arena_bytes();
  // Seven activations between layers wait for the backward pass; beside them late updates keep
  // eight gradients, early ones what a layer needs.
  EXPECT_GE(late, 8 * one);
  EXPECT_LE(early, (7 + 3) * one);
  EXPECT_LT(early, late);
}

// --- Placement ------------------------------

TEST(Plan, AChainOfElementwiseFunctionsRunsInTheOutput) {
  Builder<float> builder;
  const auto x = builder.input({64}, "x");
  builder.output(relu(tanh(exp(x))), "y");
  const Plan plan(builder.graph());
  EXPECT_EQ(plan.arena_bytes(), 0u);
  for (const Step& step : plan.steps()) {
    EXPECT_EQ(plan.result(step.node), (Place{Place::Kind::output, 0, 0}));
  }
}

TEST(Plan, WhatIsReadLaterIsNotOverwritten) {
  Builder<float> builder;
  const auto x = builder.input({64}, "x");
  const auto y = exp(x);
  builder.output(mul(tanh(y), y), "z");
  const Plan plan(builder.graph());
  // tanh(y) cannot take the place of y; the product takes that of one of the two.
  EXPECT_EQ(plan.arena_bytes(), 64 * sizeof(float));
}

TEST(Plan, BuffersShareMemoryWhenTheirLivesDoNotOverlap) {
  Builder<float> builder;
  auto x = builder.input({1, 4, 8, 8}, "x");
  const Tensor<float> w({4, 4, 3, 3}, 0.1f);
  for (int i = 0; i < 6; ++i) {
    x = conv(x, w, {.padding = 1});
  }
  builder.output(x, "y");
  const Plan plan(builder.graph());
  // Five results in the arena, two of which live at a time.
  EXPECT_EQ(plan.arena_bytes(), 2 * 4 * 8 * 8 * sizeof(float));
}

TEST(Plan, AReshapeMovesNothing) {
  Builder<float> builder;
  const auto x = builder.input({4, 6}, "x");
  builder.output(exp(reshape(x, Shape{24})), "y");
  const Plan plan(builder.graph());
  EXPECT_EQ(plan.steps().size(), 1u);
  EXPECT_EQ(plan.result(1), plan.result(0));
}

TEST(Plan, AWorkspaceIsKeptOnlyWhereSomebodyReadsIt) {
  const auto model = [](const auto& x) { return max_pool(x, {.kernel = 2}); };
  const Program<float> program =
      compile<float>(model, Shape{1, 1, 4, 4}, CompileOptions{.vjp = true});
  const auto kept = [&](ProgramForm form) {
    const Plan& plan = program.plan(form);
    return std::any_of(plan.steps().begin(), plan.steps().end(), [&](const Step& step) {
      return plan.workspace(step.node).kind != Place::Kind::none;
    });
  };
  EXPECT_FALSE(kept(ProgramForm::run));
  EXPECT_TRUE(kept(ProgramForm::vjp));
}

TEST(Graph, NamesOfOperationsAreKeptByPassesAndTakenOnByDerivatives) {
  Builder<double> builder;
  const auto x = builder.input({4, 6}, "x");
  const auto w = builder.parameter({6}, "w");
  const auto first = mul(x, w);
  const NodeId end_of_first = builder.graph().size();
  builder.output(sum(mul(exp(first), first)), "loss");
  std::vector<std::string> names(static_cast<std::size_t>(end_of_first), "first");
  names.resize(static_cast<std::size_t>(builder.graph().size()), "second");
  const Graph named = with_names(builder.graph(), names);
  EXPECT_EQ(to_string(named), to_string(builder.graph()));
  EXPECT_EQ(named.node(0).name, "x") << "what is given keeps its own";

  const std::size_t outputs[] = {0};
  const NodeId wrt[] = {1};
  const Graph step = reverse(named, outputs, wrt, Seed::one);
  EXPECT_EQ(to_string(step), to_string(reverse(builder.graph(), outputs, wrt, Seed::one)));
  std::set<std::string> parts;
  for (const Graph& graph : {step, simplify(step)}) {
    for (const Node& node : graph.nodes()) {
      if (node.operation) {
        parts.insert(node.name);
      }
    }
  }
  EXPECT_EQ(parts, (std::set<std::string>{"first", "second", "first backward", "second backward"}));
}

TEST(Graph, APartAndItsDerivativeAreToldApart) {
  EXPECT_EQ(backward_name("stage.0.conv"), "stage.0.conv backward");
  EXPECT_EQ(backward_name(""), "");
  EXPECT_EQ(part_name("conv backward").part, "conv");
  EXPECT_TRUE(part_name("conv backward").is_backward);
  EXPECT_EQ(part_name("backward").part, "backward");
  EXPECT_FALSE(part_name("backward").is_backward);
}

}  // namespace
}  // namespace fenestra::graph

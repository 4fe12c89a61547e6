// Networks made of models: what they hold, run, differentiate and train.
#include <fenestra/base/key.hpp>
#include <fenestra/engine/differentiate.hpp>
#include <fenestra/fenestra.hpp>
#include <fenestra/graph/report.hpp>
#include <fenestra/io/onnx/small_models_test.hpp>
#include <fenestra/nn/summary.hpp>
#include <fenestra/nn/trainer.hpp>
#include <fenestra/nn/trainer_program.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

namespace fenestra::onnx::small {
namespace {

/// conv, batch norm, hard-swish by a scalar, pool, head; the statistics of the norm come through an
/// Identity, as exporters share them.
Model classifier() {
  Model m = model(13,
                  {node("Conv", {"x", "conv.w", "conv.b"}, {"a"}, {integers("pads", {1, 1, 1, 1})}),
                   node("Identity", {"mean"}, {"shared_mean"}),
                   node("BatchNormalization", {"a", "gamma", "beta", "shared_mean", "var"}, {"n"}),
                   node("Add", {"n", "three"}, {"shifted"}),
                   node("Clip", {"shifted", "zero", "six"}, {"clipped"}),
                   node("Mul", {"n", "clipped"}, {"p"}),
                   node("GlobalAveragePool", {"p"}, {"pooled"}),
                   node("Flatten", {"pooled"}, {"flat"}),
                   node("Gemm", {"flat", "head.w", "head.b"}, {"y"}, {integer("transB", 1)}),
                   node("Floor", {"unused"}, {"nobody"})},
                  {"x"},
                  {"y"});
  m.graph.initializers = {weight("conv.w", Shape{4, 2, 3, 3}),
                          weight("conv.b", Shape{4}),
                          weight("gamma", Shape{4}, 1.5F),
                          weight("beta", Shape{4}),
                          weight("mean", Shape{4}),
                          weight("var", Shape{4}, 2.0F),
                          weight("three", Shape{}, 3.0F),
                          weight("zero", Shape{}, 0.0F),
                          weight("six", Shape{}, 6.0F),
                          weight("head.w", Shape{3, 4}),
                          weight("head.b", Shape{3}),
                          weight("unused", Shape{5})};
  return m;
}

TEST(Network, WeightsHaveTheNamesOfInitialisersAndStatisticsAreBuffers) {
  Network<float> net(classifier());
  std::string found;
  for (const nn::Slot<float>& slot : nn::slots<float>(net)) {
    found += slot.name + (slot.trained ? " " : "* ");
  }
  EXPECT_EQ(found, "conv.w conv.b gamma beta mean* var* head.w head.b ");
  EXPECT_TRUE(net.cut_off().empty());
  const auto code_of_training = [&](std::string_view name) {
    try {
      net.set_trained(name, true);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::none;
  };
  EXPECT_EQ(code_of_training("mean"), ErrorCode::unknown_choice);
  EXPECT_EQ(code_of_training("nothing"), ErrorCode::unknown_choice);
}

/// How far two ways of computing `classifier` may be apart: every number on the way replaced by a
/// bound of its absolute value, times the roundings along the longest path, for both.
Tensor<double> classifier_bound(const Network<double>& net, const Tensor<double>& x) {
  const auto w = [&](std::string_view name) {
    return abs(net.find_weight(name)->value().tensor());
  };
  const Tensor<double> a = conv(abs(x), w("conv.w"), w("conv.b"), {.padding = 1});
  // -(-mean): what is taken off may add up, too. Statistics folded into the weights make the same
  // products.
  const Tensor<double> n = batch_norm_inference(
      a, -w("mean"), w("var"), w("gamma"), w("beta"), {.eps = static_cast<double>(1e-5F)});
  const Tensor<double> p = n * (n + 6);  // the slope of n clip(n + 3, 0, 6)
  const Tensor<double> y = linear(mean(p, {.axes = {2, 3}}), w("head.w"), w("head.b"));
  // Conv 18 products and a bias, norm 6, activation 3, mean of 25, head 4 products and a bias.
  constexpr double kPath = 19 + 6 + 3 + 26 + 6;
  return y * (2 * kPath * 0x1p-53);
}

TEST(Network, ComputesWhatItsOperatorsComputeByThemselves) {
  const Network<double> net(classifier());
  const auto w = [&](std::string_view name) { return net.find_weight(name)->value().tensor(); };
  const Tensor<double> x = drawn<double>(Shape{2, 2, 5, 5});
  const Tensor<double> a = conv(x, w("conv.w"), w("conv.b"), {.padding = 1});
  const Tensor<double> n = batch_norm_inference(
      a, w("mean"), w("var"), w("gamma"), w("beta"), {.eps = static_cast<double>(1e-5F)});
  const Tensor<double> p = n * clip(n + 3, 0, 6);
  const Tensor<double> y = linear(mean(p, {.axes = {2, 3}}), w("head.w"), w("head.b"));
  EXPECT_EQ(net(x), y);  // the same operators in the same order
}

TEST(Network, RunsCompiledBatchedAndDifferentiated) {
  const Network<double> net(classifier());
  const Tensor<double> x = drawn<double>(Shape{2, 2, 5, 5});
  const Tensor<double> y = net(x);

  const auto program = compile<double>([&](const Value<double>& v) { return net(v); }, x.shape());
  Context context(program);
  const Tensor<double> compiled = program.run(context, x)[0];
  const auto one = [&](const Value<double>& v) {
    return reshape(net(reshape(v, Shape{1, 2, 5, 5})), Shape{3});
  };
  const Tensor<double> mapped = vmap(one, over(x));
  const auto loss = [&](const Network<double>& n) { return sum(n(Value<double>(x))); };
  const auto [total, gradients] = value_and_grad(loss, net);
  const Tensor<double> bound = classifier_bound(net, x);
  for (Index i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(compiled[i], y[i], bound[i]);
    EXPECT_NEAR(mapped[i], y[i], bound[i]);
  }
  // The last bias is added to each of two samples.
  EXPECT_EQ(gradients.find_weight("head.b")->value().tensor(), Tensor<double>(Shape{3}, 2.0));
}

/// Two convolutions beside a shortcut, and a head.
Model residual() {
  Model m = model(13,
                  {node("Conv", {"x", "w", "b"}, {"a"}, {integers("pads", {1, 1, 1, 1})}),
                   node("BatchNormalization", {"a", "gamma", "beta", "mean", "var"}, {"n"}),
                   node("Relu", {"n"}, {"r"}),
                   node("Conv", {"r", "v"}, {"c"}, {integers("pads", {1, 1, 1, 1})}),
                   node("Add", {"c", "r"}, {"s"}),
                   node("Clip", {"s", "zero", "six"}, {"p"}),
                   node("HardSigmoid", {"p"}, {"h"}),
                   node("Mul", {"p", "h"}, {"z"}),
                   node("GlobalAveragePool", {"z"}, {"pooled"}),
                   node("Flatten", {"pooled"}, {"flat"}),
                   node("Gemm", {"flat", "head", "bias"}, {"y"}, {integer("transB", 1)})},
                  {"x"},
                  {"y"});
  m.graph.initializers = {weight("w", Shape{16, 8, 3, 3}),
                          weight("b", Shape{16}),
                          weight("gamma", Shape{16}, 1.5F),
                          weight("beta", Shape{16}),
                          weight("mean", Shape{16}),
                          weight("var", Shape{16}, 2.0F),
                          weight("v", Shape{16, 16, 3, 3}),
                          weight("zero", Shape{}, 0.0F),
                          weight("six", Shape{}, 6.0F),
                          weight("head", Shape{10, 16}),
                          weight("bias", Shape{10})};
  return m;
}

TEST(Network, CompiledInferencePacksWeightsFoldsNormsAndTakesInActivations) {
  const Network<float> net(residual());
  const auto program =
      compile<float>([&](const Value<float>& v) { return net(v); }, Shape{1, 8, 20, 20});
  const graph::Report report = graph::make_report(program.plan());
  std::string steps;
  for (const graph::ReportStep& step : report.steps) {
    steps += step.operation + (step.packed_bytes > 0 ? "* " : " ");
  }
  for (const graph::ReportValue& value : report.values) {
    EXPECT_EQ(value.kind == graph::NodeKind::constant, value.shape != (Shape{1, 8, 20, 20}));
  }
  EXPECT_EQ(steps, "conv+relu* conv+add+clip* chain sum_to div matmul* ");
}

TEST(Network, CompiledInferenceOfABatchGoesByPieces) {
  const Network<float> net(residual());
  const Shape x{64, 8, 20, 20};  // a piece is as many samples as a vector has lanes, or more
  const auto compiled = [&](const CompileOptions& options) {
    return compile<float>([&](const Value<float>& v) { return net(v); }, x, options);
  };
  const auto pieces = compiled({.threads = 1});
  const auto whole = compiled({.threads = 1, .batch_tiling = std::nullopt});
  // Both convolutions, what is taken in, and the chain behind them: a few samples at a time.
  ASSERT_EQ(pieces.plan().loops().size(), 1U);
  const graph::PieceLoop& loop = pieces.plan().loops()[0];
  EXPECT_EQ(loop.samples, 64);
  EXPECT_GT(loop.pieces(), 1);
  EXPECT_EQ(loop.first, 0U);
  EXPECT_GE(loop.end, 3U);
  EXPECT_TRUE(whole.plan().loops().empty());
  EXPECT_LT(pieces.plan().arena_bytes(), whole.plan().arena_bytes());
  const Tensor<float> images = drawn<float>(x);
  Context one(pieces);
  Context other(whole);
  EXPECT_EQ(pieces.run(one, images)[0], whole.run(other, images)[0]);
}

TEST(Network, IsTrainedByTheTrainerAndFrozenWeightsStay) {
  Network<float> net(classifier());
  net.set_trained("conv.w", false);
  const Tensor<float> before = net.find_weight("conv.w")->value().tensor();
  const Tensor<float> mean_before = net.find_weight("mean")->value().tensor();
  nn::Batch<float> batch;
  batch.inputs = drawn<float>(Shape{4, 2, 5, 5});
  batch.labels = Tensor<Index>(Shape{4}, {0, 1, 2, 1});
  batch.which = {0, 1, 2, 3};
  for (const bool compiled : {false, true}) {
    nn::Trainer trainer(net, {.optimiser = "adam rate=0.05", .compiled = compiled});
    const double first = trainer.step(batch).loss;
    double last = first;
    for (int i = 0; i < 20; ++i) {
      last = trainer.step(batch).loss;
    }
    EXPECT_LT(last, 0.8 * first);
    EXPECT_EQ(trainer.model().find_weight("conv.w")->value().tensor(), before);
    EXPECT_EQ(trainer.model().find_weight("mean")->value().tensor(), mean_before);
  }
}

/// The training step of a network, as the trainer traces it.
Program<float> training_step(Network<float> net, const Shape& inputs) {
  const std::vector<nn::Slot<float>> slots = nn::slots<float>(net);
  nn::detail::SlotScope<float> scope(slots);
  graph::Builder<float> builder;
  const Value<float> x(builder.input(inputs, "x"));
  const std::vector<graph::NodeId> trained = nn::detail::put_nodes<float>(builder, slots, scope);
  auto pass = nn::Pass<float>::training(Key(1));
  const Value<float> y = net(x, pass);
  const Value<float> loss = sum(y * y);
  builder.output(*loss.as<graph::Value<float>>(), "loss");
  const std::size_t first[] = {0};
  return Program<float>(graph::reverse(builder.graph(), first, trained, graph::Seed::one),
                        {.threads = 1, .fold = false});
}

TEST(Network, FrozenWeightsAreNeitherDifferentiatedNorAreTheirInputsStored) {
  const Shape inputs{4, 8, 20, 20};
  Network<float> net(residual());
  const auto of_weights = [](const Program<float>& program) {
    std::string shapes;
    for (const graph::ReportStep& step : graph::make_report(program.plan()).steps) {
      if (step.operation.find("weight_grad") != std::string::npos) {
        shapes += to_string(step.shape) + " ";
      }
    }
    return shapes;
  };
  const auto has_step = [](const Program<float>& program, std::string_view operation) {
    const graph::Report report = graph::make_report(program.plan());
    return std::any_of(report.steps.begin(), report.steps.end(), [&](const auto& step) {
      return step.operation.find(operation) != std::string::npos;
    });
  };
  const Program<float> all = training_step(net, inputs);
  EXPECT_EQ(of_weights(all), "(16, 16, 3, 3) (16, 8, 3, 3) ");
  EXPECT_TRUE(has_step(all, "conv_input_grad"));
  // Nothing goes on to what stands before the first weight that is trained.
  for (const char* name : {"w", "b", "gamma", "beta"}) {
    net.set_trained(name, false);
  }
  const Program<float> second = training_step(net, inputs);
  EXPECT_EQ(of_weights(second), "(16, 16, 3, 3) ");
  EXPECT_FALSE(has_step(second, "conv_input_grad"));
  // With the head alone no picture outlives the forward pass: a step needs what inference needs,
  // and a training step of all weights keeps several for each layer.
  net.set_trained("v", false);
  const Program<float> head = training_step(net, inputs);
  EXPECT_EQ(of_weights(head), "");
  const std::size_t picture = 4 * 16 * 20 * 20 * sizeof(float);
  EXPECT_GE(all.plan().arena_bytes(), 4 * picture);
  EXPECT_LT(second.plan().arena_bytes(), all.plan().arena_bytes());
  EXPECT_LE(head.plan().arena_bytes(), 2 * picture);
}

TEST(Network, StatisticsFollowTheBatchWhereAsked) {
  const Network<double> net(classifier(), {.batch_norm = BatchNormMode::batch});
  const Tensor<double> x = drawn<double>(Shape{2, 2, 5, 5});
  auto pass = nn::Pass<double>::training(Key(1));
  Network<double> trained = net;
  trained(Value<double>(x), pass);
  nn::apply_updates(trained, pass);
  const auto w = [&](std::string_view name) { return net.find_weight(name)->value().tensor(); };
  const Tensor<double> a = conv(x, w("conv.w"), w("conv.b"), {.padding = 1});
  const Tensor<double> now = mean(a, {.axes = {0, 2, 3}});
  const double momentum = static_cast<double>(0.9F);
  const Tensor<double> size =
      mean(conv(abs(x), abs(w("conv.w")), abs(w("conv.b")), {.padding = 1}), {.axes = {0, 2, 3}});
  for (Index i = 0; i < 4; ++i) {
    // Means of 50 numbers, each a sum of 18 products and a bias, in whatever order; two products.
    const double bound = 2 * (50 + 19 + 3) * 0x1p-53 * (std::abs(w("mean")[i]) + size[i]);
    EXPECT_NEAR(trained.find_weight("mean")->value().tensor()[i],
                momentum * w("mean")[i] + (1 - momentum) * now[i],
                bound);
  }
  auto inference = nn::Pass<double>::inference();
  EXPECT_EQ(net(Value<double>(x), inference).tensor(), net(x));
}

TEST(Network, WhatSettingsAreMadeOfIsNoWeight) {
  // As PyTorch writes a factor of two without folding: constants put together, and rounded ones.
  Model m = model(13,
                  {node("Concat", {"one", "two"}, {"scales"}, {integer("axis", 0)}),
                   node("Resize", {"x", "", "scales"}, {"larger"}),
                   node("Mul", {"halves", "twice"}, {"real"}),
                   node("Cast", {"real"}, {"shape"}, {integer("to", 7)}),
                   node("Reshape", {"larger", "shape"}, {"flat"}),
                   node("Mul", {"flat", "w"}, {"y"})},
                  {"x"},
                  {"y"});
  m.graph.initializers = {weight("one", Shape{2}, 1.0F),
                          weight("two", Shape{2}, 2.0F),
                          weight("halves", Shape{2}, 4.0F),
                          weight("twice", Shape{2}, 2.0F),
                          weight("w", Shape{8}, 3.0F)};
  const Network<double> net(m);
  ASSERT_EQ(net.weights().size(), 1U);
  EXPECT_EQ(net.weights()[0].name, "w");
  const Shape shape{1, 1, 4, 4};
  EXPECT_TRUE(net.check({{"x", shape}}).empty());
  EXPECT_EQ(nn::summary(net, shape).output, (Shape{8, 8}));
}

/// Two norms of which an exporter wrote the equal parameters once, and the others as Identity.
Model copies() {
  Model m =
      model(13,
            {node("Identity", {"a.weight"}, {"a.var"}),
             node("Identity", {"a.weight"}, {"b.weight"}),
             node("Identity", {"b.weight"}, {"b.var"}),
             node("BatchNormalization", {"x", "a.weight", "a.bias", "a.mean", "a.var"}, {"h"}),
             node("BatchNormalization", {"h", "b.weight", "a.bias", "b.mean", "b.var"}, {"y"})},
            {"x"},
            {"y"});
  m.graph.initializers = {weight("a.weight", Shape{3}, 1.0F),
                          weight("a.bias", Shape{3}),
                          weight("a.mean", Shape{3}),
                          weight("b.mean", Shape{3})};
  return m;
}

TEST(Network, EqualParametersThatWereWrittenOnceAreStillTheirOwn) {
  Network<float> net(copies(), {.batch_norm = BatchNormMode::batch});
  std::string found;
  for (const nn::Slot<float>& slot : nn::slots<float>(net)) {
    found += slot.name + (slot.trained ? " " : "* ");
  }
  EXPECT_EQ(found, "a.weight a.bias a.mean* b.mean* a.var* b.weight b.var* ");
  // Statistics that follow the batch leave the weights alone.
  auto pass = nn::Pass<float>::training(Key(1));
  net(Value<float>(drawn<float>(Shape{4, 3, 2, 2})), pass);
  nn::apply_updates(net, pass);
  const auto now = [&](std::string_view name) { return net.find_weight(name)->value().tensor(); };
  EXPECT_EQ(now("a.weight"), Tensor<float>(Shape{3}, 1.0F));
  EXPECT_NE(now("a.var"), now("a.weight"));
  EXPECT_NE(now("b.var"), now("a.var"));
}

TEST(Network, NodesSayWhatTheySeeOfTheInput) {
  Model m = model(13,
                  {node("Conv", {"x", "w"}, {"a"}, {integers("strides", {2, 2})}),
                   node("MaxPool",
                        {"a"},
                        {"p"},
                        {integers("kernel_shape", {3, 3}), integers("pads", {1, 1, 1, 1})}),
                   node("GlobalAveragePool", {"p"}, {"mean"}),
                   node("Mul", {"p", "mean"}, {"gated"}),
                   node("Add", {"a", "gated"}, {"sum"}),
                   node("ConvTranspose", {"sum", "u"}, {"up"}, {integers("strides", {2, 2})}),
                   node("Conv", {"up", "v"}, {"c"}),
                   node("Flatten", {"c"}, {"flat"}),
                   node("Gemm", {"flat", "head"}, {"y"})},
                  {"x"},
                  {"y"});
  m.graph.initializers = {weight("w", Shape{2, 1, 3, 3}),
                          weight("u", Shape{2, 2, 2, 2}),
                          weight("v", Shape{1, 2, 3, 3}),
                          weight("head", Shape{36, 4})};
  std::string seen;
  for (const nn::SummaryRow& row : nn::summary(Network<float>(m), Shape{1, 1, 9, 9}).rows) {
    seen += row.kind + " ";
    for (const Index extent : row.receptive_field) {
      seen += std::to_string(extent) + " ";
    }
  }
  // A gate of whole channels does not count; the sum sees what the wider of its inputs does.
  EXPECT_EQ(seen,
            "Conv 3 3 MaxPool 7 7 GlobalAveragePool Mul 7 7 Add 7 7 ConvTranspose 7 7 Conv 9 9 "
            "Flatten 9 9 Gemm ");
}

TEST(Network, NeedsNoSupportForBranchesThatAreNotTaken) {
  Graph known;
  known.nodes = {node("Neg", {"x"}, {"taken"})};
  known.outputs = {value("taken")};
  Graph unknown;
  unknown.nodes = {node("NobodyKnowsThis", {"x"}, {"other"})};
  unknown.outputs = {value("other")};
  const Model m = model(
      13,
      {node("Shape", {"x"}, {"shape"}),
       node("Size", {"shape"}, {"rank"}),
       node("Equal", {"rank", "rank"}, {"same"}),
       node("If", {"same"}, {"y"}, {graph("then_branch", known), graph("else_branch", unknown)})},
      {"x"},
      {"y"});
  EXPECT_TRUE(problems(m).empty());
  const Network<double> net(m);
  EXPECT_EQ(net(Tensor<double>(Shape{2}, {1.0, -2.0})), Tensor<double>(Shape{2}, {-1.0, 2.0}));
  EXPECT_TRUE(net.check({{"x", Shape{2}}}).empty());

  Model wrong = m;
  wrong.graph.nodes[2] = node("Less", {"rank", "rank"}, {"same"});
  const Network<double> other(wrong);
  const std::vector<Problem> found = other.check({{"x", Shape{2}}});
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].node, "NobodyKnowsThis_node");
}

TEST(Network, CellsOfMaximaPassThroughPrograms) {
  // As in SegNet: pooled, and put back where the maxima were.
  for (const Index order : {0, 1}) {
    std::vector<Node> nodes{node("MaxPool",
                                 {"x"},
                                 {"pooled", "cells"},
                                 {integers("kernel_shape", {2, 2}),
                                  integers("strides", {2, 2}),
                                  integer("storage_order", order)})};
    // MaxUnpool counts by rows.
    if (order == 0) {
      nodes.push_back(node("MaxUnpool",
                           {"pooled", "cells"},
                           {"y"},
                           {integers("kernel_shape", {2, 2}), integers("strides", {2, 2})}));
    } else {
      nodes.push_back(node("Gather", {"line", "cells"}, {"y"}));
    }
    Model m = model(12, nodes, {"x"}, {"y"});
    m.graph.initializers = {weight("line", Shape{96})};
    const Network<double> net(m);
    const Tensor<double> x = drawn<double>(Shape{2, 3, 4, 4});
    const Tensor<double> y = net(x);
    const auto program = compile<double>([&](const Value<double>& v) { return net(v); }, x.shape());
    Context context(program);
    EXPECT_EQ(program.run(context, x)[0], y);
    EXPECT_TRUE(net.check({{"x", x.shape()}}).empty());
    if (order == 0) {
      // Every maximum is back where it was.
      for (Index i = 0; i < x.size(); ++i) {
        EXPECT_TRUE(y[i] == 0 || y[i] == x[i]) << i;
      }
      EXPECT_EQ(std::count_if(
                    y.values().begin(), y.values().end(), [](double value) { return value != 0; }),
                24);
    }
  }
}

TEST(Network, BranchesMayHaveTheSameNames) {
  // Each branch has its own "c", which is twice as large in the second.
  const auto branch = [](float c) {
    Graph g;
    g.initializers = {weight("c", Shape{2}, c)};
    g.nodes = {node("Mul", {"scaled", "c"}, {"product"}), node("Neg", {"product"}, {"out"})};
    g.outputs = {value("out")};
    return g;
  };
  Model m = model(13,
                  {node("Mul", {"x", "w"}, {"scaled"}),
                   node("If",
                        {"which"},
                        {"y"},
                        {graph("then_branch", branch(1)), graph("else_branch", branch(2))})},
                  {"x", "which"},
                  {"y"});
  m.graph.initializers = {weight("w", Shape{2}, 3.0F)};
  const Network<double> net(m);
  const Tensor<double> x(Shape{2}, {1.0, -2.0});
  const auto run = [&](Index which) {
    return net.run({{"x", x}, {"which", Datum<double>(Tensor<Index>(Shape{}, which))}})
        .at("y")
        .value()
        .tensor();
  };
  EXPECT_EQ(run(1), Tensor<double>(Shape{2}, {-3.0, 6.0}));
  EXPECT_EQ(run(0), Tensor<double>(Shape{2}, {-6.0, 12.0}));
  // A name that stands for two tensors is none that a weight can have; what a branch reads from
  // outside is reached through it.
  ASSERT_EQ(net.weights().size(), 1U);
  EXPECT_EQ(net.weights()[0].name, "w");
  EXPECT_TRUE(net.cut_off().empty());
}

TEST(Network, LeavesOpenWhatNumbersOfInputsDecide) {
  Graph branch;
  branch.nodes = {node("Neg", {"x"}, {"out"})};
  branch.outputs = {value("out")};
  Model m = model(
      13,
      {node("If", {"which"}, {"y"}, {graph("then_branch", branch), graph("else_branch", branch)})},
      {"x", "which"},
      {"y"});
  m.graph.inputs[1].type = ElementType::boolean;
  const std::vector<Problem> found =
      Network<double>(m).check({{"x", Shape{2}}, {"which", Shape{}}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].is_open);
  EXPECT_EQ(found[0].node, "If_node");
}

TEST(Network, WritesOutFunctionsOfTheFile) {
  Model m = model(18, {node("Twice", {"x"}, {"y"}, {real("slope", 0.5F)})}, {"x"}, {"y"});
  m.graph.nodes[0].domain = "mine";
  Attribute reference;
  reference.name = "alpha";
  reference.reference = "slope";
  Function twice;
  twice.domain = "mine";
  twice.name = "Twice";
  twice.inputs = {"v"};
  twice.outputs = {"w"};
  twice.attributes = {"slope"};
  twice.nodes = {node("LeakyRelu", {"v"}, {"t"}, {reference}), node("Add", {"t", "t"}, {"w"})};
  twice.opsets[""] = 18;
  m.functions = {twice};
  m.opsets["mine"] = 1;
  EXPECT_EQ(Network<double>(m)(Tensor<double>(Shape{2}, {-2.0, 3.0})),
            Tensor<double>(Shape{2}, {-2.0, 6.0}));
}

TEST(Network, EndsWhereItIsAskedTo) {
  const Network<double> net(classifier(), {.outputs = {"flat"}});
  EXPECT_EQ(net(drawn<double>(Shape{2, 2, 5, 5})).shape(), (Shape{2, 4}));
  EXPECT_EQ(net.find_weight("head.w"), nullptr);
  EXPECT_NE(message_of([&] {
              Network<double> none(classifier(), {.outputs = {"nobody's"}});
            }).find("no value is called"),
            std::string::npos);
}

}  // namespace
}  // namespace fenestra::onnx::small

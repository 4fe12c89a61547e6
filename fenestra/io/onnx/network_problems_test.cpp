// What networks made of models complain about, and in which words.
#include <fenestra/io/onnx/small_models_test.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace fenestra::onnx::small {
namespace {

TEST(Network, NamesFromTheFileAreHarmlessInMessages) {
  Model m = model(13, {node("Odd\x1b[2J", {"x"}, {"y"})}, {"x"}, {"y"});
  m.graph.nodes[0].name = "two\nlines";
  const std::string text = to_string(problems(m).at(0));
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  EXPECT_NE(text.find("two\\x0alines"), std::string::npos) << text;
  Model none = model(13, {node("Relu", {"x"}, {"y"})}, {"x"}, {});
  EXPECT_NE(to_string(problems(none).at(0)).find("no outputs"), std::string::npos);
}

TEST(Network, FunctionsThatCallThemselvesAreRefused) {
  Model m = model(18, {node("Me", {"x"}, {"y"})}, {"x"}, {"y"});
  m.graph.nodes[0].domain = "mine";
  Function me;
  me.domain = "mine";
  me.name = "Me";
  me.inputs = {"v"};
  me.outputs = {"w"};
  me.nodes = {node("Me", {"v"}, {"w"})};
  me.nodes[0].domain = "mine";
  m.functions = {me};
  const std::vector<Problem> found = problems(m);
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found[0].text.find("more than 100 deep"), std::string::npos) << found[0].text;
  EXPECT_LT(to_string(found[0]).size(), 250U);
}

TEST(Network, ShapesThatDoNotFitAreListedBesideUnknownOperators) {
  Model m = model(13,
                  {node("Conv", {"x", "w"}, {"a"}),
                   node("Sofmax", {"x"}, {"b"}),
                   node("Relu", {"b"}, {"c"}),
                   node("MaxPool", {"x"}, {"d"}),
                   node("Sum", {"a", "c", "d"}, {"y"})},
                  {"x"},
                  {"y"});
  m.graph.initializers = {weight("w", Shape{4, 3, 3, 3})};
  const std::vector<Problem> found = problems(m, {{"x", Shape{1, 2, 8, 8}}});
  std::string nodes;
  for (const Problem& problem : found) {
    nodes += problem.node + " ";
  }
  EXPECT_EQ(nodes, "Sofmax_node Conv_node MaxPool_node ");
  // Where the model says its own shape, so does whoever loads it.
  m.graph.inputs[0].dims = {{{1, {}}, {2, {}}, {8, {}}, {8, {}}}};
  const std::string text = message_of([&] { Network<float> net(m); });
  EXPECT_NE(text.find("3 problems"), std::string::npos) << text;
  EXPECT_NE(text.find("kernel_shape is missing"), std::string::npos) << text;
}

TEST(Network, WhatIsLeftOutOnPurposeIsSaidSo) {
  const auto help = [](const std::string& op) {
    return problems(model(13, {node(op, {"x"}, {"y"})}, {"x"}, {"y"})).at(0).help;
  };
  EXPECT_NE(help("Scan").find("loops"), std::string::npos) << help("Scan");
  EXPECT_NE(help("QLinearConv").find("quantised"), std::string::npos);
  EXPECT_NE(help("SequenceAt").find("sequences"), std::string::npos);
  EXPECT_NE(help("Softmaxx").find("perhaps Softmax"), std::string::npos) << help("Softmaxx");
  EXPECT_EQ(help("Zzzz").find("perhaps"), std::string::npos);
}

TEST(Network, NamesAllProblemsAtOnceAndNoNumbers) {
  Model m = model(10,
                  {node("Sofmax", {"x"}, {"a"}),
                   node("HardSwish", {"a"}, {"b"}),
                   node("Conv", {"b", "w"}, {"c"}),
                   node("QLinearThing", {"c"}, {"y"})},
                  {"x"},
                  {"y"});
  m.graph.nodes[3].domain = "com.vendor";
  m.graph.initializers = {weight("w", Shape{1, 1, 1}, 0.123456F)};
  const std::string text = message_of([&] { Network<float> net(m); });
  EXPECT_NE(text.find("Sofmax_node"), std::string::npos) << text;
  EXPECT_NE(text.find("Softmax"), std::string::npos) << text;
  EXPECT_NE(text.find("exists from opset 14 on"), std::string::npos) << text;
  EXPECT_NE(text.find("com.vendor"), std::string::npos) << text;
  EXPECT_EQ(text.find("0.1234"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
}

TEST(Network, ChecksShapesOfAllNodesWithoutRunning) {
  Model m = model(13,
                  {node("Conv", {"x", "w"}, {"a"}),
                   node("Relu", {"a"}, {"b"}),
                   node("MatMul", {"x", "v"}, {"c"})},
                  {"x"},
                  {"b", "c"});
  m.graph.initializers = {weight("w", Shape{4, 3, 3, 3}), weight("v", Shape{7, 2})};
  const Network<float> net(m);
  const std::vector<Problem> found = net.check({{"x", Shape{1, 2, 8, 8}}});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].node, "Conv_node");
  EXPECT_EQ(found[0].op, "Conv-11");
  EXPECT_NE(found[0].text.find("(1, 2, 8, 8)"), std::string::npos) << found[0].text;
  EXPECT_EQ(found[0].text.find('\n'), std::string::npos);
  EXPECT_EQ(found[1].node, "MatMul_node");
  EXPECT_EQ(net.check({{"x", Shape{1, 3, 9, 7}}}).size(), 0U);
  const std::string text = message_of([&] { net(drawn<float>(Shape{1, 2, 8, 8})); });
  EXPECT_NE(text.find("node \"Conv_node\" (Conv-11)"), std::string::npos) << text;
}

TEST(Network, OutputsThatAreNotWhatTheModelSaysAreListedAndMade) {
  using Dims = std::vector<Dimension>;
  Model m = model(13, {node("MatMul", {"x", "v"}, {"y"})}, {"x"}, {"y"});
  m.graph.initializers = {weight("v", Shape{4, 3})};
  const auto found = [&](const Dims& input, const Dims& output, const Shape& x) {
    m.graph.inputs[0].dims = input;
    m.graph.outputs[0].dims = output;
    const Network<float> net(m);
    EXPECT_EQ(net(drawn<float>(x)).shape(), (Shape{x[0], 3}));
    return net.check({{"x", x}});
  };
  const Shape x{2, 4};
  const Dims own{{2, {}}, {4, {}}};
  for (const Dims& wrong : {Dims{{2, {}}, {5, {}}}, Dims{{2, {}}}, Dims{{{}, "n"}, {4, {}}}}) {
    const std::vector<Problem> problems = found(own, wrong, x);
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_EQ(problems[0].node, "MatMul_node");
    EXPECT_EQ(problems[0].op, "MatMul-13");
    EXPECT_NE(problems[0].text.find("the output \"y\" is (2, 3), the model says ("),
              std::string::npos)
        << problems[0].text;
  }
  // Names are labels, what is not positive is not known, and neither are no extents at all.
  for (const Dims& right : {Dims{{2, {}}, {3, {}}}, Dims{{{}, "n"}, {-1, {}}}, Dims()}) {
    EXPECT_TRUE(found(own, right, x).empty());
  }
  // Where another input is given, it decides.
  const Dims of_one{{1, {}}, {3, {}}};
  EXPECT_TRUE(found({{1, {}}, {4, {}}}, of_one, x).empty());
  EXPECT_TRUE(found({{{}, "batch"}, {4, {}}}, of_one, x).empty());
}

TEST(Network, AnEmptyNameIsNoOutput) {
  Model m = model(13, {node("Relu", {"x"}, {"y"})}, {"x"}, {"y"});
  m.graph.inputs[0].dims = {{{2, {}}}};
  const std::string text = message_of([&] { Network<float> net(m, {.outputs = {""}}); });
  EXPECT_NE(text.find("no value is called ''"), std::string::npos) << text;
}

TEST(Network, SaysWhichWeightsNoDerivativeReaches) {
  Model m = model(13, {node("Mul", {"x", "w"}, {"a"}), node("Round", {"a"}, {"y"})}, {"x"}, {"y"});
  m.graph.initializers = {weight("w", Shape{3})};
  const std::vector<Problem> found = Network<float>(m).cut_off();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].text.find("'w'"), std::string::npos);
}

TEST(Network, AsksForItsInputsByName) {
  const Model m = model(13, {node("Add", {"a", "b"}, {"y"})}, {"a", "b"}, {"y"});
  const Network<double> net(m);
  EXPECT_THROW(net(Tensor<double>(Shape{1})), Error);
  EXPECT_NE(message_of([&] {
              net.run({{"a", Tensor<double>(Shape{1})}});
            }).find("'b'"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              net.run({{"a", Tensor<double>(Shape{1})},
                       {"b", Tensor<double>(Shape{1})},
                       {"c", Tensor<double>(Shape{1})}});
            }).find("no input 'c'"),
            std::string::npos);
}

}  // namespace
}  // namespace fenestra::onnx::small

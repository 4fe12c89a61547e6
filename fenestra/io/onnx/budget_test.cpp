// What one result may take, for every operator that can make much of little. A file of its own:
// naming an operator in operators_test.cpp says that its numbers are tested there.
#include <fenestra/base/memory.hpp>
#include <fenestra/fenestra.hpp>
#include <fenestra/io/onnx/small_models_test.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace fenestra::onnx::small {
namespace {

using D = Datum<double>;

Tensor<Index> list(std::vector<Index> numbers) {
  return Tensor<Index>(Shape{static_cast<Index>(numbers.size())}, numbers);
}

TEST(Budget, SizesFromTheModelAreBounded) {
  constexpr std::uint64_t kBudget = 1 << 20;
  const auto outcome = [&](const std::string& op,
                           const std::vector<D>& inputs,
                           Index opset,
                           const std::vector<Attribute>& attributes = {}) {
    try {
      run(opset, op, inputs, attributes, 1, {.budget = kBudget});
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::none;
  };
  // Refused before the memory is there: nothing that is made on the way is larger either.
  const auto expect_refused = [&](const std::string& op,
                                  const std::vector<D>& inputs,
                                  Index opset,
                                  const std::vector<Attribute>& attributes = {}) {
    const std::size_t before = memory_in_use();
    reset_peak_memory();
    EXPECT_EQ(outcome(op, inputs, opset, attributes), ErrorCode::memory_limit) << op;
    EXPECT_LE(peak_memory() - before, kBudget) << op;
  };
  const Tensor<double> x(Shape{1, 1, 2, 2}, 1.0);
  const Index big = Index{1} << 40;
  expect_refused("ConstantOfShape", {D(list({big, big}))}, 9);
  expect_refused("Expand", {x, D(list({big, 1, 2, 2}))}, 13);
  expect_refused("Tile", {x, D(list({1, 1, big, big}))}, 13);
  expect_refused("Pad", {x, D(list({0, 0, 0, 0, 0, 0, 0, big}))}, 13);
  expect_refused(
      "Range",
      {D(Tensor<Index>(Shape{}, 0)), D(Tensor<Index>(Shape{}, big)), D(Tensor<Index>(Shape{}, 1))},
      11);
  expect_refused(
      "Resize",
      {x, D(Tensor<double>(Shape{0})), D(Tensor<double>(Shape{4}, {1.0, 1.0, 1e6, 1e6}))},
      13);
  EXPECT_EQ(outcome("ConstantOfShape", {D(list({16, 16}))}, 9), ErrorCode::none);

  // Windows: paddings are numbers of the model.
  const Index wide = Index{1} << 20;
  const Attribute pads = integers("pads", {0, 0, wide, wide});
  const Attribute cells = integers("kernel_shape", {2, 2});
  const D kernel = Tensor<double>(Shape{1, 1, 2, 2}, 1.0);
  expect_refused("Conv", {x, kernel}, 11, {pads});
  for (const std::string op : {"MaxPool", "AveragePool", "LpPool"}) {
    expect_refused(op, {x}, 11, {cells, pads});
    EXPECT_EQ(outcome(op, {x}, 11, {cells, integers("pads", {0, 0, 1, 1})}), ErrorCode::none) << op;
  }
  const Attribute steps = integers("strides", {wide, wide});
  expect_refused("ConvTranspose", {x, kernel}, 11, {steps});
  // Its output is small, what that is cut out of is not.
  expect_refused("ConvTranspose",
                 {x, kernel},
                 11,
                 {integers("strides", {wide, 1}), integers("output_shape", {1, 4})});
  expect_refused("ConvTranspose", {x, kernel}, 11, {integers("output_shape", {wide, wide})});
  const D maxima(Tensor<Index>(Shape{1, 1, 2, 2}, 0));
  expect_refused("MaxUnpool", {x, maxima}, 11, {cells, steps});

  // Small inputs whose product is large.
  const Tensor<double> line(Shape{1, 1024}, 1.0);
  const Tensor<double> column(Shape{1024, 1}, 1.0);
  const D places(Tensor<Index>(Shape{1024}, 0));
  for (const std::string op : {"Add", "Mul", "Pow", "Less", "Max", "Mean"}) {
    expect_refused(op, {line, column}, 13);
  }
  expect_refused(
      "Add", {D(Tensor<Index>(line.shape(), 1)), D(Tensor<Index>(column.shape(), 1))}, 13);
  expect_refused("PRelu", {line, column}, 16);
  const D truth(Tensor<double>(Shape{}, 1.0), ElementType::boolean);
  expect_refused("Where", {truth, line, column}, 16);
  expect_refused("MatMul", {column, line}, 13);
  expect_refused("Gemm", {line, line}, 13, {integer("transA", 1)});
  expect_refused("Einsum", {line, column}, 12, {text("equation", "ab,cd->abcd")});
  expect_refused("Gather", {line, places}, 13);
  expect_refused("GatherND", {line, D(Tensor<Index>(Shape{1024, 1}, 0))}, 13);
  expect_refused(
      "GridSample",
      {Tensor<double>(Shape{1, 1024, 1, 1}, 1.0), Tensor<double>(Shape{1, 32, 32, 2}, 0.0)},
      16);
  expect_refused("RNN",
                 {Tensor<double>(Shape{1024, 8, 1}, 0.5),
                  Tensor<double>(Shape{1, 64, 1}, 0.5),
                  Tensor<double>(Shape{1, 64, 64}, 0.5)},
                 14);
  EXPECT_EQ(outcome("MatMul", {line, column}, 13), ErrorCode::none);

  // Each node twice the one before it, of a line of 8 KiB.
  std::vector<Node> nodes;
  for (int i = 0; i < 40; ++i) {
    const std::string from = "v" + std::to_string(i);
    nodes.push_back(
        node("Concat", {from, from}, {"v" + std::to_string(i + 1)}, {integer("axis", 0)}));
  }
  const Network<double> twice(model(13, nodes, {"v0"}, {"v40"}), {.budget = kBudget});
  try {
    twice(line);
    ADD_FAILURE() << "2^40 lines";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::memory_limit) << error.what();
  }
  // The same where only shapes are looked at, and where a program is made.
  const std::vector<Problem> found = twice.check({{"v0", line.shape()}});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].text.find("budget"), std::string::npos) << found[0].text;
  EXPECT_THROW(compile<double>([&](const Value<double>& v) { return twice(v); }, line.shape()),
               Error);
}

}  // namespace
}  // namespace fenestra::onnx::small

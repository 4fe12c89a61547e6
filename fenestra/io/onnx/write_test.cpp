// Models out: what is not changed stays to the byte, what is changed is read again, other heads.
#include <fenestra/io/files_test.hpp>
#include <fenestra/io/onnx/bytes_test.hpp>
#include <fenestra/io/onnx/write.hpp>

#include <algorithm>
#include <limits>

namespace fenestra::onnx {
namespace {

using namespace hand;
using io::bytes_of;
using io::complaint;
using OnnxWrite = io::Files;

Model parse(const std::string& bytes) { return read_model(bytes_of(bytes), "it"); }

/// A file in pieces, with fields that nobody knows, of every wire type, at every level.
std::string strange_model() {
  const std::string unknown = num(700, 5) + sub(701, "kept") + fixed32(702, 1.5F);
  const std::string first = sub(1, node("Add", {"x", "w"}, {"a"}, unknown)) +
                            sub(5, floats("w", {1, 2, 3}) + unknown) + unknown;
  const std::string constant = sub(1, "value") + sub(5, dims({1}) + num(2, 1) + unknown) +
                               sub(5, fixed32(4, 7)) + num(20, 4) + unknown;
  const std::string second = sub(1, node("Constant", {}, {"c"}, sub(5, constant))) +
                             sub(1, node("Add", {"a", "c"}, {"y"})) + sub(5, floats("other", {4})) +
                             sub(11, value("x")) + sub(12, value("y"));
  return num(1, 8) + sub(7, first) + unknown + sub(14, sub(1, "k") + sub(2, "old")) +
         sub(14, sub(1, "stays") + sub(2, "here")) + sub(7, second) + sub(8, num(2, 13));
}

TEST_F(OnnxWrite, NothingChangedIsTheSameBytes) {
  for (const std::string& file : {sum_model(), strange_model()}) {
    const Model model = parse(file);
    EXPECT_EQ(patched(model, {}), file);
    // Equal numbers are no change, whatever type they come in.
    EXPECT_EQ(patched(model, {.tensors = {{"w", Tensor<double>(Shape{3}, {1, 2, 3})}}}), file);
  }
}

TEST_F(OnnxWrite, OnlyTheChangedTensorDiffers) {
  const std::string file = sum_model();
  const Tensor<float> w(Shape{3}, {-1, 0.5F, 9});
  const std::string expected = [&] {
    std::string text = file;
    const std::string before = plain({1.0F, 2.0F, 3.0F});
    return text.replace(text.find(before), before.size(), plain({-1.0F, 0.5F, 9.0F}));
  }();
  EXPECT_EQ(patched(parse(file), {.tensors = {{"w", w}}}), expected);
  EXPECT_NE(complaint([&] {
              patched(parse(file), {.tensors = {{"lost", w}}});
            }).find("\"lost\""),
            std::string::npos);
}

TEST_F(OnnxWrite, ACopyWithNumbersOfItsOwnBecomesAConstant) {
  const std::string file =
      model(sub(1, node("Identity", {"w"}, {"copy"}, sub(3, "first"))) +
            sub(1, node("Identity", {"copy"}, {"again"})) + sub(1, node("Add", {"x", "w"}, {"a"})) +
            sub(1, node("Add", {"a", "copy"}, {"b"})) + sub(1, node("Add", {"b", "again"}, {"y"})) +
            sub(5, floats("w", {1, 2})) + sub(11, value("x")) + sub(12, value("y")));
  const Tensor<float> old(Shape{2}, {1, 2});
  const Tensor<float> other(Shape{2}, {3, 4});
  const Model known = parse(file);
  // Equal to what they copy: nothing changes but the initialiser, if that.
  EXPECT_EQ(patched(known, {.tensors = {{"w", old}, {"copy", old}, {"again", old}}}), file);
  const auto changed = [&](const Tensor<float>& w, const Tensor<float>& copy) {
    return parse(patched(known, {.tensors = {{"w", w}, {"copy", copy}, {"again", copy}}}));
  };
  EXPECT_EQ(changed(other, other).graph.nodes.at(0).op_type, "Identity");
  for (const bool is_copy : {false, true}) {
    // Whichever of the two has moved, the copy is no longer what the initialiser is.
    const Model now = is_copy ? changed(old, other) : changed(other, old);
    const Node& first = now.graph.nodes.at(0);
    EXPECT_EQ(first.op_type, "Constant");
    EXPECT_EQ(first.name, "first");
    EXPECT_EQ(first.find("value")->t->read<float>(), is_copy ? other : old);
    EXPECT_EQ(now.graph.nodes.at(1).op_type, "Identity");  // it copies the Constant
    EXPECT_EQ(now.graph.initializers.at(0).read<float>(), is_copy ? old : other);
    EXPECT_TRUE(name_problems(now).empty());
  }
}

TEST_F(OnnxWrite, TensorsOfBranchesAreChangedToo) {
  // A graph in two pieces, with an initialiser and a Constant, and a field that nobody knows.
  const std::string constant =
      sub(1, "value") + num(20, 4) + sub(5, dims({2}) + num(2, 1) + sub(9, plain({3.0F, 4.0F})));
  const std::string first =
      sub(1, node("Constant", {}, {"c"}, sub(5, constant))) + sub(5, floats("w", {1, 2}));
  const std::string second =
      sub(1, node("Add", {"w", "c"}, {"t"})) + sub(12, value("t")) + num(700, 5);
  const std::string branch = sub(1, "then_branch") + sub(6, first) + sub(6, second) + num(20, 5);
  const std::string other = sub(1, "else_branch") +
                            sub(6, sub(1, node("Neg", {"x"}, {"e"})) + sub(12, value("e"))) +
                            num(20, 5);
  const std::string file =
      model(sub(1, node("If", {"which"}, {"y"}, sub(5, branch) + sub(5, other))) +
            sub(11, value("x")) + sub(11, value("which")) + sub(12, value("y")));
  EXPECT_EQ(patched(parse(file), {}), file);
  const auto replaced = [&](const std::string& before, const std::string& after) {
    std::string text = file;
    return text.replace(text.find(before), before.size(), after);
  };
  EXPECT_EQ(patched(parse(file), {.tensors = {{"c", Tensor<float>(Shape{2}, {7, 8})}}}),
            replaced(plain({3.0F, 4.0F}), plain({7.0F, 8.0F})));
  const Model changed =
      parse(patched(parse(file), {.tensors = {{"w", Tensor<float>(Shape{2}, {5, 6})}}}));
  const Graph& then = *changed.graph.nodes.at(0).find("then_branch")->g;
  EXPECT_EQ(then.initializers.at(0).read<float>(), Tensor<float>(Shape{2}, {5, 6}));
  EXPECT_EQ(then.nodes.size(), 2U);
}

TEST_F(OnnxWrite, UnknownFieldsOfWhatIsChangedSurvive) {
  const Model model = parse(strange_model());
  const std::string bytes = patched(model,
                                    {.tensors = {{"w", Tensor<float>(Shape{2, 2}, {1, 2, 3, 4})},
                                                 {"c", Tensor<float>(Shape{1}, {8})}},
                                     .metadata = {{"k", "new"}, {"more", "text"}}});
  const Model again = parse(bytes);
  EXPECT_EQ(again.graph.find_initializer("w")->read<float>(),
            Tensor<float>(Shape{2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(again.graph.find_initializer("other")->read<float>(), Tensor<float>(Shape{1}, {4}));
  EXPECT_EQ(again.graph.nodes.at(1).find("value")->t->read<float>(), Tensor<float>(Shape{1}, {8}));
  EXPECT_EQ(again.metadata, (io::Metadata{{"k", "new"}, {"more", "text"}, {"stays", "here"}}));
  const auto count = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count(bytes, "kept"), count(strange_model(), "kept"));
}

TEST_F(OnnxWrite, ElementTypesStayTheFiles) {
  const auto changed = [](int type, const std::string& payload, const io::AnyTensor& numbers) {
    const std::string file =
        model(sub(5, dims({4}) + num(2, static_cast<std::uint64_t>(type)) + sub(8, "w") + payload));
    const Model again = parse(patched(parse(file), {.tensors = {{"w", numbers}}}));
    EXPECT_EQ(static_cast<int>(again.graph.initializers.at(0).type), type);
    return again.graph.initializers.at(0);
  };
  // 1 + 2^-11 is between two half floats, and the tie goes to the even one; the least subnormal.
  EXPECT_EQ(changed(10,
                    sub(9, std::string(8, '\0')),
                    Tensor<float>(Shape{4}, {1 + 0x1p-11F, -0x1p-24F, 65504, 0x1p-14F}))
                .read<float>(),
            Tensor<float>(Shape{4}, {1, -0x1p-24F, 65504, 0x1p-14F}));
  EXPECT_EQ(changed(16,
                    sub(9, std::string(8, '\0')),
                    Tensor<float>(Shape{4}, {1 + 0x1p-8F, 1 + 0x3p-8F, -3, 0}))
                .read<float>(),
            Tensor<float>(Shape{4}, {1, 1 + 0x1p-6F, -3, 0}));
  EXPECT_EQ(
      changed(11, sub(9, std::string(32, '\0')), Tensor<float>(Shape{1}, {0.1F})).read<double>(),
      Tensor<double>(Shape{1}, {static_cast<double>(0.1F)}));
  EXPECT_EQ(
      changed(3, sub(9, std::string(4, '\0')), Tensor<Index>(Shape{2}, {-128, 127})).read<Index>(),
      Tensor<Index>(Shape{2}, {-128, 127}));
  try {
    changed(3, sub(9, std::string(4, '\0')), Tensor<Index>(Shape{1}, {128}));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::dtype_mismatch);
  }
}

TEST_F(OnnxWrite, NumbersInOtherFilesComeAlong) {
  write("data", plain({1.0F, 2.0F}));
  const std::string tensor = dims({2}) + num(2, 1) + sub(8, "w") +
                             sub(13, sub(1, "location") + sub(2, "data")) + num(14, 1);
  const auto file = write("m.onnx", model(sum_graph(tensor)));
  const Model model = read_model(file);
  save_model(path("same.onnx"), model);
  EXPECT_EQ(read(path("same.onnx")), read(file));
  std::filesystem::create_directory(path("there"));
  save_model(path("there/m.onnx"), model);
  EXPECT_EQ(read_model(path("there/m.onnx")).graph.initializers.at(0).read<float>(),
            Tensor<float>(Shape{2}, {1, 2}));
}

// --- Heads -------------------------------------------------------------------------------------

std::string tensor_of(std::string_view name, std::initializer_list<std::uint64_t> extents) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : extents) {
    count *= extent;
  }
  return dims(extents) + num(2, 1) + sub(8, name) + sub(9, std::string(4 * count, '\0'));
}
std::string matrix_info(std::string_view name, std::uint64_t columns) {
  const std::string shape = sub(1, sub(2, "N")) + sub(1, num(1, columns));
  return sub(1, name) + sub(2, sub(1, num(1, 1) + sub(2, shape)));
}
/// Conv, Relu, Flatten, Gemm of 5 classes, Softmax.
std::string classifier() {
  const std::string transposed = sub(5, sub(1, "transB") + num(3, 1) + num(20, 2));
  return model(sub(1, node("Conv", {"x", "cw"}, {"f"})) + sub(1, node("Relu", {"f"}, {"r"})) +
               sub(1, node("Flatten", {"r"}, {"v"})) +
               sub(1, node("Gemm", {"v", "gw", "gb"}, {"l"}, transposed)) +
               sub(1, node("Softmax", {"l"}, {"p"})) + sub(5, tensor_of("cw", {4, 1, 3, 3})) +
               sub(5, tensor_of("gw", {5, 16})) + sub(5, tensor_of("gb", {5})) +
               sub(11, value("x")) + sub(12, matrix_info("p", 5)) + sub(13, matrix_info("l", 5)) +
               sub(13, matrix_info("v", 16)));
}

TEST_F(OnnxWrite, TheHeadIsFoundAndReplaced) {
  const Model model = parse(classifier());
  const Head head = find_head(model);
  EXPECT_EQ(head.weight, "gw");
  EXPECT_EQ(head.bias, "gb");
  EXPECT_EQ(head.logits, "l");
  EXPECT_EQ(head.classes, 5);
  const Model three = with_classes(model, 3, 1);
  EXPECT_EQ(three.graph.find_initializer("gw")->shape, (Shape{3, 16}));
  EXPECT_EQ(three.graph.find_initializer("gb")->read<float>(), Tensor<float>(Shape{3}, 0.0F));
  EXPECT_EQ(three.graph.outputs.at(0).dims->at(1).extent, 3);
  EXPECT_EQ(three.graph.outputs.at(0).dims->at(0).label, "N");
  ASSERT_EQ(three.graph.value_infos.size(), 1U);  // what the old size was said of is gone
  EXPECT_EQ(three.graph.value_infos.at(0).name, "v");
  EXPECT_EQ(three.graph.nodes.size(), 5U);
  EXPECT_TRUE(name_problems(three).empty());
  const Tensor<float> drawn = three.graph.find_initializer("gw")->read<float>();
  EXPECT_EQ(drawn, with_classes(model, 3, 1).graph.find_initializer("gw")->read<float>());
  EXPECT_NE(drawn, with_classes(model, 3, 2).graph.find_initializer("gw")->read<float>());
}

TEST_F(OnnxWrite, AHeadAfterAValueReplacesWhatFollows) {
  const Model cut = with_head_at(parse(classifier()), "r", Shape{1, 4, 2, 2}, 7);
  EXPECT_EQ(cut.graph.nodes.size(), 5U);
  EXPECT_EQ(cut.graph.nodes.back().op_type, "Gemm");
  EXPECT_EQ(cut.graph.find_initializer("gw"), nullptr);
  EXPECT_EQ(cut.graph.find_initializer("head.weight")->shape, (Shape{7, 4}));
  ASSERT_EQ(cut.graph.outputs.size(), 1U);
  EXPECT_EQ(cut.graph.outputs.at(0).dims->at(1).extent, 7);
  EXPECT_TRUE(name_problems(cut).empty());
  const Model flat = with_head_at(parse(classifier()), "v", Shape{1, 16}, 7);
  EXPECT_EQ(flat.graph.nodes.size(), 4U);
  EXPECT_TRUE(name_problems(flat).empty());
  try {
    with_head_at(parse(classifier()), "no", Shape{1, 4}, 7);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unknown_choice);
  }
}

TEST_F(OnnxWrite, WhatHasNoHeadSaysWhy) {
  const auto why = [](const std::string& graph) {
    try {
      find_head(parse(model(graph)));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(why("").find("no output"), std::string::npos);
  EXPECT_NE(why(sub(1, node("Resize", {"x"}, {"y"})) + sub(12, value("y"))).find("(Resize)"),
            std::string::npos);
  EXPECT_NE(why(sub(1, node("Relu", {"y"}, {"y"})) + sub(12, value("y"))).find("cycle"),
            std::string::npos);
  EXPECT_NE(why(sub(1, node("MatMul", {"x", "z"}, {"y"})) + sub(12, value("y"))).find("\"z\""),
            std::string::npos);
}

}  // namespace
}  // namespace fenestra::onnx

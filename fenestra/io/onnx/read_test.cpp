// Models in, from bytes made by hand: every form that the format has, and files that are none.
#include <fenestra/io/files_test.hpp>
#include <fenestra/io/onnx/bytes_test.hpp>
#include <fenestra/io/onnx/model.hpp>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace fenestra::onnx {
namespace {

using namespace hand;
using io::bytes_of;
using io::complaint;
using OnnxRead = io::Files;

Model parse(const std::string& bytes) { return read_model(bytes_of(bytes), "it"); }
std::string refusal(const std::string& bytes) {
  return complaint([&] { parse(bytes); });
}
void expect_in(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks " << part;
}
/// The only initialiser of a model with that tensor.
TensorData tensor(const std::string& bytes) {
  return parse(model(sub(5, bytes))).graph.initializers.at(0);
}

std::string entry(const std::string& key, const std::string& value) {
  return sub(13, sub(1, key) + sub(2, value));
}
/// A model with so many float32 numbers in another file.
std::string external(const std::string& entries, std::uint64_t count = 2) {
  return model(sub(5, dims({count}) + num(2, 1) + sub(8, "w") + entries + num(14, 1)));
}

TEST_F(OnnxRead, AModelIsWhatItsBytesSay) {
  const std::string attribute =
      sub(1, "axis") + num(3, static_cast<std::uint64_t>(-2)) + num(20, 2);
  const std::string graph = sub(2, "main") +
                            sub(1,
                                node("Concat",
                                     {"x", "", "w"},
                                     {"y"},
                                     sub(3, "join") + sub(7, "ai.onnx") + sub(5, attribute))) +
                            sub(5, floats("w", {1, 2})) + sub(11, value("x")) + sub(12, value("y"));
  const Model read = parse(num(1, 7) + sub(2, "maker") + sub(3, "1.2") + sub(8, num(2, 11)) +
                           sub(8, sub(1, "my.domain") + num(2, 3)) +
                           sub(14, sub(1, "key") + sub(2, "text")) + sub(7, graph));
  EXPECT_EQ(read.ir_version, 7);
  EXPECT_EQ(read.producer, "maker");
  EXPECT_EQ(read.producer_version, "1.2");
  EXPECT_EQ(read.opset(), 11);
  EXPECT_EQ(read.opset("my.domain"), 3);
  EXPECT_EQ(read.metadata.at("key"), "text");
  EXPECT_EQ(read.graph.name, "main");
  const Node& first = read.graph.nodes.at(0);
  EXPECT_EQ(first.name, "join");
  EXPECT_EQ(first.domain, "");
  EXPECT_EQ(first.inputs, (std::vector<std::string>{"x", "", "w"}));
  ASSERT_NE(first.find("axis"), nullptr);
  EXPECT_EQ(first.find("axis")->i, -2);
  EXPECT_EQ(first.find("no"), nullptr);
  EXPECT_EQ(read.graph.inputs.at(0).type, ElementType::float32);
  EXPECT_EQ(read.graph.inputs.at(0).dims->at(0).label, "n");
  EXPECT_EQ(read.graph.initializers.at(0).read<float>(), Tensor<float>(Shape{2}, {1, 2}));
  EXPECT_TRUE(name_problems(read).empty());
}

TEST_F(OnnxRead, AMessageInPiecesIsMerged) {
  const std::string first = sub(1, node("Relu", {"x"}, {"a"})) + sub(11, value("x"));
  const std::string second = sub(1, node("Relu", {"a"}, {"y"})) + sub(12, value("y"));
  const Model read = parse(sub(7, first) + num(1, 8) + sub(7, second));
  EXPECT_EQ(read.graph.nodes.size(), 2U);
  EXPECT_EQ(read.graph.outputs.size(), 1U);
  // A tensor of an attribute: extents in one piece, numbers in another.
  const std::string attribute =
      sub(1, "value") + sub(5, num(1, 2) + num(2, 7)) + sub(5, sub(7, varint(5) + varint(6)));
  const Model constant = parse(model(sub(1, node("Constant", {}, {"c"}, sub(5, attribute)))));
  const Attribute* const value = constant.graph.nodes.at(0).find("value");
  EXPECT_EQ(value->type, AttributeType::tensor);
  EXPECT_EQ(value->t->read<Index>(), Tensor<Index>(Shape{2}, {5, 6}));
}

TEST_F(OnnxRead, NumbersComePackedOrOneByOneOrRaw) {
  const Tensor<float> expected(Shape{2}, {1.5F, -2});
  EXPECT_EQ(tensor(dims({2}) + num(2, 1) + sub(9, plain({1.5F, -2.0F}))).read<float>(), expected);
  EXPECT_EQ(tensor(sub(1, varint(2)) + num(2, 1) + sub(4, plain({1.5F, -2.0F}))).read<float>(),
            expected);
  EXPECT_EQ(tensor(dims({2}) + num(2, 1) + fixed32(4, 1.5F) + fixed32(4, -2)).read<float>(),
            expected);
  EXPECT_EQ(tensor(dims({2}) + num(2, 1) + fixed32(4, 1.5F) + sub(4, plain({-2.0F}))).read<float>(),
            expected);
  EXPECT_EQ(tensor(dims({2}) + num(2, 11) + sub(10, plain({1.5, -2.0}))).read<float>(), expected);
  // 1.5 and -2 as half floats and as bfloat16, whose bits are integers where they are not raw.
  EXPECT_EQ(tensor(dims({2}) + num(2, 10) + sub(5, varint(0x3e00) + varint(0xc000))).read<float>(),
            expected);
  EXPECT_EQ(tensor(dims({2}) + num(2, 16) + sub(5, varint(0x3fc0) + varint(0xc000))).read<float>(),
            expected);
  const auto least = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(tensor(dims({1}) + num(2, 7) + num(7, static_cast<std::uint64_t>(least))).read<Index>(),
            Tensor<Index>(Shape{1}, {least}));
  EXPECT_EQ(tensor(dims({2}) + num(2, 3) + num(5, static_cast<std::uint64_t>(-128)) + num(5, 127))
                .read<Index>(),
            Tensor<Index>(Shape{2}, {-128, 127}));
  EXPECT_EQ(tensor(dims({2}) + num(2, 9) + sub(5, varint(1) + varint(0))).read<Index>(),
            Tensor<Index>(Shape{2}, {1, 0}));
  EXPECT_EQ(tensor(dims({1}) + num(2, 6) + num(5, 0xffffffff)).read<Index>(),
            Tensor<Index>(Shape{1}, {-1}));
  // No extents: one number. An extent of 0: none.
  EXPECT_EQ(tensor(num(2, 1) + fixed32(4, 3)).read<double>(), Tensor<double>(Shape{}, 3));
  EXPECT_EQ(tensor(dims({0, 4}) + num(2, 1)).read<float>().shape(), (Shape{0, 4}));
  EXPECT_TRUE(std::holds_alternative<Tensor<Index>>(tensor(dims({0}) + num(2, 2)).read_nearest()));
}

TEST_F(OnnxRead, TensorsWhoseSizesDoNotFitAreRefused) {
  const auto refuse = [](const std::string& bytes, std::string_view part) {
    expect_in(refusal(model(sub(5, bytes))), part);
  };
  refuse(dims({3}) + num(2, 1) + sub(9, plain({1.0F, 2.0F})), "12 bytes");
  refuse(dims({3}) + num(2, 1) + sub(4, plain({1.0F, 2.0F})), "3 numbers");
  refuse(dims({3}) + num(2, 1), "no data");
  refuse(dims({2}) + num(2, 7) + sub(7, varint(5) + "\xff"), "the end of a field within one");
  refuse(dims({2}) + num(2, 1) + sub(4, "12345"), "numbers of 4 bytes");
  refuse(dims({1}) + num(2, 1) + sub(4, plain({1.0F})) + sub(9, plain({1.0F})), "data in two");
  refuse(dims({1}) + num(2, 1) + sub(7, varint(1)), "float32 in float_data");
  refuse(dims({1ULL << 62, 1ULL << 62}) + num(2, 1), "elements");
  refuse(dims({static_cast<std::uint64_t>(-1)}) + num(2, 1), "elements");
  std::string many;
  for (int i = 0; i < 17; ++i) {
    many += num(1, 1);
  }
  refuse(many, "at most 16 extents");
  expect_in(complaint([] { tensor(dims({1}) + num(2, 3) + num(5, 128)).read<float>(); }),
            "int8 holds");
  expect_in(complaint([] { tensor(dims({1}) + num(2, 8) + sub(6, "text")).read<float>(); }),
            "string, which is not read");
}

TEST_F(OnnxRead, WhatIsNoModelIsNamed) {
  expect_in(complaint([] { read_model(std::filesystem::path("no/such/file.onnx")); }),
            "No such file");
  expect_in(refusal(""), "is empty");
  expect_in(refusal("\n<!DOCTYPE html><html>"), "a web page");
  expect_in(refusal("<HTML>"), "a web page");
  expect_in(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n"),
            "a pointer of Git LFS");
  expect_in(refusal("PK\x03\x04 and more"), "a zip archive");
  expect_in(refusal("\x1f\x8b\x08 and more"), "a gzip archive");
  expect_in(refusal("just some text"), "text, not protobuf");
  expect_in(refusal("\x80\x02}q"), "a pickle of Python");
  expect_in(refusal(std::string("\x10\0\0\0\0\0\0\0{}", 10) + "              "),
            "a safetensors file");
  expect_in(refusal(std::string(100, '\xff')), "cut off, damaged, or not protobuf");
  expect_in(refusal(num(1, 8)), "has no graph");
  expect_in(refusal(model("", 99)), "opset too new");
  EXPECT_EQ(read_model(bytes_of(model("", 99)), "it", {.newest_opset = 99}).opset(), 99);
}

TEST_F(OnnxRead, WrongWireTypesAndLengthsAreRefused) {
  expect_in(refusal(num(7, 5)), "wire type 2 in field 7");
  expect_in(refusal(sub(1, "8") + sub(7, "")), "wire type 0 in field 1");
  expect_in(refusal(num(1, 8) + varint(7 * 8 + 3)), "wire type 3");
  expect_in(refusal(varint(7 * 8 + 2) + varint(1000) + "short"), "field 7 of 1000 bytes");
  expect_in(refusal(varint(7 * 8 + 2) + varint(~std::uint64_t{0})), "bytes that are left");
  expect_in(refusal(varint(8) + std::string(11, '\xff')), "at most 10 bytes");
  expect_in(refusal(std::string(1, '\0')), "a field of 1 to");
  EXPECT_NE(refusal(num(1, 8) + "\x08"), "");
}

TEST_F(OnnxRead, NamesAreUtf8AndAttributesAnyBytes) {
  const auto named = [](const std::string& name, const std::string& text) {
    const std::string attribute = sub(1, "a") + sub(4, text) + num(20, 3);
    return model(sub(2, name) + sub(1, node("Relu", {"x"}, {"y"}, sub(5, attribute))));
  };
  EXPECT_EQ(parse(named("caf\xc3\xa9", "")).graph.name, "caf\xc3\xa9");
  EXPECT_EQ(parse(named("y", "\xff")).graph.nodes[0].attributes[0].s, "\xff");
  const std::string bytes = named("caf\xe9", "");
  const std::string text = refusal(bytes);
  expect_in(text, "byte " + std::to_string(bytes.find('\xe9')));
  expect_in(text, "UTF-8");
  expect_in(text, "\\xe9");
}

TEST_F(OnnxRead, NestingHasABound) {
  // A graph in an attribute of a node in a graph, 20,000 times: only the sizes of what is inside
  // are needed for what stands before it.
  std::vector<std::string> before;
  std::size_t size = 0;
  for (int level = 0; level < 20'000; ++level) {
    for (const unsigned field : {6U, 5U, 1U}) {
      before.push_back(varint(field * 8 + 2) + varint(size));
      size += before.back().size();
    }
  }
  std::string graph;
  for (auto one = before.rbegin(); one != before.rend(); ++one) {
    graph += *one;
  }
  expect_in(refusal(model(graph)), "at most 100 messages within each other");
}

/// The largest address space this process had, in KiB; 0 where the system does not say.
Index peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmPeak:")) {
      return std::stoll(line.substr(7));
    }
  }
  return 0;
}

TEST_F(OnnxRead, NoMemoryIsAskedForOnTheWordOfAFile) {
  // Each claims at least 1 GiB, most of them more than a machine has, in a file of a few bytes.
  const std::uint64_t giga = std::uint64_t{1} << 30;
  const std::string raw = sub(9, plain({1.0F}));
  const auto of_tensor = [](const std::string& bytes) { return model(sub(5, bytes)); };
  const auto far = [&](const std::string& length) {
    return external(entry("location", "data") + length, giga);
  };
  write("data", plain({1.0F, 2.0F}));
  const std::vector<std::string> files = {
      of_tensor(dims({giga}) + num(2, 1)),
      of_tensor(dims({giga}) + num(2, 1) + raw),
      of_tensor(dims({giga, giga}) + num(2, 1) + raw),
      of_tensor(dims({giga}) + num(2, 1) + sub(4, plain({1.0F}))),
      of_tensor(dims({giga}) + num(2, 7) + sub(7, varint(5))),
      of_tensor(dims({giga}) + num(2, 11) + sub(10, plain({1.0}))),
      of_tensor(dims({giga}) + num(2, 10) + sub(5, varint(0x3e00))),
      of_tensor(dims({4 * giga}) + num(2, 9) + sub(5, varint(1))),
      of_tensor(dims({1}) + num(2, 1) + varint(9 * 8 + 2) + varint(giga) + "1234"),
      of_tensor(varint(1 * 8 + 2) + varint(giga) + "12"),
      model(varint(1 * 8 + 2) + varint(8 * giga)),
      varint(7 * 8 + 2) + varint(1024 * giga) + "graph",
      num(1, 8) + varint(2 * 8 + 2) + varint(giga) + "a name",
      far(""),
      far(entry("length", std::to_string(4 * giga))),
      far(entry("offset", std::to_string(giga)) + entry("length", std::to_string(4 * giga))),
  };
  // What a process takes by the way, its first allocations of all sizes and a sanitizer's tables.
  constexpr Index kMostKib = 128 * 1024;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto file = write("m.onnx", files[i]);
    const Index before = peak_kib();
    EXPECT_NE(complaint([&] {
                const Model read = read_model(file);
                for (const TensorData& one : read.graph.initializers) {
                  one.read_nearest();
                }
              }),
              "")
        << "file " << i;
    EXPECT_LT(peak_kib() - before, kMostKib) << "file " << i;
  }
}

TEST_F(OnnxRead, NoBeginningIsTakenForTheWhole) {
  const std::string file = sum_model();
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_NE(refusal(file.substr(0, length)), "") << length << " bytes";
  }
  io::for_each_accepted_flip(
      file,
      [](std::span<const std::byte> bytes) { return read_model(bytes, "it"); },
      [](const Model& read, std::size_t) {
        for (const TensorData& one : read.graph.initializers) {
          complaint([&] { one.read<float>(); });
        }
        name_problems(read);
      });
}

TEST_F(OnnxRead, EveryWrongNameIsListed) {
  const auto problems = [](const std::string& graph) {
    std::string text;
    for (const Problem& problem : name_problems(parse(model(graph)))) {
      text += to_string(problem) + "\n";
    }
    return text;
  };
  expect_in(
      problems(sub(1, node("Relu", {"a"}, {"b"})) + sub(1, node("Relu", {"b"}, {"a"}))),
      "node #0 (Relu): uses \"a\", which a later node makes: a cycle, or nodes out of order\n");
  const std::string all =
      problems(sub(1, node("Add", {"x", "lost"}, {"y"}, sub(3, "sum"))) +
               sub(1, node("Relu", {"x"}, {"y"})) + sub(5, floats("w", {1})) +
               sub(5, floats("w", {1})) + sub(11, value("x")) + sub(12, value("z")));
  expect_in(all, "node \"sum\" (Add): uses \"lost\", which nothing makes\n");
  expect_in(all, "node #1 (Relu): defines \"y\", which is defined already\n");
  expect_in(all, "two initialisers are called \"w\"\n");
  expect_in(all, "nothing makes the output \"z\"\n");
}

// --- Numbers in other files --------------------------------------------------------------------

TEST_F(OnnxRead, ExternalNumbersAreReadFromTheModelsFolder) {
  std::filesystem::create_directory(path("sub"));
  write("sub/data", plain({9.0F, 1.0F, 2.0F}));
  const auto model_file = write("m.onnx",
                                external(entry("location", "./sub/data") + entry("offset", "4") +
                                         entry("length", "8") + entry("__class__", "ignored")));
  const Model read = read_model(model_file);
  EXPECT_EQ(read.graph.initializers.at(0).read<double>(), Tensor<double>(Shape{2}, {1, 2}));
  // The same bytes in memory have no folder.
  const std::string bytes = OnnxRead::read(model_file);
  expect_in(complaint([&] { parse(bytes).graph.initializers.at(0).read<float>(); }), "in memory");
}

TEST_F(OnnxRead, ExternalNumbersDoNotLeaveTheFolder) {
  const auto refuse = [&](const std::string& entries, std::string_view part) {
    const auto file = write("m.onnx", external(entries));
    expect_in(complaint([&] { read_model(file); }), part);
  };
  write("data", plain({1.0F, 2.0F}));
  refuse(entry("location", "data") + entry("offset", "4"), "has 8");
  refuse(entry("location", "data") + entry("length", "4"), "needs 8 bytes");
  refuse(entry("location", "data") + entry("offset", "18446744073709551615"), "has 8");
  refuse(entry("location", "data") + entry("offset", "18446744073709551616"), "a decimal offset");
  refuse(entry("location", "data") + entry("offset", "-1"), "a decimal offset");
  refuse(entry("location", "data") + entry("length", "8 "), "a decimal length");
  refuse(entry("offset", "0"), "no location");
  refuse(entry("location", "absent"), "No such file");
  refuse(entry("location", path("data").string()), "relative to a folder");
  refuse(entry("location", "../" + path("x").parent_path().filename().string() + "/data"),
         "out of the folder");
  refuse(entry("location", "."), "a folder");
  refuse(entry("location", std::string("data\0x", 6)), "zero byte");
  std::filesystem::create_symlink(path("data"), path("link"));
  refuse(entry("location", "link"), "a symbolic link");
  std::filesystem::create_directory(path("real"));
  write("real/data", plain({1.0F, 2.0F}));
  std::filesystem::create_directory_symlink(path("real"), path("way"));
  refuse(entry("location", "way/data"), "cannot be read");
  std::filesystem::create_hard_link(path("data"), path("twin"));
  refuse(entry("location", "data"), "2 names");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  refuse(entry("location", "pipe"), "a named pipe");
}

}  // namespace
}  // namespace fenestra::onnx

// safetensors in and out: the reference's bytes, everything that it refuses, and damage of any
// kind.
#include <fenestra/io/files_test.hpp>
#include <fenestra/io/safetensors.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace fenestra::io {
namespace {

using Safetensors = Files;

/// A file with that header and those data.
std::string file_of(const std::string& header, const std::string& data = "") {
  const auto length = std::bit_cast<std::array<char, 8>>(std::uint64_t{header.size()});
  return std::string(length.begin(), length.end()) + header + data;
}

SafetensorsReader parse(std::span<const std::byte> bytes) { return {bytes, "it"}; }

/// Expects the complaint about a file with that header, `offset` counted in the header.
void expect_header_refused(const std::string& header,
                           std::size_t offset,
                           std::string_view part,
                           const std::string& data = "") {
  SCOPED_TRACE(header);
  const std::string file = file_of(header, data);
  expect_refused([&] { parse(bytes_of(file)); }, 8 + offset, part);
}

std::string tensor(const std::string& type, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

TEST_F(Safetensors, WhatWasSavedComesBack) {
  const TensorMap tensors{
      {"w", Tensor<float>(Shape{2, 3}, {1, -2, 3.5F, 0, -0.0F, 6})},
      {"mean", Tensor<double>(Shape{1}, {1e300})},
      {"steps", Tensor<Index>(Shape{2}, {std::numeric_limits<Index>::max(), -5})},
      {"scalar", Tensor<double>(Shape{}, 2.5)},
      {"none", Tensor<float>(Shape{0, 4})},
      {"größe.重み.\"\\\n\x01", Tensor<float>(Shape{1}, {7})},
      {"", Tensor<float>(Shape{1}, {8})},
  };
  const Metadata metadata{{"format", "fenestra"}, {"classes", "[\"0\", \"1\"]\t\x7f\u00e9"}};
  save_safetensors(path("m"), tensors, metadata);
  const SafetensorsContents contents = load_safetensors(path("m"));
  EXPECT_EQ(contents.tensors, tensors);
  EXPECT_EQ(contents.metadata, metadata);

  save_safetensors(path("m"), {});
  EXPECT_TRUE(load_safetensors(path("m")).tensors.empty());
  EXPECT_EQ(read(path("m")), file_of("{}      "));
}

TEST_F(Safetensors, TheBytesAreTheReferences) {
  // From the reference's own test of its writer.
  save_safetensors(path("a"), {{"attn.0", Tensor<float>(Shape{1, 2, 3})}});
  EXPECT_EQ(read(path("a")),
            std::string("@\0\0\0\0\0\0\0", 8) +
                R"({"attn.0":{"dtype":"F32","shape":[1,2,3],"data_offsets":[0,24]}})" +
                std::string(24, '\0'));
  save_safetensors(path("b"), {{"attn0", Tensor<float>(Shape{1, 1, 2, 3})}});
  EXPECT_EQ(read(path("b")),
            std::string("H\0\0\0\0\0\0\0", 8) +
                R"({"attn0":{"dtype":"F32","shape":[1,1,2,3],"data_offsets":[0,24]}}       )" +
                std::string(24, '\0'));
}

TEST_F(Safetensors, DataFallInAlignmentThenByName) {
  save_safetensors(path("m"),
                   {{"a", Tensor<float>(Shape{1})},
                    {"b", Tensor<double>(Shape{1})},
                    {"c", Tensor<Index>(Shape{1})},
                    {"d", Tensor<double>(Shape{1})},
                    {"A", Tensor<float>(Shape{1})}},
                   {{"k", "v"}});
  const SafetensorsReader reader(path("m"));
  std::string order;
  for (const SafetensorsEntry& entry : reader.entries()) {
    order += entry.name;
    EXPECT_EQ(entry.offset % static_cast<std::uint64_t>(width_of(entry.type)), 0U) << entry.name;
  }
  EXPECT_EQ(order, "cbdAa");
  EXPECT_NE(read(path("m")).find(R"({"__metadata__":{"k":"v"},"c":)"), std::string::npos);
}

TEST_F(Safetensors, EveryNumberTypeIsRead) {
  const auto read_as = [&]<class T>(T, const std::string& type, const std::string& bytes) {
    const std::string file = file_of(
        R"({"x":)" + tensor(type, "[]", "[0," + std::to_string(bytes.size()) + "]") + "}", bytes);
    return parse(bytes_of(file)).template read<T>("x")[0];
  };
  const auto bytes = []<class T>(T value) {
    const auto array = std::bit_cast<std::array<char, sizeof(T)>>(value);
    return std::string(array.begin(), array.end());
  };
  EXPECT_EQ(read_as(Index{}, "BOOL", "\x01"), 1);
  EXPECT_EQ(read_as(Index{}, "U8", "\xff"), 255);
  EXPECT_EQ(read_as(Index{}, "I8", "\xff"), -1);
  EXPECT_EQ(read_as(Index{}, "I16", std::string("\x00\x80", 2)), -32768);
  EXPECT_EQ(read_as(Index{}, "U16", std::string("\x00\x80", 2)), 32768);
  EXPECT_EQ(read_as(float{}, "I32", bytes(-7)), -7);
  EXPECT_EQ(read_as(Index{}, "U32", "\xff\xff\xff\xff"), 4294967295);
  EXPECT_EQ(read_as(Index{}, "I64", bytes(std::numeric_limits<Index>::min())),
            std::numeric_limits<Index>::min());
  EXPECT_EQ(read_as(double{}, "U64", bytes(std::uint64_t{1} << 63)), 0x1p63);
  EXPECT_EQ(read_as(float{}, "F64", bytes(0.1)), 0.1F);
  EXPECT_EQ(read_as(Index{}, "F32", bytes(-3.0F)), -3);
  EXPECT_EQ(read_as(float{}, "BF16", bytes(std::uint16_t{0xc049})), -3.140625F);
  EXPECT_TRUE(std::isinf(read_as(float{}, "F64", bytes(HUGE_VAL))));
  EXPECT_TRUE(std::isnan(read_as(double{}, "F32", bytes(NAN))));

  const auto half = [&](std::uint16_t bits) { return read_as(float{}, "F16", bytes(bits)); };
  EXPECT_EQ(half(0x3c00), 1);
  EXPECT_EQ(half(0xc000), -2);
  EXPECT_EQ(half(0x7bff), 65504);
  EXPECT_EQ(half(0x0400), 0x1p-14F);
  EXPECT_EQ(half(0x0001), 0x1p-24F);
  EXPECT_EQ(half(0x83ff), -1023 * 0x1p-24F);
  EXPECT_TRUE(std::signbit(half(0x8000)));
  EXPECT_EQ(half(0x8000), 0);
  EXPECT_EQ(half(0xfc00), -HUGE_VALF);
  EXPECT_TRUE(std::isnan(half(0x7e01)));

  // What the tensor's type cannot hold.
  const auto refused = [&]<class T>(T, const std::string& type, const std::string& stored) {
    return complaint([&] { read_as(T{}, type, stored); });
  };
  EXPECT_NE(refused(float{}, "I32", bytes((1 << 24) + 1)).find("found 16777217"),
            std::string::npos);
  EXPECT_NE(refused(float{}, "F64", bytes(1e300)), "");
  EXPECT_NE(refused(Index{}, "F32", bytes(0.5F)), "");
  EXPECT_NE(refused(Index{}, "F32", bytes(NAN)), "");
  EXPECT_NE(refused(Index{}, "F64", bytes(0x1p63)), "");
  EXPECT_NE(refused(Index{}, "U64", bytes(std::uint64_t{1} << 63)), "");
  EXPECT_NE(refused(float{}, "I64", bytes(std::numeric_limits<Index>::max())), "");
  EXPECT_NE(refused(double{}, "U64", bytes(std::numeric_limits<std::uint64_t>::max())), "");
  EXPECT_NE(refused(Index{}, "BOOL", "\x02"), "");
  EXPECT_NE(refused(float{}, "F8_E4M3", "\x38").find("8 bits"), std::string::npos);
}

TEST_F(Safetensors, ManyNumbersAreConvertedInPieces) {
  std::string data;
  for (int i = 0; i < 20000; ++i) {
    data += static_cast<char>(i % 251);
    data += static_cast<char>(i / 251);
  }
  const std::string file = file_of(R"({"x":)" + tensor("U16", "[20000]", "[0,40000]") + "}", data);
  const Tensor<float> x = parse(bytes_of(file)).read<float>("x");
  for (Index i = 0; i < x.size(); ++i) {
    ASSERT_EQ(x[i], static_cast<float>(i % 251 + 256 * (i / 251)));
  }
}

TEST_F(Safetensors, TheLengthOfTheHeaderIsChecked) {
  const auto refused = [](std::string_view file, std::size_t offset, std::string_view part) {
    expect_refused([&] { parse(bytes_of(file)); }, offset, part);
  };
  refused("", 0, "found a file of 0 bytes");
  refused("1234567", 7, "found a file of 7 bytes");
  refused(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8), 0, "100000000 bytes, found 100000001");
  refused(std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8), 0, "18446744073709551615");
  refused(std::string("\x03\0\0\0\0\0\0\0{}", 10), 10, "a header of 3 bytes, found 2");
  expect_header_refused("", 0, "no header");
}

TEST_F(Safetensors, WhatIsAnotherFileIsNamed) {
  const auto named = [](std::string_view file, std::string_view what) {
    const std::string text = complaint([&] { parse(bytes_of(file)); });
    EXPECT_NE(text.find("is " + std::string(what) + ", no safetensors file"), std::string::npos)
        << text;
  };
  named("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n",
        "a pointer of Git LFS");
  named("<!DOCTYPE html><html>", "a web page");
  named("PK\x03\x04\x14 and more", "a zip archive");
  named("\x80\x02}q and more", "a pickle of Python");
  named("\x89PNG\r\n\x1a\n", "a picture");
  // A header whose length has the first bytes of gzip is no gzip.
  std::string header = "{}";
  header.resize(0x8b1f, ' ');
  EXPECT_TRUE(parse(bytes_of(std::string("\x1f\x8b\0\0\0\0\0\0", 8) + header)).entries().empty());
}

TEST_F(Safetensors, TheHeaderIsStrictJson) {
  expect_header_refused(" {}", 0, "'{'");
  expect_header_refused("[]", 0, "'{'");
  expect_header_refused("{", 1, "a string in double quotes, found the end of the header");
  expect_header_refused("{}x", 2, "nothing after");
  expect_header_refused(std::string("{}\0", 3), 2, "nothing after");
  expect_header_refused("{\"a\xff\":1}", 3, "UTF-8");
  expect_header_refused("{\"\xc0\x80\":1}", 2, "UTF-8");
  expect_header_refused("{\"\xed\xa0\x80\":1}", 2, "UTF-8");
  expect_header_refused("{\"\xf4\x90\x80\x80\":1}", 2, "UTF-8");
  expect_header_refused("{\"\xe2\x82\":1}", 2, "UTF-8");
  expect_header_refused("{'a':{}}", 1, "double quotes");
  expect_header_refused(R"({"a":{},})", 5, "dtype");
  expect_header_refused(R"({"__metadata__":{},})", 19, "a string");
  expect_header_refused(R"({"__metadata__" {}})", 16, "':'");
  expect_header_refused(R"({"__metadata__":[]})", 16, "an object");
  expect_header_refused(R"({"__metadata__":{"a":1}})", 21, "a string");
  expect_header_refused(R"({"__metadata__":{"a":null}})", 21, "a string");
  expect_header_refused(R"({"__metadata__":{"a":"\x"}})", 23, "backslash");
  expect_header_refused(R"({"__metadata__":{"a":"\u12g4"}})", 24, "hexadecimal");
  expect_header_refused(R"({"__metadata__":{"a":"\ud800"}})", 28, "surrogates");
  expect_header_refused(R"({"__metadata__":{"a":"\ud800A"}})", 28, "surrogates");
  expect_header_refused(R"({"__metadata__":{"a":"\ud800\u0041"}})", 34, "surrogates");
  expect_header_refused("{\"__metadata__\":{\"a\":\"\n\"}}", 22, "control characters");
  expect_header_refused(R"({"__metadata__":{"a":"b)", 23, "end of a string");
  expect_header_refused(R"({"__metadata__":{"a":"","a":""}})", 24, R"("a" for the second time)");
  expect_header_refused(R"({"__metadata__":{},"__metadata__":{}})", 19, "second time");

  const std::string good =
      file_of(R"({"__metadata__":{"\u0061\ud83d\ude00\/":"\"\\\b\f\n\r\t\u00e9"}})"
              " \n\t\r");
  EXPECT_EQ(parse(bytes_of(good)).metadata(), (Metadata{{"a\U0001F600/", "\"\\\b\f\n\r\t\u00e9"}}));
}

TEST_F(Safetensors, TensorsAreStatedWhole) {
  expect_header_refused(R"({"a":1})", 5, "an object");
  expect_header_refused(R"({"a":{"shape":[],"data_offsets":[0,0]}})", 5, "no dtype");
  expect_header_refused(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 5, "no shape");
  expect_header_refused(R"({"a":{"dtype":"F32","shape":[]}})", 5, "no data_offsets");
  expect_header_refused(R"({"a":)" + tensor("F31", "[]", "[0,4]") + "}", 14, R"("F31")");
  expect_header_refused(R"({"a":)" + tensor("f32", "[]", "[0,4]") + "}", 14, R"("f32")");
  expect_header_refused(R"({"a":)" + tensor("F32", "4", "[0,4]") + "}", 28, "an array");
  expect_header_refused(R"({"a":)" + tensor("F32", "[]", "[0]") + "}", 46, "two offsets");
  expect_header_refused(R"({"a":)" + tensor("F32", "[]", "[0,4,8]") + "}", 51, "two offsets");
  for (const char* number : {"-1", "1.0", "1e0", "01", "\"1\"", "null", "18446744073709551616"}) {
    expect_header_refused(
        R"({"a":)" + tensor("F32", "[" + std::string(number) + "]", "[0,4]") + "}",
        29,
        "a whole number");
    expect_header_refused(R"({"a":)" + tensor("F32", "[]", "[" + std::string(number) + ",4]") + "}",
                          47,
                          "a whole number");
  }
  // A double would make 2^53 of it.
  expect_header_refused(
      R"({"a":)" + tensor("U8", "[4]", "[9007199254740993,9007199254740996]") + "}",
      46,
      R"(4 bytes for U8 (4,) of "a", found 3)");
  expect_header_refused(
      R"({"a":)" + tensor("F32", "[9223372036854775808]", "[0,4]") + "}", 29, "below 2^63");
  expect_header_refused(
      R"({"a":)" + tensor("F32", "[4294967296,4294967296]", "[0,4]") + "}", 28, "elements");
  expect_header_refused(
      R"({"a":)" + tensor("F64", "[9007199254740992]", "[0,4]") + "}", 28, "elements");
  expect_header_refused(
      R"({"a":)" + tensor("U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]") + "}",
      60,
      "at most 16 extents");
  expect_header_refused(
      R"({"a":{"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]}})", 19, "second time");
  expect_header_refused(R"({"a":)" + tensor("U8", "[]", "[0,1]") + R"(,"\u0061":)" +
                            tensor("U8", "[]", "[1,2]") + "}",
                        52,
                        R"("a" for the second time)",
                        "12");
}

TEST_F(Safetensors, WhatLaterVersionsSayIsSkippedWithALimit) {
  const auto with = [](const std::string& value) {
    return R"({"a":{"dtype":"U8","shape":[],"more":)" + value + R"(,"data_offsets":[0,1]}})";
  };
  for (const char* value : {"{}",
                            "[]",
                            R"({"a":[1,-2.5e+10,true,false,null,"x"],"b":{}})",
                            "0.5",
                            "-0",
                            "[[[[[[[[[[[[[[]]]]]]]]]]]]]]"}) {
    const std::string file = file_of(with(value), "x");
    EXPECT_EQ(parse(bytes_of(file)).read<Index>("a")[0], 'x') << value;
  }
  expect_header_refused(with("[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]"), 52, "at most 16 levels");
  expect_header_refused(with(std::string(100000, '[')), 52, "at most 16 levels");
  for (const char* value : {"tru", "+1", "NaN", "'a'", "nul", "]", "}"}) {
    expect_header_refused(with(value), 37, "a value");
  }
  expect_header_refused(with(".5"), 37, "a value");
  expect_header_refused(with("1."), 39, "a value");
  expect_header_refused(with("1e"), 39, "a value");
  expect_header_refused(with("01"), 38, "',' or '}'");
  expect_header_refused(with(R"({"a":1,"a":2})"), 44, "second time");
}

TEST_F(Safetensors, EveryByteOfDataBelongsToOneTensor) {
  const auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":)" + tensor("U8", "[2]", a) + R"(,"b":)" + tensor("U8", "[2]", b) + "}";
  };
  const std::string good = file_of(two("[2,4]", "[0,2]"), "1234");
  EXPECT_EQ(parse(bytes_of(good)).read<Index>("a"), Tensor<Index>(Shape{2}, {'3', '4'}));
  EXPECT_EQ(parse(bytes_of(good)).entries()[0].name, "b");

  expect_header_refused(two("[0,2]", "[1,3]"), 98, R"("b" to begin at 2)", "123");  // overlap
  expect_header_refused(two("[0,2]", "[0,2]"), 98, R"("b" to begin at 2)", "12");  // twice the same
  expect_header_refused(two("[0,2]", "[3,5]"), 98, R"("b" to begin at 2)", "12345");  // a hole
  expect_header_refused(two("[1,3]", "[3,5]"), 46, R"("a" to begin at 0)", "12345");
  expect_header_refused(two("[2,0]", "[0,2]"), 46, "an end that is not before the begin, 2");
  expect_header_refused(two("[0,3]", "[3,5]"), 46, R"(2 bytes for U8 (2,) of "a", found 3)");
  // 105 bytes of header; what is missing begins at its end, what is too much after the last tensor.
  expect_header_refused(
      two("[0,2]", "[2,4]"), 107, "4 bytes of data, as the header says, found 2", "12");
  expect_header_refused(two("[0,2]", "[2,4]"), 109, "found 5", "12345");
  expect_header_refused("{}", 2, "0 bytes of data, as the header says, found 1", "1");
}

TEST_F(Safetensors, EmptyTensorsShareAnOffset) {
  const std::string file =
      file_of(R"({"b":)" + tensor("F32", "[0,3]", "[4,4]") + R"(,"a":)" +
                  tensor("F32", "[1]", "[0,4]") + R"(,"c":)" + tensor("F64", "[0]", "[0,0]") + "}",
              std::string(4, '\0'));
  EXPECT_EQ(parse(bytes_of(file)).read<float>("b").shape(), (Shape{0, 3}));
  EXPECT_EQ(parse(bytes_of(file)).read<float>("c").size(), 0);
}

TEST_F(Safetensors, NamesThatAreNotThereAreRefused) {
  const std::string file = file_of("{}");
  EXPECT_EQ(parse(bytes_of(file)).find("w"), nullptr);
  EXPECT_NE(complaint([&] { parse(bytes_of(file)).read<float>("w\n"); }).find(R"("w\x0a")"),
            std::string::npos);
}

TEST_F(Safetensors, WhatCannotBeReadBackIsNotWritten) {
  write("old", "old");
  const Tensor<float> x(Shape{1});
  EXPECT_NE(complaint([&] { save_safetensors(path("old"), {{"__metadata__", x}}); }), "");
  EXPECT_NE(complaint([&] { save_safetensors(path("old"), {{"\xff", x}}); }), "");
  EXPECT_NE(complaint([&] { save_safetensors(path("old"), {}, {{"\xff", ""}}); }), "");
  EXPECT_NE(complaint([&] { save_safetensors(path("old"), {}, {{"", "\xff"}}); }), "");
  EXPECT_EQ(read(path("old")), "old");
  EXPECT_NE(complaint([&] { save_safetensors(path("no/folder"), {}); }), "");
}

TEST_F(Safetensors, OnlyRegularFilesAreOpened) {
  EXPECT_NE(complaint([&] { SafetensorsReader(path("none")); }).find("cannot be read"),
            std::string::npos);
  EXPECT_NE(complaint([&] { SafetensorsReader(path("")); }).find("regular"), std::string::npos);
  EXPECT_NE(complaint([&] { SafetensorsReader("/dev/zero"); }).find("regular"), std::string::npos);
}

TEST_F(Safetensors, AFileThatShrinksWhileItIsReadIsRefused) {
  save_safetensors(path("m"), {{"x", Tensor<float>(Shape{1000}, 1.0F)}});
  const SafetensorsReader reader(path("m"));
  std::filesystem::resize_file(path("m"), 2000);
  EXPECT_NE(complaint([&] { reader.read<float>("x"); }), "");
}

TEST_F(Safetensors, DamageIsRefusedOrSeenInTheNumbersOnly) {
  const TensorMap tensors{{"a", Tensor<float>(Shape{2, 1}, {1, 2})},
                          {"b", Tensor<Index>(Shape{1}, {3})},
                          {"c", Tensor<double>(Shape{}, 4.0)}};
  save_safetensors(path("m"), tensors, {{"k", "v"}});
  const std::string file = read(path("m"));
  expect_no_beginning_is_accepted(file, parse);
  const std::string longer = file + '\0';
  EXPECT_NE(complaint([&] { parse(bytes_of(longer)); }), "");

  const auto entries = parse(bytes_of(file)).entries();
  for_each_accepted_flip(file, parse, [&](const SafetensorsReader& reader, std::size_t) {
    // A flip may turn a name, a type of equal width or an extent of 1 into another good one; data
    // never move and never change their size.
    ASSERT_LE(reader.entries().size(), entries.size());
    for (std::size_t i = 0; i < reader.entries().size(); ++i) {
      EXPECT_EQ(reader.entries()[i].offset, entries[i].offset);
      EXPECT_EQ(reader.entries()[i].bytes, entries[i].bytes);
      complaint([&] { reader.read<double>(reader.entries()[i].name); });
    }
  });
}

}  // namespace
}  // namespace fenestra::io

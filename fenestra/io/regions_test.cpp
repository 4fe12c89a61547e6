// Files by parts against the same files whole, and what is refused.
#include <fenestra/io/files_test.hpp>
#include <fenestra/io/image.hpp>
#include <fenestra/io/npy.hpp>
#include <fenestra/io/regions.hpp>
#include <fenestra/spec/random.hpp>
#include <fenestra/tensor/transform.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fenestra::io {
namespace {

class Regions : public Files {};

/// A box inside `shape`, never empty.
Box random_box(const Shape& shape, Random& random) {
  Box box(shape);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const Index begin = random.between(0, shape[axis] - 1);
    box.set(axis, {begin, random.between(begin + 1, shape[axis])});
  }
  return box;
}

Tensor<float> part_of(Tensor<float> whole, const Box& box) {
  for (int axis = 0; axis < box.rank(); ++axis) {
    whole = sliced(whole, axis, box.begin[axis], box.count[axis]);
  }
  return whole;
}

Tensor<float> numbers(const Shape& shape) {
  Random random(5);
  Tensor<float> x(shape);
  for (float& value : x.mutable_values()) {
    value = static_cast<float>(random.real());
  }
  return x;
}

Tensor<float> read_part(const RegionReader& reader, const Box& box) {
  Tensor<float> part(box.shape());
  reader.read(box, part.mutable_data());
  return part;
}

void expect_parts(const RegionReader& reader, const Tensor<float>& whole) {
  ASSERT_EQ(reader.shape(), whole.shape());
  Random random(7);
  for (int i = 0; i < 100; ++i) {
    const Box box = random_box(whole.shape(), random);
    EXPECT_EQ(read_part(reader, box), part_of(whole, box)) << to_string(box);
  }
  EXPECT_EQ(read_part(reader, Box(whole.shape())), whole);
}

TEST_F(Regions, PartsOfAnArrayAreThoseOfTheWholeArray) {
  for (const Shape& shape : {Shape{7}, Shape{5, 9}, Shape{2, 3, 8, 5}}) {
    const Tensor<float> x = numbers(shape);
    save_npy(path("x.npy"), x);
    expect_parts(RegionReader(path("x.npy")), x);
    write("x.raw",
          {reinterpret_cast<const char*>(x.data()),
           static_cast<std::size_t>(x.size()) * sizeof(float)});
    expect_parts(RegionReader(path("x.raw"), RawFormat{shape}), x);
  }
}

TEST_F(Regions, PartsOfAPictureAreThoseThatLoadImageGives) {
  Random random(3);
  for (const std::string head :
       {"P5\n13 9\n255\n", "P6\n# a remark\n13 9\n255\n", "P5 13 9 1000\n"}) {
    const std::size_t samples = 13 * 9 * (head[1] == '6' ? 3 : 1);
    std::string bytes = head;
    for (std::size_t i = 0; i < samples; ++i) {
      if (head.find("1000") != std::string::npos) {
        bytes += static_cast<char>(random.between(0, 2));
      }
      bytes += static_cast<char>(random.between(0, 200));
    }
    const auto file = write("x.pnm", bytes);
    const RegionReader reader(file);
    expect_parts(reader, to_tensor(load_image(file)));
    EXPECT_FALSE(reader.has_bytes());
  }
}

TEST_F(Regions, WhatIsWrittenByPartsInAnyOrderIsReadWhole) {
  const Tensor<float> x = numbers(Shape{3, 8, 11});
  const auto written = [&](const std::string& name, const Tensor<float>& values) {
    const auto file = path(name);
    RegionWriter writer(file, *region_format(file), values.shape());
    for (const Index row : {6, 0, 4, 2}) {
      for (const Index column : {5, 0}) {
        Box box(values.shape());
        box.set(1, {row, row + 2});
        box.set(2, {column, column == 0 ? 5 : 11});
        writer.write(box, part_of(values, box).data());
      }
    }
    EXPECT_FALSE(std::filesystem::exists(file)) << "before it is committed";
    writer.commit();
    return file;
  };
  EXPECT_EQ(load_npy<float>(written("y.npy", x)), x);
  EXPECT_EQ(read_part(RegionReader(written("y.raw", x), RawFormat{x.shape()}), Box(x.shape())), x);
  EXPECT_EQ(load_image(written("y.ppm", x)), to_image(x));
  const Tensor<float> grey = sliced(x, 0, 0, 1);
  EXPECT_EQ(load_image(written("y.pgm", grey)), to_image(grey));
}

TEST_F(Regions, RefuseFilesThatAreDamagedOrOfAnotherKind) {
  const auto opens = [&](const std::string& name, const std::optional<RawFormat>& raw = {}) {
    return complaint([&] { RegionReader(path(name), raw); });
  };
  write("short.pgm", "P5\n10 10\n255\nabc");
  EXPECT_NE(opens("short.pgm").find("100 bytes of samples"), std::string::npos);
  write("text.pgm", "P2\n1 1\n255\n7\n");
  EXPECT_NE(opens("text.pgm").find("numbers as text"), std::string::npos);
  write("huge.pgm", "P5\n2147483647 2147483647\n255\nabc");
  EXPECT_NE(opens("huge.pgm"), "");
  write("other.bin", "no array at all");
  EXPECT_NE(opens("other.bin"), "");
  EXPECT_NE(opens("missing.npy"), "");
  EXPECT_NE(opens("other.bin", RawFormat{Shape{4}}).find("15 bytes"), std::string::npos);
  EXPECT_EQ(opens("other.bin", RawFormat{Shape{3, 5}, NumberType::u8}), "");
}

TEST_F(Regions, RefusePartsThatLieOutsideAndShapesThatAFormatDoesNotHave) {
  const auto code_of = [](const auto& act) {
    try {
      act();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::none;
  };
  save_npy(path("x.npy"), numbers(Shape{4, 4}));
  const RegionReader reader(path("x.npy"));
  std::vector<float> out(64);
  for (const IndexRange rows : {IndexRange{-1, 2}, IndexRange{3, 5}, IndexRange{4, 6}}) {
    Box box(reader.shape());
    box.begin[0] = rows.begin;
    box.count[0] = rows.count();
    EXPECT_EQ(code_of([&] { reader.read(box, out.data()); }), ErrorCode::invalid_index);
  }
  EXPECT_EQ(code_of([&] { reader.read(Box(Shape{4}), out.data()); }), ErrorCode::invalid_index);
  for (const auto& [name, shape] : {std::pair{"y.pgm", Shape{2, 4, 4}},
                                    std::pair{"y.ppm", Shape{4, 4}},
                                    std::pair{"y.npy", Shape{0, 4}}}) {
    const auto file = path(name);
    const Shape& of = shape;
    EXPECT_EQ(code_of([&] { RegionWriter(file, *region_format(file), of); }),
              ErrorCode::shape_mismatch)
        << name;
    EXPECT_FALSE(std::filesystem::exists(file));
  }
  EXPECT_FALSE(region_format("y.png"));
}

}  // namespace
}  // namespace fenestra::io

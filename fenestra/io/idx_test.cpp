// IDX in: every type, plain and compressed, and damage of any kind.
#include <fenestra/io/files_test.hpp>
#include <fenestra/io/idx.hpp>

#include <zlib.h>

namespace fenestra::io {
namespace {

using Idx = Files;

/// Two pictures of 2x3 pixels.
const std::string kPictures = std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x03", 16) +
                              std::string("\0\1\2\3\4\5\6\7\x8\x9\xfe\xff", 12);
const Tensor<float> kValues(Shape{2, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 254, 255});

Tensor<float> parse(std::span<const std::byte> bytes) { return decode_idx<float>(bytes, "it"); }

std::string gzipped(const std::string& bytes) {
  z_stream z = {};
  EXPECT_EQ(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&z, bytes.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

TEST_F(Idx, PlainAndCompressedFilesAreRead) {
  EXPECT_EQ(load_idx<float>(write("plain", kPictures)), kValues);
  EXPECT_EQ(load_idx<float>(write("packed", gzipped(kPictures))), kValues);
  EXPECT_EQ(load_idx<std::uint8_t>(path("packed")),
            kValues.map([](float v) { return static_cast<std::uint8_t>(v); }));
  EXPECT_EQ(load_idx<Index>(path("packed")),
            kValues.map([](float v) { return static_cast<Index>(v); }));
  // gzip allows several after each other.
  EXPECT_EQ(load_idx<float>(
                write("two", gzipped(kPictures.substr(0, 20)) + gzipped(kPictures.substr(20)))),
            kValues);
}

TEST_F(Idx, EveryTypeIsRead) {
  const auto one = []<class T>(T, char type, const std::string& bytes) {
    const std::string file = std::string("\0\0", 2) + type + std::string("\1\0\0\0\1", 5) + bytes;
    return decode_idx<T>(bytes_of(file), "it")[0];
  };
  EXPECT_EQ(one(Index{}, 8, "\xff"), 255);
  EXPECT_EQ(one(Index{}, 9, "\xff"), -1);
  EXPECT_EQ(one(Index{}, 11, "\xff\xfe"), -2);
  EXPECT_EQ(one(Index{}, 12, std::string("\x01\0\0\0", 4)), 1 << 24);
  EXPECT_EQ(one(float{}, 13, std::string("\x3f\x80\0\0", 4)), 1);
  EXPECT_EQ(one(double{}, 14, std::string("\xc0\0\0\0\0\0\0\0", 8)), -2);
  EXPECT_NE(complaint([&] { one(std::uint8_t{}, 9, "\xff"); }).find("from 0 to 255, found -1"),
            std::string::npos);
}

TEST_F(Idx, EmptyArraysAndScalarsAreRead) {
  const std::string none("\0\0\x08\x02\0\0\0\0\0\0\0\5", 12);
  EXPECT_EQ(parse(bytes_of(none)).shape(), (Shape{0, 5}));
  const std::string packed = gzipped(none);
  EXPECT_EQ(parse(bytes_of(packed)).shape(), (Shape{0, 5}));
  const std::string scalar("\0\0\x08\0\7", 5);
  EXPECT_EQ(parse(bytes_of(scalar)), Tensor<float>(Shape{}, 7));
}

TEST_F(Idx, WhatTheHeaderSaysIsChecked) {
  const auto refused = [](const std::string& bytes, std::size_t offset, std::string_view part) {
    expect_refused([&] { parse(bytes_of(bytes)); }, offset, part);
  };
  refused("", 0, "4 bytes");
  refused("PK\3\4more", 0, "found 80 75 3 4");
  refused(std::string("\0\0\x0a\1\0\0\0\1x", 9), 0, "found 0 0 10 1");
  refused(std::string("\0\0\x08\x11", 4) + std::string(68, '\0'), 0, "at most 16 axes");
  refused(kPictures + "x", 16, "12 bytes of numbers for (2, 2, 3) of 1 bytes each, found 13");
  refused(std::string("\0\0\x08\x01\xff\xff\xff\xff", 8), 8, "4294967295 bytes");
  std::string wide("\0\0\x08\x10", 4);
  wide += std::string(64, '\xff');
  refused(wide, 4, "a shape that fits into memory");
  refused(gzipped(wide), 4, "a shape that fits into memory");
}

TEST_F(Idx, CompressedFilesDoNotGrowBeyondTheirHeader) {
  const std::string huge("\0\0\x08\x01\x7f\xff\xff\xff", 8);
  const std::string packed = gzipped(huge);
  expect_refused([&] { parse(bytes_of(packed)); }, 4, "at most 1032 bytes");
  const std::string good = gzipped(kPictures);
  const IdxOptions careful{.max_inflated_bytes = 11};
  expect_refused(
      [&] { decode_idx<float>(bytes_of(good), "it", careful); }, 4, "at most 11 bytes, inflated");
  const std::string more = gzipped(kPictures + std::string(1 << 20, '\0'));
  EXPECT_NE(complaint([&] { parse(bytes_of(more)); }).find("found more"), std::string::npos);
  const std::string tail = gzipped(kPictures) + "tail";
  EXPECT_NE(complaint([&] { parse(bytes_of(tail)); }).find("deflated data"), std::string::npos);
}

TEST_F(Idx, DamageOfCompressedFilesIsRefusedOrChangesNothing) {
  expect_no_beginning_is_accepted(kPictures, parse);
  const std::string packed = gzipped(kPictures);
  expect_no_beginning_is_accepted(packed, parse);
  for_each_accepted_flip(
      packed, parse, [&](const Tensor<float>& result, std::size_t) { EXPECT_EQ(result, kValues); });
  for_each_accepted_flip(kPictures, parse, [&](const Tensor<float>& result, std::size_t byte) {
    EXPECT_TRUE(byte >= 16 || result == kValues || byte == 2) << "of the header";
    EXPECT_EQ(result.size(), kValues.size());
  });
}

}  // namespace
}  // namespace fenestra::io

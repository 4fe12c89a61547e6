// Pictures in and out: known bytes of every format, everything that is refused, damage of any kind.
#include <fenestra/io/files_test.hpp>
#include <fenestra/io/image.hpp>

#include <turbojpeg.h>
#include <zlib.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace fenestra::io {
namespace {

using Images = Files;

Image parse(std::span<const std::byte> bytes) { return decode_image(bytes, "it"); }
Image parse(const std::string& bytes) { return parse(bytes_of(bytes)); }
const auto kParse = [](std::span<const std::byte> bytes) { return parse(bytes); };

void expect_picture_refused(const std::string& bytes, std::size_t offset, std::string_view part) {
  expect_refused([&] { parse(bytes); }, offset, part);
}

Image image(Index height, Index width, int channels, std::vector<std::uint8_t> bytes) {
  return {.height = height, .width = width, .channels = channels, .bytes = std::move(bytes)};
}

std::string big32(std::uint64_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes += static_cast<char>((value >> shift) & 0xff);
  }
  return bytes;
}
std::string little(std::uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) {
    bytes += static_cast<char>((value >> (8 * i)) & 0xff);
  }
  return bytes;
}

// --- PNG -----------------------------------------------------------------------------------------

const std::string kSignature = "\x89PNG\r\n\x1a\n";

std::string chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  return big32(data.size()) + body +
         big32(crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size()));
}
std::string ihdr(std::uint32_t height, std::uint32_t width, int depth, int colour, int lace = 0) {
  return chunk("IHDR",
               big32(width) + big32(height) + static_cast<char>(depth) + static_cast<char>(colour) +
                   std::string(2, '\0') + static_cast<char>(lace));
}
/// Rows with the byte of their filter.
std::string idat(const std::string& rows) {
  std::string out(compressBound(rows.size()), '\0');
  uLongf size = out.size();
  compress(reinterpret_cast<Bytef*>(out.data()),
           &size,
           reinterpret_cast<const Bytef*>(rows.data()),
           rows.size());
  return chunk("IDAT", out.substr(0, size));
}
std::string png(const std::string& chunks) { return kSignature + chunks + chunk("IEND", ""); }

const std::string kGreyPng =
    png(ihdr(2, 3, 8, 0) + idat(std::string("\0\x01\x02\x03\0\xfd\xfe\xff", 8)));
const Image kGrey = image(2, 3, 1, {1, 2, 3, 253, 254, 255});

TEST_F(Images, EveryKindOfPngIsRead) {
  EXPECT_EQ(parse(kGreyPng), kGrey);
  // Grey of fewer and of more bits; the filters "sub" and "up".
  EXPECT_EQ(parse(png(ihdr(1, 8, 1, 0) + idat(std::string("\0\xa5", 2)))),
            image(1, 8, 1, {255, 0, 255, 0, 0, 255, 0, 255}));
  EXPECT_EQ(parse(png(ihdr(1, 3, 2, 0) + idat(std::string("\0\x1b", 2)))),
            image(1, 3, 1, {0, 85, 170}));
  EXPECT_EQ(parse(png(ihdr(1, 3, 4, 0) + idat(std::string("\0\x0f\x80", 3)))),
            image(1, 3, 1, {0, 255, 136}));
  EXPECT_EQ(parse(png(ihdr(1, 3, 16, 0) + idat(std::string("\0\xff\xff\x80\x80\x01\x01", 7)))),
            image(1, 3, 1, {255, 128, 1}));
  EXPECT_EQ(parse(png(ihdr(2, 3, 8, 0) + idat("\1\1\1\1\2\2\2\2"))),
            image(2, 3, 1, {1, 2, 3, 3, 4, 5}));
  // Colours, alpha, palettes.
  EXPECT_EQ(parse(png(ihdr(1, 2, 8, 2) + idat(std::string("\0\1\2\3\4\5\6", 7)))),
            image(1, 2, 3, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(parse(png(ihdr(1, 2, 8, 4) + idat(std::string("\0\1\2\3\4", 5)))),
            image(1, 2, 2, {1, 2, 3, 4}));
  EXPECT_EQ(parse(png(ihdr(1, 1, 8, 6) + idat(std::string("\0\1\2\3\4", 5)))),
            image(1, 1, 4, {1, 2, 3, 4}));
  const std::string palette = chunk("PLTE", "\1\2\3\4\5\6");
  EXPECT_EQ(parse(png(ihdr(1, 2, 1, 3) + palette + idat(std::string("\0\x40", 2)))),
            image(1, 2, 3, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(
      parse(png(ihdr(1, 2, 8, 3) + palette + chunk("tRNS", "\7") + idat(std::string("\0\0\1", 3)))),
      image(1, 2, 4, {1, 2, 3, 7, 4, 5, 6, 255}));
  // Interlaced: the first pixel, then the second, then the second row.
  EXPECT_EQ(parse(png(ihdr(2, 2, 8, 0, 1) + idat(std::string("\0\1\0\2\0\3\4", 7)))),
            image(2, 2, 1, {1, 2, 3, 4}));
}

TEST_F(Images, WhatIsNotPixelsInAPngChangesNone) {
  const std::string rows = idat(std::string("\0\x40\x80\xc0", 4));
  const std::string gamma = chunk("gAMA", big32(100000));  // linear
  const std::string text = chunk("tEXt", std::string("a\0b", 3));
  for (const int depth : {8, 16}) {
    const std::string pixels =
        depth == 8 ? rows : idat(std::string("\0\x40\x40\x80\x80\xc0\xc0", 7));
    EXPECT_EQ(parse(png(ihdr(1, 3, depth, 0) + gamma + text + pixels + text)),
              image(1, 3, 1, {0x40, 0x80, 0xc0}));
  }
}

TEST_F(Images, PngsAreWrittenAndReadBack) {
  std::vector<std::uint8_t> bytes(60);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(i * 37);
  }
  for (int channels = 1; channels <= 4; ++channels) {
    const Image picture = image(60 / 5 / channels, 5, channels, bytes);
    save_png(path("a.png"), picture);
    EXPECT_EQ(load_image(path("a.png")), picture) << channels;
    const std::string encoded = encode_png(picture);
    EXPECT_EQ(decode_image(std::as_bytes(std::span(encoded)), "b.png"), picture) << channels;
  }
}

TEST_F(Images, PngsAreRefusedWithTheirPlace) {
  const std::string rows = idat(std::string("\0\1\2\3\0\1\2\3", 8));
  const std::string good = ihdr(2, 3, 8, 0);
  expect_picture_refused("\x89PNG", 0, "signature");
  expect_picture_refused("\x89PNG\r\n\x1a\r", 0, "signature");
  expect_picture_refused(kSignature, 8, "a chunk of 12 bytes");
  expect_picture_refused(png(rows), 8, "one IHDR of 13 bytes, first");
  expect_picture_refused(png(good + good + rows), 33, "one IHDR");
  expect_picture_refused(png(chunk("IHDR", "short")), 8, "one IHDR of 13 bytes");
  expect_picture_refused(png(ihdr(0, 3, 8, 0) + rows), 16, "0 rows of 3");
  expect_picture_refused(png(ihdr(0xffffffff, 0xffffffff, 8, 0) + rows), 16, "4294967295 rows");
  expect_picture_refused(png(ihdr(2, 3, 3, 0) + rows), 24, "found 3");
  expect_picture_refused(png(ihdr(2, 3, 0, 0) + rows), 24, "found 0");
  expect_picture_refused(png(ihdr(2, 3, 8, 5) + rows), 25, "colour type");
  expect_picture_refused(png(ihdr(2, 3, 8, 7) + rows), 25, "colour type");
  expect_picture_refused(png(ihdr(8192, 8191, 16, 6) + rows), 16, "compressed data for 8192 rows");
  expect_picture_refused(png(good + chunk("ABcd", "") + rows), 37, "a chunk that is known");
  expect_picture_refused(png(good + rows) + "x", 8 + 25 + rows.size() + 12, "nothing after IEND");
  expect_picture_refused(kSignature + good + big32(100) + "IDAT" + std::string(20, 'x'),
                         8 + 25 + 28,
                         "100 bytes in the chunk \"IDAT\"");
  // What libpng finds.
  expect_picture_refused(png(good), 0, "libpng reads");
  expect_picture_refused(png(good + idat(std::string("\0\1\2", 3))), 0, "libpng reads");
  expect_picture_refused(png(good + chunk("IDAT", "no deflated data")), 0, "libpng reads");
  expect_picture_refused(png(ihdr(2, 3, 8, 3) + rows), 0, "libpng reads");
  expect_picture_refused(png(ihdr(2, 3, 16, 3) + rows), 0, "libpng reads");
}

TEST_F(Images, EveryDamageToAPngIsSeen) {
  expect_no_beginning_is_accepted(kGreyPng, kParse);
  for_each_accepted_flip(
      kGreyPng, kParse, [](const Image&, std::size_t) { ADD_FAILURE() << "accepted"; });
}

// --- JPEG ----------------------------------------------------------------------------------------

std::string jpeg(const Image& picture, int flags = 0) {
  const tjhandle encoder = tjInitCompress();
  unsigned char* out = nullptr;
  unsigned long size = 0;
  const bool is_grey = picture.channels == 1;
  EXPECT_EQ(tjCompress2(encoder,
                        picture.bytes.data(),
                        static_cast<int>(picture.width),
                        0,
                        static_cast<int>(picture.height),
                        is_grey                 ? TJPF_GRAY
                        : picture.channels == 3 ? TJPF_RGB
                                                : TJPF_CMYK,
                        &out,
                        &size,
                        is_grey ? TJSAMP_GRAY : TJSAMP_444,
                        100,
                        flags),
            0);
  const std::string file(reinterpret_cast<const char*>(out), size);
  tjFree(out);
  tjDestroy(encoder);
  return file;
}

TEST_F(Images, JpegsAreRead) {
  // At quality 100 a coefficient is off by at most a half, so that a pixel, an orthogonal sum of 64
  // of them that is rounded once more, is off by at most 4.5; colours pass a matrix whose rows sum
  // to less than 2.8 in magnitude, and two more roundings.
  for (const int flags : {0, TJFLAG_PROGRESSIVE}) {
    for (const int channels : {1, 3}) {
      Image picture = image(19, 13, channels, {});
      for (Index i = 0; i < 19 * 13 * channels; ++i) {
        picture.bytes.push_back(
            static_cast<std::uint8_t>(128 + 100 * std::sin(0.02 * static_cast<double>(i))));
      }
      const Image back = parse(jpeg(picture, flags));
      ASSERT_EQ(back.height, 19);
      ASSERT_EQ(back.width, 13);
      ASSERT_EQ(back.channels, channels);
      const int most = channels == 1 ? 4 : 13;
      for (std::size_t i = 0; i < picture.bytes.size(); ++i) {
        ASSERT_LE(std::abs(int{back.bytes[i]} - int{picture.bytes[i]}), most);
      }
    }
  }
  // A grey of one level is exact.
  const Image flat = image(8, 9, 1, std::vector<std::uint8_t>(72, 77));
  EXPECT_EQ(parse(jpeg(flat)), flat);
}

TEST_F(Images, JpegsAreRefused) {
  const std::string good = jpeg(kGrey);
  expect_picture_refused("\xff\xd8\xff", 0, "a picture in it");
  expect_picture_refused("\xff\xd8\xff\xe0 something else", 0, "a picture in it");
  std::string wrong = good;
  wrong[good.find("\xff\xc0") + 4] = 12;  // bits a sample
  expect_picture_refused(wrong, 0, "libjpeg-turbo reads without a warning");
  expect_picture_refused(jpeg(image(8, 8, 4, std::vector<std::uint8_t>(256))), 0, "CMYK");
  const ImageOptions few{.max_pixels = 5};
  expect_refused(
      [&] { decode_image(bytes_of(good), "it", few); }, 0, "1 to 5 pixels, found 2 rows of 3");
}

TEST_F(Images, DamageToAJpegIsRefusedOrMakesAPicture) {
  for (const int flags : {0, TJFLAG_PROGRESSIVE}) {
    const std::string file = jpeg(image(9, 17, 3, std::vector<std::uint8_t>(459, 99)), flags);
    expect_no_beginning_is_accepted(file, kParse);
    for_each_accepted_flip(file, kParse, [](const Image& picture, std::size_t) {
      EXPECT_EQ(picture.bytes.size(),
                static_cast<std::size_t>(picture.height * picture.width * picture.channels));
    });
  }
}

// --- BMP -----------------------------------------------------------------------------------------

struct Bmp {
  std::int32_t width = 2;
  std::int32_t height = 2;
  std::uint32_t depth = 24;
  std::string pixels = {};
  std::uint32_t compression = 0;
  std::string after_header = {};  ///< masks
  std::string palette = {};
  std::uint32_t colours = 0;
  std::uint32_t header = 40;
  std::uint32_t planes = 1;
  std::int64_t pixels_at = -1;  ///< -1: the right place

  std::string bytes() const {
    const std::string info =
        header == 12 ? little(12, 4) + little(static_cast<std::uint64_t>(width), 2) +
                           little(static_cast<std::uint64_t>(height), 2) + little(planes, 2) +
                           little(depth, 2)
                     : little(header, 4) + little(static_cast<std::uint64_t>(width), 4) +
                           little(static_cast<std::uint64_t>(height), 4) + little(planes, 2) +
                           little(depth, 2) + little(compression, 4) + std::string(12, '\0') +
                           little(colours, 4) + little(0, 4);
    const std::string start = info + after_header + palette;
    return "BM" + little(0, 8) +
           little(pixels_at < 0 ? 14 + start.size() : static_cast<std::uint64_t>(pixels_at), 4) +
           start + pixels;
  }
};

const std::string kPixels24 = std::string("\3\2\1\6\5\4\0\0\x9\x8\7\xc\xb\xa\0\0", 16);
const Image kBottomUp = image(2, 2, 3, {7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6});

TEST_F(Images, EveryKindOfBmpIsRead) {
  EXPECT_EQ(parse(Bmp{.pixels = kPixels24}.bytes()), kBottomUp);
  EXPECT_EQ(parse(Bmp{.pixels = kPixels24, .header = 12}.bytes()), kBottomUp);
  EXPECT_EQ(parse(Bmp{.height = -2, .pixels = kPixels24}.bytes()),
            image(2, 2, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(parse(Bmp{.height = 1, .depth = 32, .pixels = "\3\2\1x\6\5\4x"}.bytes()),
            image(1, 2, 3, {1, 2, 3, 4, 5, 6}));
  // 16 bits: 5 of each, and 5, 6 and 5.
  EXPECT_EQ(
      parse(Bmp{.height = 1, .depth = 16, .pixels = little(0x7c1f, 2) + little(0x0210, 2)}.bytes()),
      image(1, 2, 3, {255, 0, 255, 0, 132, 132}));
  const std::string masks = little(0xf800, 4) + little(0x07e0, 4) + little(0x1f, 4);
  EXPECT_EQ(parse(Bmp{.height = 1,
                      .depth = 16,
                      .pixels = little(0xf81f, 2) + little(0x0400, 2),
                      .compression = 3,
                      .after_header = masks}
                      .bytes()),
            image(1, 2, 3, {255, 0, 255, 0, 130, 0}));
  const std::string with_alpha =
      little(0xff, 4) + little(0xff00, 4) + little(0xff0000, 4) + little(0xff000000, 4);
  EXPECT_EQ(parse(Bmp{.width = 1,
                      .height = 1,
                      .depth = 32,
                      .pixels = "\1\2\3\4",
                      .compression = 3,
                      .after_header = with_alpha,
                      .header = 56}
                      .bytes()),
            image(1, 1, 4, {1, 2, 3, 4}));
  // Palettes.
  const std::string palette("\3\2\1\0\6\5\4\0", 8);
  const Image both = image(1, 2, 3, {4, 5, 6, 1, 2, 3});
  EXPECT_EQ(
      parse(Bmp{.height = 1, .depth = 1, .pixels = std::string("\x80\0\0\0", 4), .palette = palette}
                .bytes()),
      both);
  EXPECT_EQ(parse(Bmp{.height = 1,
                      .depth = 4,
                      .pixels = std::string("\x10\0\0\0", 4),
                      .palette = palette,
                      .colours = 2}
                      .bytes()),
            both);
  EXPECT_EQ(parse(Bmp{.height = 1,
                      .depth = 8,
                      .pixels = std::string("\1\0\0\0", 4),
                      .palette = palette,
                      .colours = 2}
                      .bytes()),
            both);
}

TEST_F(Images, BmpsAreRefusedWithTheirPlace) {
  const auto refused = [](const Bmp& bmp, std::size_t offset, std::string_view part) {
    expect_picture_refused(bmp.bytes(), offset, part);
  };
  expect_picture_refused("BM", 2, "the end of the file");
  refused({.pixels = kPixels24, .header = 41}, 14, "a header of 12, 40");
  refused({.width = 0, .pixels = kPixels24}, 18, "2 rows of 0");
  refused({.width = -2, .pixels = kPixels24}, 18, "2 rows of -2");
  refused({.height = std::numeric_limits<std::int32_t>::min(), .pixels = kPixels24},
          18,
          "2147483648 rows");
  refused({.width = 60000, .height = 60000, .pixels = kPixels24}, 18, "60000 rows");
  refused({.width = 4000, .height = 4000, .pixels = kPixels24}, 70, "48000000 bytes of pixels");
  refused({.pixels = kPixels24, .planes = 2}, 26, "one plane");
  refused({.depth = 2, .pixels = kPixels24}, 28, "bits a pixel, found 2");
  refused({.depth = 8, .pixels = kPixels24, .compression = 1}, 30, "uncompressed");
  refused({.pixels = kPixels24, .compression = 3}, 30, "compression 3 of 24 bits");
  refused({.depth = 1, .pixels = kPixels24, .colours = 3}, 46, "at most 2 colours");
  refused({.depth = 8, .pixels = kPixels24}, 10, "from byte 1078 on, found 54");
  refused({.pixels = kPixels24, .pixels_at = 53}, 10, "from byte 54 on");
  refused({.pixels = kPixels24, .pixels_at = 0xffffffff}, 70, "the end of the file");
  refused({.height = 1,
           .depth = 8,
           .pixels = std::string("\0\2\0\0", 4),
           .palette = std::string(8, '\0'),
           .colours = 2},
          63,
          "one of 2 colours, found colour 2");
  const auto masks = [](std::uint32_t red) {
    return little(red, 4) + little(0x07e0, 4) + little(0x1f, 4);
  };
  refused({.depth = 16, .pixels = kPixels24, .compression = 3, .after_header = masks(0)},
          54,
          "bits in a row");
  refused({.depth = 16, .pixels = kPixels24, .compression = 3, .after_header = masks(0xa000)},
          54,
          "bits in a row");
}

TEST_F(Images, DamageToABmpIsRefusedOrMakesAPicture) {
  const std::string file = Bmp{.pixels = kPixels24}.bytes();
  expect_no_beginning_is_accepted(file, kParse);
  for_each_accepted_flip(file, kParse, [](const Image& picture, std::size_t byte) {
    // Byte by byte: size and reserved, resolution and important colours, the pixels themselves.
    const bool means_nothing = byte < 10 || (byte >= 34 && byte < 54);
    EXPECT_EQ(means_nothing && picture != kBottomUp, false);
  });
}

// --- PGM and PPM ---------------------------------------------------------------------------------

TEST_F(Images, EveryKindOfPgmAndPpmIsRead) {
  EXPECT_EQ(parse(std::string("P5\n3 2\n255\n\1\2\3\xfd\xfe\xff")), kGrey);
  EXPECT_EQ(parse(std::string("P2 3 2 255 1 2 3 253 254 255")), kGrey);
  EXPECT_EQ(parse(std::string("P2#a\n#b 9\n3 # c\n2\t255\r\n1\v2\f3 253 254 255\n")), kGrey);
  EXPECT_EQ(parse(std::string("P6 2 1 255 \1\2\3\4\5\6")), image(1, 2, 3, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(parse(std::string("P3 1 1 7 0 3 7")), image(1, 1, 3, {0, 109, 255}));
  EXPECT_EQ(parse(std::string("P5 2 1 65535 \xff\xff\x80\x80")), image(1, 2, 1, {255, 128}));
  EXPECT_EQ(parse(std::string("P5 2 1 1 \1\0", 11)), image(1, 2, 1, {255, 0}));
}

TEST_F(Images, PgmsAreRefusedWithTheirPlace) {
  expect_picture_refused("P5", 2, "a width, at most 2147483647, found the end of the file");
  expect_picture_refused("P5 x", 3, "a width");
  expect_picture_refused("P5 -1 2 255 ", 3, "a width");
  expect_picture_refused("P5 99999999999999999999 2 255 ", 3, "a width");
  expect_picture_refused("P5 3 0 255 ", 2, "0 rows of 3");
  expect_picture_refused("P5 65536 65536 255 ", 2, "65536 rows");
  expect_picture_refused("P5 3 2 0 123456", 6, "from 1 on");
  expect_picture_refused("P5 3 2 65536 123456", 7, "at most 65535");
  expect_picture_refused("P5 3 2 255", 10, "white space");
  expect_picture_refused("P5 3 2 255 12345", 16, "6 samples");
  expect_picture_refused("P5 3 2 256 1234567890a", 22, "6 samples");
  expect_picture_refused("P6 8000 8000 255 12345", 22, "192000000 samples");
  expect_picture_refused("P2 8000 8000 255 12345", 22, "64000000 samples");
  expect_picture_refused("P2 3 2 255 1 2 3 4 5 256", 21, "a sample, at most 255");
  expect_picture_refused("P2 3 2 255 111 2 3 4 5", 22, "a sample");
  expect_picture_refused("P5 1 1 7 8", 9, "a sample of at most 7, found 56");
  expect_picture_refused("P7 1 1", 0, "the first bytes of PNG");
}

// --- any -----------------------------------------------------------------------------------------

TEST_F(Images, WhatIsNoPictureIsRefused) {
  expect_picture_refused("", 0, "an empty file");
  expect_picture_refused("GIF89a", 0, "found \"GIF8\"");
  EXPECT_NE(complaint([&] { load_image(path("none.png")); }), "");
  EXPECT_NE(complaint([&] { load_image("/dev/zero"); }), "");
}

TEST_F(Images, ThereIsALimitOnPixels) {
  const std::string ppm = "P6 2 1 255 \1\2\3\4\5\6";
  for (const std::string& file : {ppm, Bmp{.pixels = kPixels24}.bytes(), kGreyPng}) {
    EXPECT_NE(complaint([&] {
                decode_image(bytes_of(file), "it", {.max_pixels = 1});
              }).find("1 to 1 pixels"),
              std::string::npos);
  }
}

TEST_F(Images, ChannelsAreConverted) {
  const Image grey = image(1, 2, 1, {10, 20});
  const Image colour = image(1, 2, 3, {255, 0, 0, 10, 20, 30});
  EXPECT_EQ(with_channels(grey, 2), image(1, 2, 2, {10, 255, 20, 255}));
  EXPECT_EQ(with_channels(grey, 3), image(1, 2, 3, {10, 10, 10, 20, 20, 20}));
  EXPECT_EQ(with_channels(grey, 4), image(1, 2, 4, {10, 10, 10, 255, 20, 20, 20, 255}));
  EXPECT_EQ(with_channels(colour, 1), image(1, 2, 1, {76, 18}));
  EXPECT_EQ(with_channels(image(1, 1, 4, {255, 255, 255, 9}), 2), image(1, 1, 2, {255, 9}));
  EXPECT_EQ(with_channels(image(1, 1, 2, {8, 9}), 4), image(1, 1, 4, {8, 8, 8, 9}));
  EXPECT_EQ(with_channels(image(1, 1, 2, {8, 9}), 1), image(1, 1, 1, {8}));
  EXPECT_EQ(decode_image(bytes_of(kGreyPng), "it", {.channels = 3}).channels, 3);
  try {
    with_channels(grey, 5);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported) << error.what();
  }
  EXPECT_THROW(with_channels(image(1, 2, 1, {1}), 3), Error);
  EXPECT_THROW(with_channels(image(-1, -1, 1, {1}), 3), Error);
}

TEST_F(Images, TensorsHaveTheirChannelsFirst) {
  const Image colour = image(1, 2, 3, {255, 0, 51, 0, 255, 102});
  const Tensor<float> x = to_tensor(colour);
  EXPECT_EQ(x, Tensor<float>(Shape{3, 1, 2}, {1, 0, 0, 1, 0.2F, 0.4F}));
  EXPECT_EQ(to_image(x), colour);
  EXPECT_EQ(to_image(Tensor<float>(Shape{1, 4}, {-1, 2, NAN, 0.5F})),
            image(1, 4, 1, {0, 255, 0, 128}));
  Image levels = image(16, 16, 1, {});
  for (int level = 0; level < 256; ++level) {
    levels.bytes.push_back(static_cast<std::uint8_t>(level));
  }
  EXPECT_EQ(to_image(to_tensor(levels)), levels);
  EXPECT_THROW(to_image(Tensor<float>(Shape{4})), Error);
  EXPECT_THROW(to_image(Tensor<float>(Shape{5, 1, 1})), Error);
  EXPECT_THROW(to_image(Tensor<float>(Shape{0, 1, 1})), Error);
}

TEST_F(Images, OnlyWholePicturesAreWritten) {
  write("old", "old");
  EXPECT_THROW(save_png(path("old"), image(2, 2, 1, {1, 2, 3})), Error);
  EXPECT_THROW(save_png(path("old"), image(0, 2, 1, {})), Error);
  EXPECT_THROW(save_png(path("old"), image(1, 1, 5, {1, 2, 3, 4, 5})), Error);
  EXPECT_THROW(encode_png(image(2, 2, 1, {1, 2, 3})), Error);
  EXPECT_EQ(read(path("old")), "old");
}

}  // namespace
}  // namespace fenestra::io

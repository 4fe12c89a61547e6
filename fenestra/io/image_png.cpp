// PNG by libpng's simplified interface, which reports errors by value and never jumps through us.
//
// Chunks are walked here first: order, lengths and checksums, with their places, and what the
// pixels need as memory. libpng then sees the chunks that make pixels and no others: neither gamma
// and colour profiles, which would change them, nor compressed texts.
#include <fenestra/base/checked.hpp>
#include <fenestra/io/image_formats.hpp>
#include <fenestra/io/inflate.hpp>

#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>

namespace fenestra::io {

namespace {

constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";

struct PngImage {
  png_image image = {};
  PngImage() { image.version = PNG_IMAGE_VERSION; }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  ~PngImage() { png_image_free(&image); }
};

std::uint32_t checksum(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

struct Size {
  Index height;
  Index width;
  Index row_bytes;  ///< without the filter's byte
};

Size read_ihdr(const ImageFile& file, std::uint64_t at) {
  const Index width = file.big32(at);
  const Index height = file.big32(at + 4);
  file.check_size(at, height, width);
  // By colour type: grey, -, colours, palette, grey and alpha, -, colours and alpha.
  constexpr std::array<Index, 7> kSamples = {1, 0, 3, 1, 2, 0, 4};
  const std::uint8_t depth = file.byte(at + 8);
  const std::uint8_t colour = file.byte(at + 9);
  if (colour >= kSamples.size() || kSamples[colour] == 0) {
    file.fail(at + 9, "colour type 0, 2, 3, 4 or 6", std::to_string(colour));
  }
  if (depth == 0 || depth > 16 || (depth & (depth - 1)) != 0) {
    file.fail(at + 8, "1, 2, 4, 8 or 16 bits a sample", std::to_string(depth));
  }
  return {height, width, ceil_div(width * depth * kSamples[colour], 8)};
}

/// The file without the chunks that make no pixels; every chunk has been checked.
std::string pixels_only(const ImageFile& file) {
  if (file.text(0, kSignature.size()) != kSignature) {
    file.fail(0, "the signature of PNG", shown(file.text(0, kSignature.size())));
  }
  std::string kept(kSignature);
  Size size{};
  std::uint64_t compressed = 0;
  std::string_view type;
  for (std::uint64_t at = kSignature.size(); type != "IEND";) {
    if (file.size() - at < 12) {
      file.fail(file.size(), "a chunk of 12 bytes or more", "the end of the file");
    }
    const std::uint64_t length = file.big32(at);
    const bool is_first = type.empty();
    type = file.text(at + 4, 4);
    if (is_first != (type == "IHDR") || (is_first && length != 13)) {
      file.fail(at, "one IHDR of 13 bytes, first", shown(type));
    }
    if (length > file.size() - at - 12) {
      file.fail(file.size(),
                std::to_string(length) + " bytes in the chunk " + shown(type),
                "the end of the file");
    }
    const std::uint32_t found = checksum(file.text(at + 4, length + 4));
    if (const std::uint32_t stored = file.big32(at + 8 + length); found != stored) {
      file.fail(at + 8 + length,
                "the checksum of the chunk " + shown(type) + ", " + std::to_string(found),
                std::to_string(stored));
    }
    if (is_first) {
      size = read_ihdr(file, at + 8);
    }
    compressed += type == "IDAT" ? length : 0;
    constexpr std::array<std::string_view, 5> kNeeded = {"IHDR", "PLTE", "tRNS", "IDAT", "IEND"};
    if (std::find(kNeeded.begin(), kNeeded.end(), type) != kNeeded.end()) {
      kept += file.text(at, length + 12);
    } else if ((static_cast<unsigned char>(type[0]) & 0x20U) == 0) {
      file.fail(at + 4, "a chunk that is known, or that may be ignored", shown(type));
    }
    at += length + 12;
    if (type == "IEND" && at != file.size()) {
      file.fail(at, "nothing after IEND", std::to_string(file.size() - at) + " bytes");
    }
  }
  const auto needed = static_cast<std::uint64_t>(size.height * size.row_bytes);
  if (compressed < needed / kMostInflated) {
    file.fail(16,
              "compressed data for " + std::to_string(size.height) + " rows of " +
                  std::to_string(size.width) + " pixels",
              std::to_string(compressed) + " bytes of them");
  }
  return kept;
}

[[noreturn]] void fail_in_libpng(const ImageFile& file, const png_image& image) {
  file.fail(0, "a PNG that libpng reads", image.message);
}

}  // namespace

Image decode_png(const ImageFile& file) {
  const std::string kept = pixels_only(file);
  PngImage png;
  if (png_image_begin_read_from_memory(&png.image, kept.data(), kept.size()) == 0) {
    fail_in_libpng(file, png.image);
  }
  // Samples of 16 bits without a gamma count as linear unless this is said.
  png.image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  png.image.format &= PNG_FORMAT_FLAG_COLOR | PNG_FORMAT_FLAG_ALPHA;
  Image image = file.make(16,
                          png.image.height,
                          png.image.width,
                          static_cast<int>(PNG_IMAGE_SAMPLE_CHANNELS(png.image.format)));
  if (png_image_finish_read(&png.image, nullptr, image.bytes.data(), 0, nullptr) == 0 ||
      PNG_IMAGE_FAILED(png.image)) {
    fail_in_libpng(file, png.image);
  }
  return image;
}

std::string compress_png(const Image& image) {
  constexpr Index kMost = std::numeric_limits<std::int32_t>::max();
  if (image.height < 1 || image.width < 1 || image.height > kMost || image.width > kMost ||
      image.bytes.size() > std::size_t{1} << 31) {
    throw Error(ErrorCode::invalid_extent,
                "png: got " + std::to_string(image.height) + " rows of " +
                    std::to_string(image.width) + " pixels, needed 1 pixel to 2 GiB of them");
  }
  PngImage png;
  png.image.height = static_cast<png_uint_32>(image.height);
  png.image.width = static_cast<png_uint_32>(image.width);
  constexpr std::array<png_uint_32, 5> kFormats = {
      0, PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
  png.image.format = kFormats[static_cast<std::size_t>(image.channels)];
  std::string file(PNG_IMAGE_PNG_SIZE_MAX(png.image), '\0');
  png_alloc_size_t size = file.size();
  if (png_image_write_to_memory(
          &png.image, file.data(), &size, 0, image.bytes.data(), 0, nullptr) == 0) {
    throw Error(ErrorCode::bad_file, std::string("png: libpng says: ") + png.image.message);
  }
  file.resize(size);
  return file;
}

}  // namespace fenestra::io

// The decoders of the single picture formats, and what they share. Not installed.
//
// Each gets a whole file in memory whose first bytes are its own, and the most pixels a picture may
// have.
#pragma once

#include <fenestra/io/image.hpp>
#include <fenestra/io/source.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fenestra::io {

/// A file in memory with its name, read with a check of every byte.
struct ImageFile {
  std::span<const std::byte> bytes;
  const std::string& name;
  Index max_pixels;

  std::uint64_t size() const { return bytes.size(); }
  std::uint8_t byte(std::uint64_t at) const {
    if (at >= bytes.size()) {
      fail(bytes.size(), "more bytes", "the end of the file");
    }
    return std::to_integer<std::uint8_t>(bytes[at]);
  }
  std::uint32_t little16(std::uint64_t at) const {
    return byte(at) | static_cast<std::uint32_t>(byte(at + 1)) << 8U;
  }
  std::uint32_t little32(std::uint64_t at) const {
    return little16(at) | (little16(at + 2) << 16U);
  }
  std::uint32_t big32(std::uint64_t at) const {
    return static_cast<std::uint32_t>(byte(at)) << 24U |
           static_cast<std::uint32_t>(byte(at + 1)) << 16U |
           static_cast<std::uint32_t>(byte(at + 2)) << 8U | byte(at + 3);
  }
  std::string_view text(std::uint64_t at, std::uint64_t count) const {
    const std::span<const std::byte> part =
        at < size() ? bytes.subspan(at, std::min(count, size() - at)) : bytes.first(0);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  [[noreturn]] void fail(std::uint64_t at,
                         std::string_view expected,
                         std::string_view found) const {
    refuse(name, at, expected, found, "a picture that other programs open, saved anew");
  }
  /// A picture of that size with all bytes zero. The extents stand at `at`.
  Image make(std::uint64_t at, Index height, Index width, int channels) const {
    check_size(at, height, width);
    return {
        .height = height,
        .width = width,
        .channels = channels,
        .bytes = std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * channels))};
  }
  void check_size(std::uint64_t at, Index height, Index width) const {
    if (height < 1 || width < 1 || height > max_pixels / width) {
      fail(at,
           "a picture of 1 to " + std::to_string(max_pixels) + " pixels",
           std::to_string(height) + " rows of " + std::to_string(width));
    }
  }
};

/// What the head of a PGM or PPM says; the samples begin at `begin`.
struct PnmHeader {
  Index height = 0;
  Index width = 0;
  int channels = 1;
  std::uint32_t most = 255;  ///< the largest sample
  bool is_text = false;
  std::uint64_t begin = 0;

  /// Of one sample, not of text.
  std::uint64_t sample_bytes() const { return most > 255 ? 2 : 1; }
};

/// Reads the head alone: `file` may end after it.
PnmHeader read_pnm_header(const ImageFile& file);

Image decode_png(const ImageFile& file);
Image decode_jpeg(const ImageFile& file);
Image decode_bmp(const ImageFile& file);
Image decode_pnm(const ImageFile& file);
/// The bytes of a file; the image is whole.
std::string compress_png(const Image& image);

}  // namespace fenestra::io

// Pictures: PNG, JPEG, BMP, PGM and PPM in, PNG out; 8 bits a channel.
//
// Pixels are what the file says: no gamma, colour profile or EXIF rotation is applied. Files may be
// hostile: every size is checked against the file and the limit before memory is taken.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace fenestra::io {

/// Rows from the top, pixels from the left, channels of a pixel together: grey; grey, alpha; red,
/// green, blue; red, green, blue, alpha.
struct Image {
  Index height = 0;
  Index width = 0;
  int channels = 0;                 ///< 1 to 4
  std::vector<std::uint8_t> bytes;  ///< height * width * channels

  friend bool operator==(const Image&, const Image&) = default;
};

struct ImageOptions {
  int channels = 0;                   ///< 1, 2, 3 or 4 to convert to; 0 for what the file has
  Index max_pixels = Index{1} << 26;  ///< larger pictures are refused
};

/// The format is told from the first bytes, not from the name. Samples of any
/// other depth are scaled to 0..255. Throws `bad_file` with the byte offset, what
/// was expected and what was found.
FENESTRA_API Image load_image(const std::filesystem::path& path, const ImageOptions& options = {});
/// The bytes of a file in memory; `name` is for messages.
FENESTRA_API Image decode_image(std::span<const std::byte> bytes,
                                const std::string& name,
                                const ImageOptions& options = {});

/// The bytes of a PNG file.
FENESTRA_API std::string encode_png(const Image& image);
/// An existing file is replaced whole.
FENESTRA_API void save_png(const std::filesystem::path& path, const Image& image);

/// Grey becomes three equal colours, colours become 0.299 red + 0.587 green + 0.114 blue, alpha is
/// dropped or becomes 255. `channels` is 1 to 4.
FENESTRA_API Image with_channels(const Image& image, int channels);

/// (channels, height, width), numbers from 0 to 1.
FENESTRA_API Tensor<float> to_tensor(const Image& image);
/// The opposite: (channels, height, width) or (height, width), rounded to the nearest of 256
/// levels; below 0 is 0, above 1 is 255, not a number is 0.
FENESTRA_API Image to_image(const Tensor<float>& tensor);

}  // namespace fenestra::io

// Fuzzes the readers of pictures, PNG, JPEG, BMP, PGM and PPM: refused with an error, or an image
// whose bytes are those of its size, that becomes a tensor and the same image again.
#include <fenestra/base/error.hpp>
#include <fenestra/io/image.hpp>

#include <fuzz/bytes.hpp>

#include <span>

namespace fenestra::fuzz {
namespace {

constexpr io::ImageOptions kOptions{.max_pixels = 1 << 14};

void decode(std::span<const std::byte> bytes) {
  const io::Image image = io::decode_image(bytes, "input", kOptions);
  const Index pixels = image.height * image.width;
  if (image.channels < 1 || image.channels > 4 || pixels > kOptions.max_pixels ||
      static_cast<Index>(image.bytes.size()) != pixels * image.channels) {
    complain("the image has other bytes than its size says");
  }
  for (int channels = 1; channels <= 4; ++channels) {
    const io::Image converted = io::with_channels(image, channels);
    if (io::to_image(io::to_tensor(converted)) != converted) {
      complain("as a tensor and back, it is another image");
    }
  }
}

}  // namespace
}  // namespace fenestra::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    fenestra::fuzz::decode(std::as_bytes(std::span(data, size)));
  } catch (const fenestra::Error&) {
    return 0;
  }
  return 0;
}

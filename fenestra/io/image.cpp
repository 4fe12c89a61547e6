// Pictures of any format, their channels, and their tensors.
#include <fenestra/base/file.hpp>
#include <fenestra/io/image.hpp>
#include <fenestra/io/image_formats.hpp>
#include <fenestra/io/source.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fenestra::io {

namespace {

void require_channels(int channels) {
  if (channels < 1 || channels > 4) {
    throw Error(ErrorCode::unsupported,
                "image: got " + std::to_string(channels) +
                    " channels, needed 1 to 4\n  fix: 1 for grey, 3 for colours");
  }
}

void require_whole(const Image& image) {
  require_channels(image.channels);
  const auto count = Shape{image.height, image.width, image.channels}.elements();
  if (!count || static_cast<std::size_t>(*count) != image.bytes.size()) {
    throw Error(ErrorCode::shape_mismatch,
                "image: " + std::to_string(image.height) + " rows of " +
                    std::to_string(image.width) + " pixels of " + std::to_string(image.channels) +
                    " bytes, got " + std::to_string(image.bytes.size()) +
                    " bytes\n  fix: one byte for each channel of each pixel");
  }
}

}  // namespace

Image decode_image(std::span<const std::byte> bytes,
                   const std::string& name,
                   const ImageOptions& options) {
  const ImageFile file{.bytes = bytes, .name = name, .max_pixels = options.max_pixels};
  const std::string_view start = file.text(0, 4);
  Image image;
  if (start == "\x89PNG") {
    image = decode_png(file);
  } else if (start.starts_with("\xff\xd8\xff")) {
    image = decode_jpeg(file);
  } else if (start.starts_with("BM")) {
    image = decode_bmp(file);
  } else if (start.size() > 1 && start[0] == 'P' &&
             std::string_view("2356").find(start[1]) != start.npos) {
    image = decode_pnm(file);
  } else {
    file.fail(0,
              "the first bytes of PNG, JPEG, BMP, PGM or PPM",
              start.empty() ? "an empty file" : shown(start));
  }
  return options.channels == 0 ? image : with_channels(image, options.channels);
}

Image load_image(const std::filesystem::path& path, const ImageOptions& options) {
  const ByteSource source = ByteSource::file(path);
  return decode_image(source.read(0, source.size()), source.name(), options);
}

std::string encode_png(const Image& image) {
  require_whole(image);
  return compress_png(image);
}

void save_png(const std::filesystem::path& path, const Image& image) {
  replace_file(path, {encode_png(image)});
}

Image with_channels(const Image& image, int channels) {
  require_whole(image);
  require_channels(channels);
  if (channels == image.channels) {
    return image;
  }
  const bool had_colour = image.channels >= 3;
  const bool had_alpha = image.channels % 2 == 0;
  const bool has_alpha = channels % 2 == 0;
  const std::size_t pixels = image.bytes.size() / static_cast<std::size_t>(image.channels);
  Image result{.height = image.height, .width = image.width, .channels = channels, .bytes = {}};
  result.bytes.reserve(pixels * static_cast<std::size_t>(channels));
  for (std::size_t i = 0; i < pixels; ++i) {
    const std::uint8_t* const from =
        image.bytes.data() + i * static_cast<std::size_t>(image.channels);
    if (channels >= 3) {
      for (int c = 0; c < 3; ++c) {
        result.bytes.push_back(from[had_colour ? c : 0]);
      }
    } else if (had_colour) {
      const int sum = 299 * from[0] + 587 * from[1] + 114 * from[2];
      result.bytes.push_back(static_cast<std::uint8_t>((sum + 500) / 1000));
    } else {
      result.bytes.push_back(from[0]);
    }
    if (has_alpha) {
      result.bytes.push_back(had_alpha ? from[image.channels - 1] : 255);
    }
  }
  return result;
}

Tensor<float> to_tensor(const Image& image) {
  require_whole(image);
  auto tensor = Tensor<float>::uninitialised({image.channels, image.height, image.width});
  float* out = tensor.mutable_data();
  const auto channels = static_cast<std::size_t>(image.channels);
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = c; i < image.bytes.size(); i += channels) {
      *out++ = static_cast<float>(image.bytes[i]) / 255.0F;
    }
  }
  return tensor;
}

Image to_image(const Tensor<float>& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.rank() != 2 && shape.rank() != 3) {
    throw Error(ErrorCode::rank_mismatch,
                "to_image: got the shape " + to_string(shape) +
                    ", needed (channels, height, width) or (height, width)");
  }
  const int first = shape.rank() - 2;
  const Index channels = first == 0 ? 1 : shape[0];
  require_channels(static_cast<int>(std::clamp<Index>(channels, 0, 5)));
  Image image{.height = shape[first],
              .width = shape[first + 1],
              .channels = static_cast<int>(channels),
              .bytes = std::vector<std::uint8_t>(static_cast<std::size_t>(tensor.size()))};
  const Index pixels = image.height * image.width;
  for (Index i = 0; i < tensor.size(); ++i) {
    const float level = tensor[i] * 255.0F;
    // Written so that what is not a number fails both comparisons.
    const float clamped = level > 0 ? (level < 255 ? level : 255.0F) : 0.0F;
    image.bytes[static_cast<std::size_t>((i % pixels) * channels + i / pixels)] =
        static_cast<std::uint8_t>(std::lround(clamped));
  }
  return image;
}

}  // namespace fenestra::io

// The formats that store pixels as they are: BMP, PGM and PPM.
#include <fenestra/base/checked.hpp>
#include <fenestra/io/image_formats.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>

namespace fenestra::io {

namespace {

/// Where a channel sits in a pixel of a bitmap.
struct Mask {
  std::uint32_t bits = 0;

  /// The channel, scaled to 0..255.
  std::uint8_t of(std::uint32_t pixel) const {
    const std::uint64_t most = bits >> std::countr_zero(bits);
    const std::uint64_t value = (pixel & bits) >> std::countr_zero(bits);
    return static_cast<std::uint8_t>((value * 255 + most / 2) / most);
  }
};

bool is_contiguous(std::uint32_t bits) {
  return bits != 0 && std::has_single_bit(std::uint64_t{bits >> std::countr_zero(bits)} + 1);
}

/// What the headers of a bitmap say.
struct Bitmap {
  std::uint64_t header = 0;  ///< bytes of the second header
  Index width = 0;
  Index height = 0;
  bool is_top_down = false;
  std::uint32_t depth = 0;    ///< bits a pixel
  std::array<Mask, 4> masks;  ///< red, green, blue, alpha; for 16 and 32 bits
  std::uint64_t colours_at = 0;
  std::uint64_t colours = 0;  ///< of the palette
  std::uint64_t colour_bytes = 4;
  std::uint64_t pixels_at = 0;

  std::uint64_t row_bytes() const {
    return 4 * static_cast<std::uint64_t>(ceil_div(width * depth, 32));
  }
};

constexpr std::uint64_t kFileHeader = 14;

void read_masks(const ImageFile& file, Bitmap& bitmap, std::uint32_t compression) {
  constexpr std::uint32_t kNone = 0;
  constexpr std::uint32_t kBitFields = 3;
  if (compression == kBitFields && (bitmap.depth == 16 || bitmap.depth == 32)) {
    // Beside the header of 40 bytes they follow it, and later headers contain them.
    const std::uint64_t at = kFileHeader + 40;
    const std::size_t count = bitmap.header >= 56 ? 4 : 3;
    for (std::size_t i = 0; i < count; ++i) {
      bitmap.masks[i].bits = file.little32(at + 4 * i);
      if (!is_contiguous(bitmap.masks[i].bits) && !(i == 3 && bitmap.masks[i].bits == 0)) {
        file.fail(at + 4 * i, "bits in a row", std::to_string(bitmap.masks[i].bits));
      }
    }
    bitmap.colours_at += bitmap.header == 40 ? 12 : 0;
  } else if (compression != kNone) {
    file.fail(kFileHeader + 16,
              "an uncompressed bitmap",
              "compression " + std::to_string(compression) + " of " + std::to_string(bitmap.depth) +
                  " bits");
  } else if (bitmap.depth == 16) {
    bitmap.masks = {Mask{0x7c00}, Mask{0x03e0}, Mask{0x001f}, Mask{}};
  } else if (bitmap.depth == 32) {
    bitmap.masks = {Mask{0xff0000}, Mask{0xff00}, Mask{0xff}, Mask{}};
  }
}

Bitmap read_headers(const ImageFile& file) {
  Bitmap bitmap;
  bitmap.pixels_at = file.little32(10);
  bitmap.header = file.little32(kFileHeader);
  bitmap.colours_at = kFileHeader + bitmap.header;
  std::uint32_t compression = 0;
  std::uint32_t planes = 0;
  if (bitmap.header == 12) {
    bitmap.width = file.little16(18);
    bitmap.height = file.little16(20);
    planes = file.little16(22);
    bitmap.depth = file.little16(24);
    bitmap.colour_bytes = 3;
  } else if (bitmap.header == 40 || bitmap.header == 52 || bitmap.header == 56 ||
             bitmap.header == 108 || bitmap.header == 124) {
    bitmap.width = static_cast<std::int32_t>(file.little32(18));
    const Index height = static_cast<std::int32_t>(file.little32(22));
    bitmap.is_top_down = height < 0;
    bitmap.height = height < 0 ? -height : height;
    planes = file.little16(26);
    bitmap.depth = file.little16(28);
    compression = file.little32(30);
    bitmap.colours = file.little32(46);
  } else {
    file.fail(
        kFileHeader, "a header of 12, 40, 52, 56, 108 or 124 bytes", std::to_string(bitmap.header));
  }
  file.check_size(18, bitmap.height, bitmap.width);
  if (planes != 1) {
    file.fail(bitmap.header == 12 ? 22 : 26, "one plane", std::to_string(planes));
  }
  constexpr std::array<std::uint32_t, 6> kDepths = {1, 4, 8, 16, 24, 32};
  if (std::find(kDepths.begin(), kDepths.end(), bitmap.depth) == kDepths.end()) {
    file.fail(bitmap.header == 12 ? 24 : 28,
              "1, 4, 8, 16, 24 or 32 bits a pixel",
              std::to_string(bitmap.depth));
  }
  read_masks(file, bitmap, compression);
  if (bitmap.depth <= 8) {
    const std::uint64_t most = std::uint64_t{1} << bitmap.depth;
    bitmap.colours = bitmap.colours == 0 ? most : bitmap.colours;
    if (bitmap.colours > most) {
      file.fail(46, "at most " + std::to_string(most) + " colours", std::to_string(bitmap.colours));
    }
  } else {
    bitmap.colours = 0;
  }
  const std::uint64_t headers = bitmap.colours_at + bitmap.colours * bitmap.colour_bytes;
  if (bitmap.pixels_at < headers) {
    file.fail(10,
              "pixels after the headers and colours, from byte " + std::to_string(headers) + " on",
              std::to_string(bitmap.pixels_at));
  }
  const std::uint64_t needed = bitmap.row_bytes() * static_cast<std::uint64_t>(bitmap.height);
  if (bitmap.pixels_at > file.size() || needed > file.size() - bitmap.pixels_at) {
    file.fail(file.size(),
              std::to_string(needed) + " bytes of pixels from byte " +
                  std::to_string(bitmap.pixels_at) + " on",
              "the end of the file");
  }
  return bitmap;
}

}  // namespace

Image decode_bmp(const ImageFile& file) {
  const Bitmap bitmap = read_headers(file);
  const bool has_alpha = bitmap.masks[3].bits != 0;
  Image image = file.make(18, bitmap.height, bitmap.width, has_alpha ? 4 : 3);
  std::uint8_t* out = image.bytes.data();
  for (Index row = 0; row < bitmap.height; ++row) {
    const auto from =
        static_cast<std::uint64_t>(bitmap.is_top_down ? row : bitmap.height - 1 - row);
    const std::uint64_t start = bitmap.pixels_at + from * bitmap.row_bytes();
    for (std::uint64_t x = 0; x < static_cast<std::uint64_t>(bitmap.width); ++x) {
      if (bitmap.depth == 16 || bitmap.depth == 32) {
        const std::uint64_t at = start + x * bitmap.depth / 8;
        const std::uint32_t pixel = bitmap.depth == 16 ? file.little16(at) : file.little32(at);
        for (int c = 0; c < image.channels; ++c) {
          *out++ = bitmap.masks[static_cast<std::size_t>(c)].of(pixel);
        }
        continue;
      }
      std::uint64_t colour = start + 3 * x;
      if (bitmap.depth <= 8) {
        const std::uint64_t bit = x * bitmap.depth;
        const std::uint32_t shift = 8 - bitmap.depth - static_cast<std::uint32_t>(bit % 8);
        const std::uint64_t index =
            (static_cast<std::uint32_t>(file.byte(start + bit / 8)) >> shift) &
            ((1U << bitmap.depth) - 1);
        if (index >= bitmap.colours) {
          file.fail(start + bit / 8,
                    "one of " + std::to_string(bitmap.colours) + " colours",
                    "colour " + std::to_string(index));
        }
        colour = bitmap.colours_at + index * bitmap.colour_bytes;
      }
      for (std::uint64_t c = 3; c-- > 0;) {  // stored as blue, green, red
        *out++ = file.byte(colour + c);
      }
    }
  }
  return image;
}

namespace {

/// The numbers in the text of a PGM or PPM.
class PnmReader {
 public:
  explicit PnmReader(const ImageFile& file, std::uint64_t at) : file_(file), at_(at) {}

  std::uint64_t at() const { return at_; }
  /// White space and comments, then a number of at most `most`.
  std::uint32_t number(std::string_view what, std::uint32_t most) {
    while (is_space() || (at_ < file_.size() && file_.byte(at_) == '#')) {
      if (file_.byte(at_) == '#') {
        while (at_ < file_.size() && file_.byte(at_) != '\n') {
          ++at_;
        }
      } else {
        ++at_;
      }
    }
    const std::uint64_t start = at_;
    std::uint64_t value = 0;
    while (at_ < file_.size() && std::isdigit(file_.byte(at_)) != 0 && value <= most) {
      value = value * 10 + static_cast<std::uint64_t>(file_.byte(at_++) - '0');
    }
    if (start == at_ || value > most) {
      file_.fail(start,
                 std::string(what) + ", at most " + std::to_string(most),
                 start == file_.size() ? "the end of the file" : shown(file_.text(start, 12)));
    }
    return static_cast<std::uint32_t>(value);
  }
  /// The one white space between the last number and the pixels.
  void space() {
    if (!is_space()) {
      file_.fail(at_, "white space before the pixels", shown(file_.text(at_, 1)));
    }
    ++at_;
  }

 private:
  bool is_space() const {
    return at_ < file_.size() &&
           std::string_view(" \t\n\v\f\r").find(static_cast<char>(file_.byte(at_))) !=
               std::string_view::npos;
  }

  const ImageFile& file_;
  std::uint64_t at_;
};

}  // namespace

PnmHeader read_pnm_header(const ImageFile& file) {
  const char kind = static_cast<char>(file.byte(1));
  PnmHeader header;
  header.is_text = kind == '2' || kind == '3';
  header.channels = kind == '2' || kind == '5' ? 1 : 3;
  constexpr std::uint32_t kMostExtent = 0x7fffffff;
  PnmReader reader(file, 2);  // after the two letters that name the format
  header.width = reader.number("a width", kMostExtent);
  header.height = reader.number("a height", kMostExtent);
  const std::uint64_t most_at = reader.at();
  header.most = reader.number("the largest sample", 65535);
  if (header.most == 0) {
    file.fail(most_at, "the largest sample, from 1 on", "0");
  }
  reader.space();
  file.check_size(2, header.height, header.width);
  header.begin = reader.at();
  return header;
}

Image decode_pnm(const ImageFile& file) {
  const PnmHeader header = read_pnm_header(file);
  const auto [height, width, channels, most, is_text, begin] = header;
  PnmReader reader(file, begin);
  const auto count = static_cast<std::uint64_t>(height * width * channels);
  const std::uint64_t sample_bytes = is_text ? 2 : header.sample_bytes();  // a digit and a space
  const std::uint64_t rest = file.size() - reader.at();
  if (rest + (is_text ? 1 : 0) < count * sample_bytes) {
    file.fail(file.size(),
              std::to_string(count) + " samples from byte " + std::to_string(reader.at()) + " on",
              "the end of the file");
  }
  Image image = file.make(2, height, width, channels);
  const std::uint64_t start = reader.at();
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint32_t sample = 0;
    std::uint64_t at = start + i * sample_bytes;
    if (is_text) {
      at = reader.at();
      sample = reader.number("a sample", most);
    } else {
      sample = sample_bytes == 1
                   ? file.byte(at)
                   : static_cast<std::uint32_t>(file.byte(at)) << 8U | file.byte(at + 1);
    }
    if (sample > most) {
      file.fail(at, "a sample of at most " + std::to_string(most), std::to_string(sample));
    }
    image.bytes[i] = static_cast<std::uint8_t>((sample * 255 + most / 2) / most);
  }
  return image;
}

}  // namespace fenestra::io

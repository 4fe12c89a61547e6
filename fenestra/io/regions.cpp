// Files by parts; see regions.hpp. A part is read and written run by run: what lies side by side in
// the file goes at once.
#include <fenestra/base/checked.hpp>
#include <fenestra/base/file.hpp>
#include <fenestra/io/image_formats.hpp>
#include <fenestra/io/npy_header.hpp>
#include <fenestra/io/numbers.hpp>
#include <fenestra/io/regions.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace fenestra::io {

namespace {

/// Heads of PGM and PPM files are read from this many bytes, comments counted.
constexpr std::uint64_t kMostHead = 1 << 16;

/// Calls f(first cell of a run in the whole, its place in the part, its length): runs are along the
/// last axis, longer where whole axes follow each other.
template <class F>
void for_each_run(const Shape& shape, const Box& box, F&& f) {
  int inner = shape.rank();  // the axes from here on are one run
  Index length = 1;
  bool whole = true;
  while (inner > 0 && whole) {
    --inner;
    length *= box.count[inner];
    whole = box.count[inner] == shape[inner];
  }
  const Index total = box.shape().elements().value_or(0);
  for (Index place = 0; place < total; place += length) {
    Index rest = place;
    Index cell = 0;
    Index stride = 1;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      cell += (box.begin[axis] + rest % box.count[axis]) * stride;
      rest /= box.count[axis];
      stride *= shape[axis];
    }
    f(cell, place, length);
  }
}

void require_inside(std::string_view file, const Shape& shape, const Box& box) {
  bool inside = box.rank() == shape.rank();
  for (int axis = 0; inside && axis < shape.rank(); ++axis) {
    inside = box.begin[axis] >= 0 && box.count[axis] >= 0 &&
             box.count[axis] <= shape[axis] - box.begin[axis];
  }
  if (!inside) {
    throw Error(ErrorCode::invalid_index,
                std::string(file) + ": the part " + to_string(box) + " of an array " +
                    to_string(shape) + "\n  fix: a part that lies inside");
  }
}

std::uint64_t unsigned_of(Index value) { return static_cast<std::uint64_t>(value); }

}  // namespace

struct RegionReader::State {
  ByteSource source;
  Shape shape;
  std::uint64_t begin = 0;
  NumberType type = NumberType::f32;
  std::endian order = std::endian::little;
  std::optional<PnmHeader> picture;

  State(const std::filesystem::path& path, const std::optional<RawFormat>& raw)
      : source(ByteSource::file(path)) {
    const std::vector<std::byte> head =
        source.read(0, std::min<std::uint64_t>(source.size(), kMostHead));
    const auto letter = [&](std::size_t i) {
      return i < head.size() ? std::to_integer<char>(head[i]) : '\0';
    };
    if (raw) {
      open_raw(*raw);
    } else if (letter(0) == 'P' && letter(1) >= '2' && letter(1) <= '6' && letter(1) != '4') {
      open_picture(head);
    } else {
      open_npy();
    }
  }

  void open_raw(const RawFormat& raw) {
    shape = raw.shape;
    type = raw.type;
    const std::optional<Index> count = shape.elements();
    const Checked bytes = Checked(count.value_or(0)) * width_of(type);
    if (!count || !bytes.ok() || unsigned_of(bytes.value()) != source.size()) {
      refuse(source.name(),
             source.size(),
             to_string(shape) + " numbers of " + std::to_string(width_of(type)) + " bytes",
             std::to_string(source.size()) + " bytes",
             "the shape and type that the file was written with");
    }
  }
  void open_npy() {
    const NpyHeader header = read_npy_header(source.from(0), source.size(), source.name());
    if (header.fortran) {
      refuse(source.name(),
             0,
             "an array in C order",
             "one in Fortran order",
             "numpy.ascontiguousarray before it is saved");
    }
    shape = header.shape;
    type = header.type;
    order = header.order;
    begin = header.begin;
  }
  void open_picture(std::span<const std::byte> head) {
    const ImageFile file{head, source.name(), std::numeric_limits<Index>::max() / 8};
    picture = read_pnm_header(file);
    begin = picture->begin;
    if (picture->is_text) {
      refuse(source.name(), 0, "a picture with binary samples", "numbers as text", "P5 or P6");
    }
    shape = {picture->channels, picture->height, picture->width};
    const Checked bytes = Checked(picture->height) * picture->width * picture->channels *
                          static_cast<Index>(picture->sample_bytes());
    if (!bytes.ok() || unsigned_of(bytes.value()) > source.size() - begin) {
      refuse(source.name(),
             source.size(),
             std::to_string(bytes.value()) + " bytes of samples from byte " +
                 std::to_string(begin) + " on",
             "the end of the file");
    }
  }

  template <class T>
  void read(const Box& box, T* out) const {
    require_inside(source.name(), shape, box);
    if (picture) {
      return read_pixels(box, out);
    }
    for_each_run(shape, box, [&](Index cell, Index place, Index length) {
      const std::uint64_t offset = begin + unsigned_of(cell * width_of(type));
      read_numbers<T>({.type = type, .order = order, .file = source.name(), .offset = offset},
                      source.from(offset),
                      std::span<T>(out + place, static_cast<std::size_t>(length)));
    });
  }
  /// Pixels have their channels together. Samples become bytes first, as in `load_image`.
  template <class T>
  void read_pixels(const Box& box, T* out) const {
    const Index channels = picture->channels;
    const Index width = box.count[2];
    const Index size = static_cast<Index>(picture->sample_bytes());
    const Index cells = box.count[1] * width;
    std::vector<std::byte> row(static_cast<std::size_t>(width * channels * size));
    for (Index y = 0; y < box.count[1]; ++y) {
      const Index first = ((box.begin[1] + y) * picture->width + box.begin[2]) * channels;
      const std::uint64_t offset = begin + unsigned_of(first * size);
      source.read(offset, row);
      for (Index c = 0; c < box.count[0]; ++c) {
        for (Index x = 0; x < width; ++x) {
          const auto at = static_cast<std::size_t>((x * channels + box.begin[0] + c) * size);
          std::uint32_t sample = std::to_integer<std::uint32_t>(row[at]);
          if (size == 2) {
            sample = sample << 8U | std::to_integer<std::uint32_t>(row[at + 1]);
          }
          if (sample > picture->most) {
            refuse(source.name(),
                   offset + at,
                   "a sample of at most " + std::to_string(picture->most),
                   std::to_string(sample));
          }
          const std::uint32_t byte = (sample * 255 + picture->most / 2) / picture->most;
          out[c * cells + y * width + x] = static_cast<T>(static_cast<float>(byte) / 255.0F);
        }
      }
    }
  }
};

RegionReader::RegionReader(const std::filesystem::path& path, const std::optional<RawFormat>& raw)
    : state_(std::make_unique<State>(path, raw)) {}
RegionReader::~RegionReader() = default;
RegionReader::RegionReader(RegionReader&&) noexcept = default;
RegionReader& RegionReader::operator=(RegionReader&&) noexcept = default;

const Shape& RegionReader::shape() const { return state_->shape; }
bool RegionReader::has_bytes() const { return !state_->picture && state_->type == NumberType::u8; }
template <class T>
void RegionReader::read(const Box& box, T* out) const {
  state_->read(box, out);
}

template void RegionReader::read(const Box&, float*) const;
template void RegionReader::read(const Box&, double*) const;

// --- writing -----------------------------------------------------------------------------------

std::optional<RegionFormat> region_format(const std::filesystem::path& path) {
  constexpr std::pair<std::string_view, RegionFormat> kEndings[] = {{".npy", RegionFormat::npy},
                                                                    {".raw", RegionFormat::raw},
                                                                    {".pgm", RegionFormat::pgm},
                                                                    {".ppm", RegionFormat::ppm}};
  for (const auto& [ending, format] : kEndings) {
    if (path.extension() == ending) {
      return format;
    }
  }
  return std::nullopt;
}

struct RegionWriter::State {
  OutputFile file;
  RegionFormat format;
  Shape shape;
  std::string name;
  std::uint64_t begin = 0;
  std::vector<char> row;

  State(const std::filesystem::path& path, RegionFormat kind, const Shape& of)
      : file(path), format(kind), shape(of), name(path.string()) {
    static_assert(std::endian::native == std::endian::little);
    const std::optional<Index> count = shape.elements();
    const int rank = shape.rank();
    const bool fits = count && *count > 0 &&
                      (format == RegionFormat::pgm   ? rank == 2 || (rank == 3 && shape[0] == 1)
                       : format == RegionFormat::ppm ? rank == 3 && shape[0] == 3
                                                     : true);
    if (!fits) {
      throw Error(ErrorCode::shape_mismatch,
                  name + ": an array " + to_string(shape) +
                      "\n  fix: (height, width) for .pgm, (3, height, width) for .ppm, anything "
                      "but nothing for .npy and .raw");
    }
    std::string head;
    if (format == RegionFormat::npy) {
      head = npy_header<float>(shape);
    } else if (is_picture()) {
      head = (format == RegionFormat::pgm ? "P5\n" : "P6\n") + std::to_string(shape[rank - 1]) +
             " " + std::to_string(shape[rank - 2]) + "\n255\n";
    }
    file.write(head);
    begin = head.size();
    // The last byte says how long it is.
    const std::uint64_t bytes = unsigned_of(*count) * (is_picture() ? 1 : sizeof(float));
    file.write_at(begin + bytes - 1, std::string_view("\0", 1));
  }
  bool is_picture() const { return format == RegionFormat::pgm || format == RegionFormat::ppm; }

  void write(const Box& box, const float* values) {
    require_inside(name, shape, box);
    if (is_picture()) {
      return write_pixels(box, values);
    }
    for_each_run(shape, box, [&](Index cell, Index place, Index length) {
      file.write_at(begin + unsigned_of(cell) * sizeof(float),
                    {reinterpret_cast<const char*>(values + place),
                     static_cast<std::size_t>(length) * sizeof(float)});
    });
  }
  void write_pixels(const Box& box, const float* values) {
    const int rank = shape.rank();
    const Index channels = format == RegionFormat::ppm ? 3 : 1;
    const Index width = box.count[rank - 1];
    const Index cells = box.count[rank - 2] * width;
    if (channels == 3 && box.count[0] != 3) {
      throw Error(ErrorCode::invalid_index,
                  name + ": the part " + to_string(box) +
                      " has not all channels\n  fix: all three, pixel by pixel");
    }
    row.resize(static_cast<std::size_t>(width * channels));
    for (Index y = 0; y < box.count[rank - 2]; ++y) {
      for (Index x = 0; x < width; ++x) {
        for (Index c = 0; c < channels; ++c) {
          const float value = values[c * cells + y * width + x];
          const float level = value > 0 ? std::min(value, 1.0F) * 255.0F : 0.0F;
          row[static_cast<std::size_t>(x * channels + c)] =
              static_cast<char>(static_cast<unsigned char>(std::lround(level)));
        }
      }
      const Index first = (box.begin[rank - 2] + y) * shape[rank - 1] + box.begin[rank - 1];
      file.write_at(begin + unsigned_of(first * channels), {row.data(), row.size()});
    }
  }
};

RegionWriter::RegionWriter(const std::filesystem::path& path,
                           RegionFormat format,
                           const Shape& shape)
    : state_(std::make_unique<State>(path, format, shape)) {}
RegionWriter::~RegionWriter() = default;
RegionWriter::RegionWriter(RegionWriter&&) noexcept = default;
RegionWriter& RegionWriter::operator=(RegionWriter&&) noexcept = default;

void RegionWriter::write(const Box& box, const float* values) { state_->write(box, values); }
void RegionWriter::commit() { state_->file.commit(); }

}  // namespace fenestra::io

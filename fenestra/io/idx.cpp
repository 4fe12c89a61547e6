// IDX: two zero bytes, the type, the number of axes, the extents, the numbers; all big-endian.
#include <fenestra/io/idx.hpp>
#include <fenestra/io/inflate.hpp>
#include <fenestra/io/numbers.hpp>
#include <fenestra/io/source.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

namespace fenestra::io {

namespace {

constexpr std::pair<std::uint8_t, NumberType> kTypes[] = {
    {0x08, NumberType::u8},
    {0x09, NumberType::i8},
    {0x0b, NumberType::i16},
    {0x0c, NumberType::i32},
    {0x0d, NumberType::f32},
    {0x0e, NumberType::f64},
};

constexpr std::string_view kFix = "a file such as train-images-idx3-ubyte, plain or .gz";

struct IdxHeader {
  NumberType type = NumberType::u8;
  Shape shape;
  std::uint64_t begin = 0;  ///< of the numbers
  std::uint64_t bytes = 0;  ///< of the numbers
};

IdxHeader read_idx_header(const ReadBytes& read, std::string_view file) {
  std::array<std::byte, 4> start{};
  read(start);
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint8_t>(start[i]); };
  const auto* const known = std::find_if(
      std::begin(kTypes), std::end(kTypes), [&](const auto& k) { return k.first == byte(2); });
  if (byte(0) != 0 || byte(1) != 0 || known == std::end(kTypes) || byte(3) > kMaxRank) {
    refuse(file,
           0,
           "two zero bytes, a type (8, 9, 11, 12, 13 or 14) and at most 16 axes",
           std::to_string(byte(0)) + " " + std::to_string(byte(1)) + " " + std::to_string(byte(2)) +
               " " + std::to_string(byte(3)),
           kFix);
  }
  IdxHeader header;
  header.type = known->second;
  for (int axis = 0; axis < byte(3); ++axis) {
    std::array<std::byte, 4> extent{};
    read(extent);
    Index value = 0;
    for (const std::byte digit : extent) {
      value = value << 8 | std::to_integer<Index>(digit);
    }
    header.shape.push_back(value);
  }
  header.begin = 4 + 4 * std::uint64_t{byte(3)};
  const auto count = header.shape.elements();
  if (!count) {
    refuse(file, 4, "a shape that fits into memory", to_string(header.shape), kFix);
  }
  header.bytes = static_cast<std::uint64_t>(*count * width_of(header.type));
  return header;
}

template <class T>
Tensor<T> read_idx(const ByteSource& source, const IdxOptions& options) {
  const std::string& file = source.name();
  std::optional<InflateReader> inflater;
  ReadBytes read = source.from(0);
  if (source.size() >= 2 &&
      source.read(0, 2) == std::vector<std::byte>{std::byte{0x1f}, std::byte{0x8b}}) {
    inflater.emplace(source, 0, source.size(), InflateReader::Wrapper::gzip, file);
    read = [&](std::span<std::byte> out) { inflater->read(out); };
  }
  const IdxHeader header = read_idx_header(read, file);
  const auto sized =
      to_string(header.shape) + " of " + std::to_string(width_of(header.type)) + " bytes each";
  if (!inflater && source.size() - header.begin != header.bytes) {
    refuse(file,
           header.begin,
           std::to_string(header.bytes) + " bytes of numbers for " + sized,
           std::to_string(source.size() - header.begin),
           kFix);
  }
  if (inflater && header.bytes > options.max_inflated_bytes) {
    refuse(file,
           4,
           "at most " + std::to_string(options.max_inflated_bytes) + " bytes, inflated",
           sized,
           "a larger max_inflated_bytes, if the file is to be trusted");
  }
  if (inflater && header.bytes / kMostInflated > source.size()) {
    refuse(file,
           4,
           "at most 1032 bytes for each of " + std::to_string(source.size()) + " compressed ones",
           sized,
           kFix);
  }
  const StoredNumbers stored{
      .type = header.type, .order = std::endian::big, .file = file, .offset = header.begin};
  Tensor<T> tensor = read_tensor<T>(stored, read, header.shape);
  if (inflater) {
    inflater->finish();
  }
  return tensor;
}

}  // namespace

template <class T>
Tensor<T> load_idx(const std::filesystem::path& path, const IdxOptions& options) {
  return read_idx<T>(ByteSource::file(path), options);
}

template <class T>
Tensor<T> decode_idx(std::span<const std::byte> bytes,
                     const std::string& name,
                     const IdxOptions& options) {
  return read_idx<T>(ByteSource::memory(bytes, name), options);
}

template Tensor<float> load_idx(const std::filesystem::path&, const IdxOptions&);
template Tensor<double> load_idx(const std::filesystem::path&, const IdxOptions&);
template Tensor<Index> load_idx(const std::filesystem::path&, const IdxOptions&);
template Tensor<std::uint8_t> load_idx(const std::filesystem::path&, const IdxOptions&);
template Tensor<float> decode_idx(std::span<const std::byte>,
                                  const std::string&,
                                  const IdxOptions&);
template Tensor<double> decode_idx(std::span<const std::byte>,
                                   const std::string&,
                                   const IdxOptions&);
template Tensor<Index> decode_idx(std::span<const std::byte>,
                                  const std::string&,
                                  const IdxOptions&);
template Tensor<std::uint8_t> decode_idx(std::span<const std::byte>,
                                         const std::string&,
                                         const IdxOptions&);

}  // namespace fenestra::io

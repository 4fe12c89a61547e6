// safetensors: eight bytes with the length of the header, the header in JSON, the numbers.
#include <fenestra/base/checked.hpp>
#include <fenestra/base/file.hpp>
#include <fenestra/io/json.hpp>
#include <fenestra/io/numbers.hpp>
#include <fenestra/io/safetensors.hpp>
#include <fenestra/io/source.hpp>
#include <fenestra/io/stranger.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace fenestra::io {

namespace {

/// The reference refuses longer headers.
constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr std::string_view kMetadata = "__metadata__";

constexpr std::pair<std::string_view, NumberType> kTypes[] = {
    {"BOOL", NumberType::boolean},
    {"U8", NumberType::u8},
    {"I8", NumberType::i8},
    {"F8_E5M2", NumberType::f8_e5m2},
    {"F8_E4M3", NumberType::f8_e4m3},
    {"I16", NumberType::i16},
    {"U16", NumberType::u16},
    {"F16", NumberType::f16},
    {"BF16", NumberType::bf16},
    {"I32", NumberType::i32},
    {"U32", NumberType::u32},
    {"F32", NumberType::f32},
    {"F64", NumberType::f64},
    {"I64", NumberType::i64},
    {"U64", NumberType::u64},
};

std::string_view spelling(NumberType type) {
  return std::find_if(std::begin(kTypes),
                      std::end(kTypes),
                      [&](const auto& known) { return known.second == type; })
      ->first;
}

/// One tensor as the header states it; offsets count from the first byte of data.
struct Stated {
  SafetensorsEntry entry;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t place = 0;  ///< of the offsets, in the file
};

Shape read_shape(JsonReader& json, std::string_view file) {
  Shape shape;
  const std::uint64_t place = json.offset();
  json.array([&] {
    if (shape.rank() == kMaxRank) {
      json.refuse_here("at most " + std::to_string(kMaxRank) + " extents");
    }
    const std::uint64_t at = json.offset();
    const std::uint64_t extent = json.whole_number();
    if (!std::in_range<Index>(extent)) {
      refuse(file, at, "an extent below 2^63", std::to_string(extent));
    }
    shape.push_back(static_cast<Index>(extent));
  });
  if (!shape.elements()) {
    refuse(file,
           place,
           "at most " + std::to_string(kMaxElements) + " elements",
           "the shape " + to_string(shape));
  }
  return shape;
}

Stated read_entry(JsonReader& json, std::string_view file, const std::string& name) {
  Stated stated;
  stated.entry.name = name;
  bool has_type = false;
  bool has_shape = false;
  const std::uint64_t start = json.offset();
  json.object([&](const std::string& key) {
    if (key == "dtype") {
      const std::uint64_t place = json.offset();
      const std::string type = json.string();
      const auto* const known = std::find_if(
          std::begin(kTypes), std::end(kTypes), [&](const auto& k) { return k.first == type; });
      if (known == std::end(kTypes)) {
        refuse(file, place, "a type such as F32, BF16 or I64", shown(type));
      }
      stated.entry.type = known->second;
      has_type = true;
    } else if (key == "shape") {
      stated.entry.shape = read_shape(json, file);
      has_shape = true;
    } else if (key == "data_offsets") {
      stated.place = json.offset();
      int count = 0;
      json.array([&] {
        if (count == 2) {
          json.refuse_here("two offsets, begin and end");
        }
        (count++ == 0 ? stated.begin : stated.end) = json.whole_number();
      });
      if (count != 2) {
        refuse(file, stated.place, "two offsets, begin and end", std::to_string(count));
      }
    } else {
      json.skip();  // as the reference does: later versions may say more
    }
  });
  if (!has_type || !has_shape || stated.place == 0) {
    refuse(file,
           start,
           "dtype, shape and data_offsets of " + shown(name),
           !has_type    ? "no dtype"
           : !has_shape ? "no shape"
                        : "no data_offsets");
  }
  if (stated.end < stated.begin) {
    refuse(file,
           stated.place,
           "an end that is not before the begin, " + std::to_string(stated.begin),
           std::to_string(stated.end));
  }
  // No overflow: a shape has fewer elements than 2^63 / 1024.
  const auto needed =
      static_cast<std::uint64_t>(*stated.entry.shape.elements() * width_of(stated.entry.type));
  if (stated.end - stated.begin != needed) {
    refuse(file,
           stated.place,
           std::to_string(needed) + " bytes for " + std::string(spelling(stated.entry.type)) + " " +
               to_string(stated.entry.shape) + " of " + shown(name),
           std::to_string(stated.end - stated.begin));
  }
  stated.entry.bytes = needed;
  return stated;
}

/// Every byte of data belongs to one tensor. `place` is where the file's data begins.
void check_offsets(std::string_view file,
                   const std::vector<Stated>& sorted,
                   std::uint64_t place,
                   std::uint64_t size) {
  std::uint64_t end = 0;
  for (const Stated& stated : sorted) {
    if (stated.begin != end) {
      refuse(file,
             stated.place,
             shown(stated.entry.name) + " to begin at " + std::to_string(end) +
                 ", where the one before it ends",
             std::to_string(stated.begin));
    }
    end = stated.end;
  }
  if (end != size) {
    refuse(file,
           place + std::min(end, size),
           std::to_string(end) + " bytes of data, as the header says",
           std::to_string(size));
  }
}

}  // namespace

struct SafetensorsReader::Contents {
  ByteSource source;
  std::vector<SafetensorsEntry> entries;
  std::map<std::string, std::size_t, std::less<>> by_name;
  Metadata metadata;

  explicit Contents(ByteSource from) : source(std::move(from)) {
    const std::string& file = source.name();
    std::uint64_t length = 0;
    if (source.size() < sizeof length) {
      refuse(file,
             source.size(),
             "8 bytes that say how long the header is",
             "a file of " + std::to_string(source.size()) + " bytes");
    }
    source.read(0, std::as_writable_bytes(std::span(&length, 1)));
    if (length > kLongestHeader) {
      require_no_stranger();
      refuse(file,
             0,
             "a header of at most " + std::to_string(kLongestHeader) + " bytes",
             std::to_string(length),
             "a file that is safetensors");
    }
    if (length > source.size() - sizeof length) {
      refuse(file,
             source.size(),
             "a header of " + std::to_string(length) + " bytes",
             std::to_string(source.size() - sizeof length));
    }
    const std::uint64_t data = sizeof length + length;
    std::string header(length, '\0');
    source.read(sizeof length, std::as_writable_bytes(std::span(header)));
    parse(header, data);
  }

  /// What begins with eight bytes that are no length of a header is a file of another kind.
  void require_no_stranger() {
    std::string start(std::min<std::uint64_t>(source.size(), 512), '\0');
    source.read(0, std::as_writable_bytes(std::span(start)));
    refuse_stranger(source.name(), start, "safetensors file");
  }

  void parse(const std::string& header, std::uint64_t data) {
    const std::string& file = source.name();
    constexpr std::uint64_t kStart = 8;
    if (const std::size_t bad = first_not_utf8(header); bad != std::string::npos) {
      refuse(file, kStart + bad, "UTF-8", shown(std::string_view(header).substr(bad, 4)));
    }
    if (!header.starts_with('{')) {
      refuse(file, kStart, "'{'", header.empty() ? "no header" : shown(header.substr(0, 8)));
    }
    JsonReader json(header, file, kStart);
    std::vector<Stated> stated;
    json.object([&](const std::string& name) {
      if (name != kMetadata) {
        stated.push_back(read_entry(json, file, name));
        return;
      }
      json.object([&](const std::string& key) { metadata.emplace(key, json.string()); });
    });
    json.end();
    std::sort(stated.begin(), stated.end(), [](const Stated& a, const Stated& b) {
      return std::tie(a.begin, a.end, a.entry.name) < std::tie(b.begin, b.end, b.entry.name);
    });
    check_offsets(file, stated, data, source.size() - data);
    entries.reserve(stated.size());
    for (Stated& one : stated) {
      one.entry.offset = data + one.begin;
      by_name.emplace(one.entry.name, entries.size());
      entries.push_back(std::move(one.entry));
    }
  }
};

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path)
    : contents_(std::make_shared<const Contents>(ByteSource::file(path))) {}

SafetensorsReader::SafetensorsReader(std::span<const std::byte> bytes, std::string name)
    : contents_(std::make_shared<const Contents>(ByteSource::memory(bytes, std::move(name)))) {}

const std::vector<SafetensorsEntry>& SafetensorsReader::entries() const {
  return contents_->entries;
}

const Metadata& SafetensorsReader::metadata() const { return contents_->metadata; }

const SafetensorsEntry* SafetensorsReader::find(std::string_view name) const {
  const auto found = contents_->by_name.find(name);
  return found == contents_->by_name.end() ? nullptr : &contents_->entries[found->second];
}

template <class T>
Tensor<T> SafetensorsReader::read(std::string_view name) const {
  const ByteSource& source = contents_->source;
  const SafetensorsEntry* const entry = find(name);
  if (entry == nullptr) {
    throw Error(ErrorCode::bad_file,
                source.name() + ": no tensor is called " + shown(name) + " among " +
                    std::to_string(entries().size()) + "\n  fix: a name from entries()");
  }
  const StoredNumbers stored{.type = entry->type, .file = source.name(), .offset = entry->offset};
  return read_tensor<T>(stored, source.from(entry->offset), entry->shape);
}

template Tensor<float> SafetensorsReader::read(std::string_view) const;
template Tensor<double> SafetensorsReader::read(std::string_view) const;
template Tensor<Index> SafetensorsReader::read(std::string_view) const;

SafetensorsContents load_safetensors(const std::filesystem::path& path) {
  const SafetensorsReader reader(path);
  SafetensorsContents contents{.tensors = {}, .metadata = reader.metadata()};
  for (const SafetensorsEntry& entry : reader.entries()) {
    contents.tensors.emplace(entry.name, read_nearest(entry.type, [&]<class T>(T) {
                               return AnyTensor(reader.read<T>(entry.name));
                             }));
  }
  return contents;
}

namespace {

void require_utf8(const std::filesystem::path& path, const std::string& text) {
  if (first_not_utf8(text) != std::string::npos) {
    throw Error(ErrorCode::bad_file,
                path.string() + ": cannot be written: names and metadata are UTF-8, and " +
                    shown(text) + " is not\n  fix: another name");
  }
}

/// A tensor to be written, as the header and the disk want it.
struct Written {
  const std::string* name;
  NumberType type;
  const Shape* shape;
  std::string_view bytes;
};

Written written(const std::string& name, const AnyTensor& any) {
  return std::visit(
      [&]<class T>(const Tensor<T>& tensor) {
        const auto bytes = std::as_bytes(tensor.values());
        return Written{.name = &name,
                       .type = std::is_same_v<T, float>    ? NumberType::f32
                               : std::is_same_v<T, double> ? NumberType::f64
                                                           : NumberType::i64,
                       .shape = &tensor.shape(),
                       .bytes = {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
      },
      any);
}

}  // namespace

void save_safetensors(const std::filesystem::path& path,
                      const TensorMap& tensors,
                      const Metadata& metadata) {
  std::vector<Written> sorted;
  for (const auto& [name, tensor] : tensors) {
    require_utf8(path, name);
    if (name == kMetadata) {
      throw Error(ErrorCode::bad_file,
                  path.string() + ": cannot be written: no tensor may be called " +
                      std::string(kMetadata) + "\n  fix: another name");
    }
    sorted.push_back(written(name, tensor));
  }
  // The map has them by name already.
  std::stable_sort(sorted.begin(), sorted.end(), [](const Written& a, const Written& b) {
    return a.type > b.type;
  });

  std::string header = "{";
  const auto separate = [&] { header += header.size() > 1 ? "," : ""; };
  if (!metadata.empty()) {
    header += json_string(kMetadata) + ":{";
    bool is_first = true;
    for (const auto& [key, value] : metadata) {
      require_utf8(path, key);
      require_utf8(path, value);
      header += std::exchange(is_first, false) ? "" : ",";
      header += json_string(key) + ":" + json_string(value);
    }
    header += "}";
  }
  std::uint64_t offset = 0;
  for (const Written& one : sorted) {
    separate();
    header += json_string(*one.name) + ":{\"dtype\":\"" + std::string(spelling(one.type)) +
              "\",\"shape\":[";
    for (int axis = 0; axis < one.shape->rank(); ++axis) {
      header += (axis > 0 ? "," : "") + std::to_string((*one.shape)[axis]);
    }
    header += "],\"data_offsets\":[" + std::to_string(offset) + "," +
              std::to_string(offset + one.bytes.size()) + "]}";
    offset += one.bytes.size();
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::uint64_t length = header.size();
  if (length > kLongestHeader) {
    throw Error(ErrorCode::bad_file,
                path.string() + ": cannot be written: names and metadata take " +
                    std::to_string(length) + " bytes, a header has at most " +
                    std::to_string(kLongestHeader) + "\n  fix: less metadata");
  }
  const auto start = std::bit_cast<std::array<char, sizeof length>>(length);
  OutputFile file(path);
  file.write({start.data(), start.size()});
  file.write(header);
  for (const Written& one : sorted) {
    file.write(one.bytes);
  }
  file.commit();
}

}  // namespace fenestra::io

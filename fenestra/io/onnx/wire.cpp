// Fields of messages.
#include <fenestra/io/json.hpp>
#include <fenestra/io/onnx/wire.hpp>
#include <fenestra/io/source.hpp>

#include <bit>
#include <cstring>

namespace fenestra::onnx {

namespace {

/// Little-endian, as all of protobuf.
template <class T>
T fixed(Bytes bytes) {
  T value;
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

constexpr std::string_view kFix =
    "a file that is a whole ONNX model: this one is cut off, damaged, or not protobuf";

}  // namespace

std::uint64_t take_varint(const WireFile& file, Bytes& rest) {
  constexpr std::size_t kMostBytes = 10;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kMostBytes; ++i) {
    if (i == rest.size()) {
      io::refuse(file.name,
                 file.offset_of(rest.data()) + i,
                 "the rest of a number",
                 "the end of its message",
                 kFix);
    }
    const auto byte = std::to_integer<std::uint64_t>(rest[i]);
    value |= (byte & 0x7f) << (7 * i);  // the tenth byte keeps one bit, as protobuf does
    if ((byte & 0x80) == 0) {
      rest = rest.subspan(i + 1);
      return value;
    }
  }
  io::refuse(file.name,
             file.offset_of(rest.data()),
             "a number of at most 10 bytes",
             "one that goes on",
             kFix);
}

void WireReader::refuse_here(const std::byte* place,
                             std::string_view expected,
                             std::string_view found) const {
  io::refuse(file_->name, file_->offset_of(place), expected, found, kFix);
}

bool WireReader::next(Field& field) {
  if (rest_.empty()) {
    return false;
  }
  const Bytes start = rest_;
  const std::uint64_t tag = take_varint(*file_, rest_);
  const std::uint64_t number = tag >> 3;
  if (number == 0 || number > 0x1fffffff) {
    refuse_here(start.data(), "a field of 1 to 536870911", "field " + std::to_string(number));
  }
  std::uint64_t length = 0;
  field.number = static_cast<std::uint32_t>(number);
  switch (tag & 7) {
    case 0: {
      field.type = WireType::varint;
      const Bytes before = rest_;
      field.value = take_varint(*file_, rest_);
      field.bytes = before.first(before.size() - rest_.size());
      field.whole = start.first(start.size() - rest_.size());
      return true;
    }
    case 1:
      field.type = WireType::fixed64;
      length = 8;
      break;
    case 2:
      field.type = WireType::bytes;
      length = take_varint(*file_, rest_);
      break;
    case 5:
      field.type = WireType::fixed32;
      length = 4;
      break;
    default:
      refuse_here(start.data(),
                  "a field of wire type 0, 1, 2 or 5",
                  "wire type " + std::to_string(tag & 7) + " of field " + std::to_string(number));
  }
  if (length > rest_.size()) {
    refuse_here(start.data(),
                "at most the " + std::to_string(rest_.size()) + " bytes that are left",
                "field " + std::to_string(number) + " of " + std::to_string(length) + " bytes");
  }
  field.bytes = rest_.first(length);
  field.value = 0;
  if (field.type == WireType::fixed64) {
    field.value = fixed<std::uint64_t>(field.bytes);
  } else if (field.type == WireType::fixed32) {
    field.value = fixed<std::uint32_t>(field.bytes);
  }
  rest_ = rest_.subspan(length);
  field.whole = start.first(start.size() - rest_.size());
  return true;
}

WireReader WireReader::nested(const Field& field) const {
  require(field, WireType::bytes);
  if (depth_ == kDeepestNesting) {
    refuse_here(field.whole.data(),
                "at most " + std::to_string(kDeepestNesting) + " messages within each other",
                "another one in field " + std::to_string(field.number));
  }
  return {*file_, field.bytes, depth_ + 1};
}

void WireReader::require(const Field& field, WireType type) const {
  if (field.type != type) {
    refuse_here(field.whole.data(),
                "wire type " + std::to_string(static_cast<int>(type)) + " in field " +
                    std::to_string(field.number),
                "wire type " + std::to_string(static_cast<int>(field.type)));
  }
}

std::uint64_t WireReader::number(const Field& field) const {
  require(field, WireType::varint);
  return field.value;
}

std::int64_t WireReader::signed_number(const Field& field) const {
  return static_cast<std::int64_t>(number(field));
}

float WireReader::real(const Field& field) const {
  require(field, WireType::fixed32);
  return std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
}

Bytes WireReader::bytes(const Field& field) const {
  require(field, WireType::bytes);
  return field.bytes;
}

std::string WireReader::text(const Field& field) const {
  const std::string_view text = text_of(bytes(field));
  if (const std::size_t bad = io::first_not_utf8(text); bad != std::string_view::npos) {
    refuse_here(field.bytes.data() + bad, "text in UTF-8", io::shown(text.substr(bad, 4)));
  }
  return std::string(text);
}

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    out += static_cast<char>((value & 0x7f) | 0x80);
  }
  out += static_cast<char>(value);
}

namespace {

void append_tag(std::string& out, std::uint32_t field, WireType type) {
  append_varint(out, std::uint64_t{field} << 3 | static_cast<std::uint64_t>(type));
}

}  // namespace

void append_number(std::string& out, std::uint32_t field, std::uint64_t value) {
  append_tag(out, field, WireType::varint);
  append_varint(out, value);
}

void append_real(std::string& out, std::uint32_t field, float value) {
  append_tag(out, field, WireType::fixed32);
  const auto bytes = std::as_bytes(std::span(&value, 1));
  out += text_of(bytes);
}

void append_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  append_tag(out, field, WireType::bytes);
  append_varint(out, bytes.size());
  out += bytes;
}

}  // namespace fenestra::onnx

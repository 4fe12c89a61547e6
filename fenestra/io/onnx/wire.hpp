// protobuf's wire format: fields of a message, one after the other, in and out. Not installed.
//
// A message is bytes that somebody else owns; a field points into them. Lengths have 64 bits, so
// the format's limit of 2 GB does not apply. What fields mean is none of its business (read.cpp).
#pragma once

#include <fenestra/base/error.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace fenestra::onnx {

using Bytes = std::span<const std::byte>;

inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// How a field's value is stored. Groups (3 and 4), which no model has, are refused.
enum class WireType { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct Field {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;  ///< of a varint or a fixed number
  Bytes bytes;              ///< the value as it is stored, without a length
  Bytes whole;              ///< with tag and length
};

/// The bytes of a file, for messages that say where something is wrong.
struct WireFile {
  std::string name;
  Bytes bytes;
  std::shared_ptr<const void> owner = {};  ///< of the bytes; none where they live long enough

  /// Where `place`, which points into the bytes, stands in the file.
  std::uint64_t offset_of(const std::byte* place) const {
    return static_cast<std::uint64_t>(place - bytes.data());
  }
};

/// Messages within messages; protobuf's own limit.
inline constexpr int kDeepestNesting = 100;

/// The fields of one message in their order. Throws `bad_file` with the byte where the bytes are no
/// message. The file must outlive it.
class WireReader {
 public:
  explicit WireReader(const WireFile& file) : WireReader(file, file.bytes, 1) {}

  /// False at the end.
  bool next(Field& field);
  /// The message that a field of bytes holds.
  WireReader nested(const Field& field) const;
  const WireFile& file() const { return *file_; }

  // What a field must be; throws `bad_file` where it is something else.
  std::uint64_t number(const Field& field) const;
  std::int64_t signed_number(const Field& field) const;
  float real(const Field& field) const;
  Bytes bytes(const Field& field) const;
  /// In UTF-8, as protobuf's strings are. What may be any bytes is read as `bytes`.
  std::string text(const Field& field) const;

  [[noreturn]] void refuse_here(const std::byte* place,
                                std::string_view expected,
                                std::string_view found) const;

 private:
  WireReader(const WireFile& file, Bytes message, int depth)
      : file_(&file), rest_(message), depth_(depth) {}
  void require(const Field& field, WireType type) const;

  const WireFile* file_;
  Bytes rest_;
  int depth_;
};

/// Takes a number off the front of `rest`; throws `bad_file` where it does not end within ten
/// bytes.
std::uint64_t take_varint(const WireFile& file, Bytes& rest);

/// f(number) on every number of a repeated field, packed or not.
template <class F>
void for_each_varint(const WireReader& message, const Field& field, F&& f) {
  if (field.type == WireType::bytes) {
    for (Bytes rest = field.bytes; !rest.empty();) {
      f(take_varint(message.file(), rest));
    }
  } else {
    f(message.number(field));
  }
}

// --- Writing -----------------------------------------------------------------------------------

void append_varint(std::string& out, std::uint64_t value);
void append_number(std::string& out, std::uint32_t field, std::uint64_t value);
void append_real(std::string& out, std::uint32_t field, float value);
void append_bytes(std::string& out, std::uint32_t field, std::string_view bytes);

}  // namespace fenestra::onnx

// A strict reader of JSON (RFC 8259) for the headers of files. Not installed, and not a document
// model: the caller says what must come next, and everything else is refused with its byte.
//
// Stricter than most: numbers that are asked for are whole and exact to 64 bits, an object has no
// key twice, text is UTF-8 without lone surrogates, nesting is limited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace fenestra::io {

/// Where the first byte is that is not UTF-8; npos when all of it is.
std::size_t first_not_utf8(std::string_view text);

/// A JSON string, with its quotes: control characters, quotes and backslashes escaped, all else as
/// it is.
std::string json_string(std::string_view text);

class JsonReader {
 public:
  static constexpr int kMostNested = 16;

  /// `file` and the offset of the text in it are for messages. The text must be UTF-8 and outlive
  /// the reader.
  JsonReader(std::string_view text,
             std::string_view file,
             std::uint64_t offset,
             int most_nested = kMostNested);

  /// `member` reads the value of each key.
  void object(const std::function<void(const std::string& key)>& member);
  /// `element` reads each element.
  void array(const std::function<void()>& element);
  std::string string();
  std::uint64_t whole_number();
  /// Any number that a double can come near.
  double number();
  bool boolean();
  /// The first character of the next value, which says what it is; 0 at the end.
  char next() { return peek(); }
  /// Any value: checked and dropped.
  void skip();
  /// Nothing may follow but white space.
  void end();

  /// Of the next token, in the file.
  std::uint64_t offset();
  [[noreturn]] void refuse_here(std::string_view expected);

 private:
  char peek();
  void take(char c, std::string_view expected);
  void nest();
  void append_escape(std::string& out);
  std::uint32_t four_hex_digits();
  void skip_number();

  std::string_view text_;
  std::string_view file_;
  std::uint64_t offset_;
  int most_nested_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace fenestra::io

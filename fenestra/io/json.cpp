// The reader of JSON, one token after the other.
#include <fenestra/io/json.hpp>
#include <fenestra/io/source.hpp>

#include <charconv>
#include <cstdio>
#include <set>
#include <system_error>

namespace fenestra::io {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, std::uint32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80U | ((code >> shift) & 0x3fU)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0U | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0U | (code >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0U | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

std::size_t first_not_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i);
    const std::size_t tails = lead < 0x80                    ? 0
                              : lead >= 0xc2 && lead <= 0xdf ? 1
                              : lead >= 0xe0 && lead <= 0xef ? 2
                              : lead >= 0xf0 && lead <= 0xf4 ? 3
                                                             : 4;
    // The second byte rules out overlong forms, surrogates and what is above U+10FFFF.
    const unsigned low = lead == 0xe0 ? 0xa0U : lead == 0xf0 ? 0x90U : 0x80U;
    const unsigned high = lead == 0xed ? 0x9fU : lead == 0xf4 ? 0x8fU : 0xbfU;
    bool is_good = tails != 4 && (tails == 0 || (byte(i + 1) >= low && byte(i + 1) <= high));
    for (std::size_t tail = 2; tail <= tails; ++tail) {
      is_good = is_good && (byte(i + tail) & 0xc0U) == 0x80U;
    }
    if (!is_good) {
      return i;
    }
    i += tails + 1;
  }
  return std::string_view::npos;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    constexpr std::string_view kShort = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    if (const std::size_t found = kShort.find(c); found != std::string_view::npos) {
      out += '\\';
      out += kLetters[found];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned char>(c));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}

JsonReader::JsonReader(std::string_view text,
                       std::string_view file,
                       std::uint64_t offset,
                       int most_nested)
    : text_(text), file_(file), offset_(offset), most_nested_(most_nested) {}

char JsonReader::peek() {
  while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != text_.npos) {
    ++at_;
  }
  return at_ < text_.size() ? text_[at_] : '\0';
}

std::uint64_t JsonReader::offset() {
  peek();
  return offset_ + at_;
}

void JsonReader::refuse_here(std::string_view expected) {
  const std::string_view rest = text_.substr(at_, 24);
  refuse(file_, offset_ + at_, expected, rest.empty() ? "the end of the header" : shown(rest));
}

void JsonReader::take(char c, std::string_view expected) {
  if (peek() != c || at_ == text_.size()) {
    refuse_here(expected);
  }
  ++at_;
}

void JsonReader::nest() {
  if (++depth_ > most_nested_) {
    refuse(file_,
           offset_ + at_,
           "at most " + std::to_string(most_nested_) + " levels of nesting",
           "one more");
  }
}

void JsonReader::object(const std::function<void(const std::string&)>& member) {
  take('{', "an object, '{'");
  nest();
  std::set<std::string> keys;
  if (peek() != '}') {
    do {
      const std::uint64_t place = offset();
      const auto [key, is_new] = keys.insert(string());
      if (!is_new) {
        refuse(file_, place, "every key once", shown(*key) + " for the second time");
      }
      take(':', "':'");
      member(*key);
    } while (peek() == ',' && ++at_ != 0);
  }
  take('}', "',' or '}'");
  --depth_;
}

void JsonReader::array(const std::function<void()>& element) {
  take('[', "an array, '['");
  nest();
  if (peek() != ']') {
    do {
      element();
    } while (peek() == ',' && ++at_ != 0);
  }
  take(']', "',' or ']'");
  --depth_;
}

std::string JsonReader::string() {
  take('"', "a string in double quotes");
  std::string out;
  for (;;) {
    if (at_ == text_.size() || static_cast<unsigned char>(text_[at_]) < 0x20) {
      refuse_here("the end of a string, '\"', with control characters escaped");
    }
    const char c = text_[at_++];
    if (c == '"') {
      return out;
    }
    if (c == '\\') {
      append_escape(out);
    } else {
      out += c;
    }
  }
}

void JsonReader::append_escape(std::string& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  if (const std::size_t found = kLetters.find(c); c != '\0' && found != std::string_view::npos) {
    ++at_;
    out += kMeanings[found];
    return;
  }
  if (c != 'u') {
    refuse_here("one of \" \\ / b f n r t u after a backslash");
  }
  ++at_;
  std::uint32_t code = four_hex_digits();
  if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
    at_ += 2;
    const std::uint32_t low = four_hex_digits();
    code =
        low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : code;
  }
  if (code >= 0xd800 && code < 0xe000) {
    refuse(file_, offset_ + at_, "surrogates in pairs", "one that is alone");
  }
  append_utf8(out, code);
}

std::uint32_t JsonReader::four_hex_digits() {
  const std::string_view digits = text_.substr(at_, 4);
  std::uint32_t code = 0;
  const auto [end, failure] =
      std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (digits.size() != 4 || failure != std::errc() || end != digits.data() + 4) {
    refuse_here("four hexadecimal digits");
  }
  at_ += 4;
  return code;
}

std::uint64_t JsonReader::whole_number() {
  peek();
  const std::string_view rest = text_.substr(at_);
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  const auto length = static_cast<std::size_t>(end - rest.data());
  const bool goes_on =
      length < rest.size() && std::string_view("+-.eE").find(rest[length]) != rest.npos;
  if (failure != std::errc() || goes_on || (length > 1 && rest[0] == '0')) {
    refuse_here("a whole number from 0 to 2^64-1");
  }
  at_ += length;
  return value;
}

void JsonReader::skip_number() {
  const auto digits = [&] {
    if (at_ == text_.size() || !is_digit(text_[at_])) {
      refuse_here("a value");
    }
    while (at_ < text_.size() && is_digit(text_[at_])) {
      ++at_;
    }
  };
  const auto next_is = [&](std::string_view any) {
    return at_ < text_.size() && any.find(text_[at_]) != any.npos;
  };
  at_ += next_is("-") ? 1 : 0;
  if (next_is("0")) {
    ++at_;
  } else {
    digits();
  }
  if (next_is(".")) {
    ++at_;
    digits();
  }
  if (next_is("eE")) {
    ++at_;
    at_ += next_is("+-") ? 1 : 0;
    digits();
  }
}

double JsonReader::number() {
  peek();
  const std::size_t begin = at_;
  skip_number();
  double value = 0;
  const char* end = text_.data() + at_;
  const auto [stopped, failure] = std::from_chars(text_.data() + begin, end, value);
  if (failure != std::errc() || stopped != end) {
    at_ = begin;
    refuse_here("a number within the range of a double");
  }
  return value;
}

bool JsonReader::boolean() {
  for (const std::string_view word : {"true", "false"}) {
    if (peek() == word[0] && text_.substr(at_, word.size()) == word) {
      at_ += word.size();
      return word == "true";
    }
  }
  refuse_here("true or false");
}

void JsonReader::skip() {
  switch (peek()) {
    case '{': return object([this](const std::string&) { skip(); });
    case '[': return array([this] { skip(); });
    case '"': string(); return;
    default: break;
  }
  for (const std::string_view word : {"true", "false", "null"}) {
    if (text_.substr(at_, word.size()) == word) {
      at_ += word.size();
      return;
    }
  }
  skip_number();
}

void JsonReader::end() {
  peek();
  if (at_ != text_.size()) {
    refuse_here("nothing after the last '}' but white space");
  }
}

}  // namespace fenestra::io

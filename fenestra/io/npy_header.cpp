// Reading the header of a .npy file: see npy_header.hpp.
#include <fenestra/io/npy_header.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>

namespace fenestra::io {

namespace {

/// The limit of version 1. Later versions have more only for structured types, which are no
/// numbers.
constexpr std::uint64_t kMostText = 65535;

constexpr std::string_view kFix = "write it with numpy.save";

constexpr std::pair<std::string_view, NumberType> kTypes[] = {
    {"f2", NumberType::f16},
    {"f4", NumberType::f32},
    {"f8", NumberType::f64},
    {"i1", NumberType::i8},
    {"i2", NumberType::i16},
    {"i4", NumberType::i32},
    {"i8", NumberType::i64},
    {"u1", NumberType::u8},
    {"u2", NumberType::u16},
    {"u4", NumberType::u32},
    {"u8", NumberType::u64},
    {"b1", NumberType::boolean},
};

/// Reads the dictionary from left to right.
class Reader {
 public:
  Reader(std::string_view file, std::string_view text, std::uint64_t text_at)
      : file_(file), text_(text), text_at_(text_at) {}

  NpyHeader read() {
    expect('{', "'{', which opens the header");
    while (!accept('}')) {
      read_entry();
      if (!accept(',')) {
        expect('}', "',' or '}' after an entry");
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size()) {
      fail("spaces up to the end of the header");
    }
    for (const Key& key : keys_) {
      if (!key.seen) {
        refuse(file_,
               text_at_ + text_.size(),
               "the key '" + std::string(key.name) + "'",
               "a header without it",
               kFix);
      }
    }
    return header_;
  }

 private:
  struct Key {
    std::string_view name;
    void (Reader::*read)();
    bool seen = false;
  };

  [[noreturn]] void fail(std::string_view expected, std::string_view fix = kFix) const {
    refuse(file_,
           text_at_ + at_,
           expected,
           at_ < text_.size() ? shown(text_.substr(at_)) : "the end of the header",
           fix);
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
      ++at_;
    }
  }
  bool accept(char c) {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == c) {
      ++at_;
      return true;
    }
    return false;
  }
  void expect(char c, std::string_view expected) {
    if (!accept(c)) {
      fail(expected);
    }
  }
  /// A text in quotes of either kind, without escapes: no key and no number type has any.
  std::string_view quoted(std::string_view expected) {
    skip_spaces();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') {
      fail(expected);
    }
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) {
      fail("a text with a closing quote");
    }
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }

  void read_entry() {
    skip_spaces();
    const std::size_t begin = at_;
    const std::string_view name = quoted("a key in quotes");
    const auto key =
        std::find_if(keys_.begin(), keys_.end(), [&](const Key& k) { return k.name == name; });
    if (key == keys_.end() || key->seen) {
      at_ = begin;
      fail("the keys 'descr', 'fortran_order' and 'shape', once each");
    }
    key->seen = true;
    expect(':', "':' after a key");
    (this->*key->read)();
  }

  void read_type() {
    skip_spaces();
    const std::size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '[') {
      fail("one number type for all elements, such as '<f4', not a structured one",
           "save each field as an array of its own: numpy.save(path, array['field'])");
    }
    const std::string_view type = quoted("a number type in quotes, such as '<f4'");
    const auto fail_at_type = [&](std::string_view expected, std::string_view fix) {
      at_ = begin;
      fail(expected, fix);
    };
    if (type.ends_with('O')) {
      fail_at_type(
          "numbers, not an array of Python objects (such an array is a pickle: to load it would "
          "run whatever code the file brings, so it is never read)",
          "make numbers of it before saving: numpy.save(path, numpy.array(list(array), "
          "dtype='float32'))");
    }
    const char order = type.empty() ? '\0' : type[0];
    const auto* const known =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& k) {
          return !type.empty() && k.first == type.substr(1);
        });
    // Bytes have no order; NumPy writes '|' there.
    if (known == std::end(kTypes) ||
        (order != '<' && order != '>' && !(order == '|' && width_of(known->second) == 1))) {
      fail_at_type(
          "'<f2', '<f4', '<f8', '<i2', '<i4', '<i8', '<u2', '<u4', '<u8', the same with '>', "
          "'|i1', "
          "'|u1' or '|b1'",
          "numpy.save(path, array.astype('float32'))");
    }
    header_.type = known->second;
    header_.order = order == '>' ? std::endian::big : std::endian::little;
  }

  void read_order() {
    skip_spaces();
    const std::string_view rest = text_.substr(at_);
    for (const std::string_view word : {"True", "False"}) {
      if (rest.starts_with(word)) {
        header_.fortran = word == "True";
        at_ += word.size();
        return;
      }
    }
    fail("True or False");
  }

  void read_shape() {
    expect('(', "a shape in parentheses");
    while (!accept(')')) {
      header_.shape.push_back(extent());
      if (accept(',')) {
        continue;
      }
      if (header_.shape.rank() == 1) {
        fail("',' after the only extent, as Python writes it");
      }
      expect(')', "',' or ')' after an extent");
      return;
    }
  }

  Index extent() {
    skip_spaces();
    if (header_.shape.rank() == kMaxRank) {
      fail("at most " + std::to_string(kMaxRank) + " extents", "reshape it before saving");
    }
    Index value = 0;
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    const auto [stopped, failure] = std::from_chars(begin, end, value);
    if (failure == std::errc::result_out_of_range) {
      fail("an extent of at most 9223372036854775807");
    }
    if (failure != std::errc() || value < 0) {
      fail("an extent, 0 or more");
    }
    at_ += static_cast<std::size_t>(stopped - begin);
    // Python 2 wrote 3L.
    if (at_ < text_.size() && text_[at_] == 'L') {
      ++at_;
    }
    return value;
  }

  std::string_view file_;
  std::string_view text_;
  std::uint64_t text_at_;
  std::size_t at_ = 0;
  NpyHeader header_;
  std::array<Key, 3> keys_{{{"descr", &Reader::read_type},
                            {"fortran_order", &Reader::read_order},
                            {"shape", &Reader::read_shape}}};
};

/// Where the header's text begins, and its length.
struct TextPlace {
  std::uint64_t begin;
  std::uint64_t length;
};

TextPlace find_text(const ReadBytes& read, std::uint64_t size, std::string_view file) {
  std::array<char, 12> bytes{};
  std::size_t there = 0;
  const auto read_up_to = [&](std::size_t end) {
    const auto more = static_cast<std::size_t>(std::min<std::uint64_t>(size, end)) - there;
    read(std::as_writable_bytes(std::span(bytes).subspan(there, more)));
    there += more;
  };
  read_up_to(10);
  const std::string_view start(bytes.data(), there);
  if (!start.starts_with(kNpyMagic)) {
    refuse(file,
           0,
           "the magic string \\x93NUMPY",
           start.empty() ? "an empty file" : shown(start),
           start.starts_with("PK") ? "an .npz is an archive of arrays: load_npz reads it"
                                   : "the path of a file that numpy.save wrote");
  }
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i]));
  };
  const auto require = [&](std::size_t count, std::string_view expected) {
    if (there < count) {
      refuse(file, there, expected, "the end of the file", kFix);
    }
  };
  require(8, "the version of the format");
  if (byte(6) < 1 || byte(6) > 3 || byte(7) != 0) {
    refuse(file,
           6,
           "format version 1.0, 2.0 or 3.0",
           std::to_string(byte(6)) + "." + std::to_string(byte(7)),
           kFix);
  }
  const std::size_t begin = byte(6) == 1 ? 10 : 12;
  read_up_to(begin);
  require(begin, "the length of the header");
  const std::uint64_t length =
      byte(8) + (byte(9) << 8) + (begin == 10 ? 0 : (byte(10) << 16) + (byte(11) << 24));
  if (length > size - begin) {
    refuse(file,
           8,
           "a header of at most " + std::to_string(size - begin) + " bytes, which is what follows",
           std::to_string(length),
           kFix);
  }
  if (length > kMostText) {
    refuse(file,
           8,
           "a header of at most " + std::to_string(kMostText) + " bytes",
           std::to_string(length),
           kFix);
  }
  return {begin, length};
}

}  // namespace

NpyHeader read_npy_header(const ReadBytes& read, std::uint64_t size, std::string_view file) {
  const TextPlace place = find_text(read, size, file);
  std::string text(static_cast<std::size_t>(place.length), '\0');
  read(std::as_writable_bytes(std::span(text)));
  NpyHeader header = Reader(file, text, place.begin).read();
  header.begin = place.begin + place.length;

  const auto count = header.shape.elements();
  if (!count) {
    refuse(file, place.begin, "a shape that fits into memory", to_string(header.shape), kFix);
  }
  header.count = *count;
  // At most 2^53 elements of 8 bytes: no overflow.
  const auto needed = static_cast<std::uint64_t>(header.count * width_of(header.type));
  const std::uint64_t there = size - header.begin;
  if (there != needed) {
    refuse(file,
           header.begin,
           std::to_string(needed) + " bytes of numbers for " + to_string(header.shape) +
               ", and then the end of the file",
           std::to_string(there) + " bytes",
           there < needed ? "the whole file: this one was cut" : "a file with one array only");
  }
  return header;
}

template <class T>
std::string npy_header(const Shape& shape) {
  std::string text = "{'descr': '";
  text += std::is_same_v<T, float> ? "<f4" : std::is_same_v<T, double> ? "<f8" : "<i8";
  text += "', 'fortran_order': False, 'shape': (";
  for (const Index extent : shape) {
    text += std::to_string(extent) + ", ";
  }
  text += "), }";
  // The numbers start at a multiple of 64 bytes, as the format asks.
  text.append((64 - (kNpyMagic.size() + 4 + text.size() + 1) % 64) % 64, ' ');
  text += '\n';
  std::string header(kNpyMagic);
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

template std::string npy_header<float>(const Shape&);
template std::string npy_header<double>(const Shape&);
template std::string npy_header<Index>(const Shape&);

}  // namespace fenestra::io

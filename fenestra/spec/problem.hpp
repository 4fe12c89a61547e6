// Problem strings: `x=2x4x9x8 w=6x4x3x2 stride=2,1 padding=1:0,0:1`, the one text form of a
// geometry.
//
// Tests, the bench and the command line all speak it, so a failure printed by one is reproduced by
// another. A `Problem` is the parsed list of fields; the operators read the fields they know, and
// an unread field is an error.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/spec/options.hpp>
#include <fenestra/spec/window.hpp>
#include <fenestra/tensor/layout.hpp>
#include <fenestra/tensor/shape.hpp>

#include <charconv>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

class Problem {
 public:
  explicit Problem(std::string_view text) : text_(text) {
    std::size_t at = 0;
    while (at < text_.size()) {
      if (text_[at] == ' ') {
        ++at;
        continue;
      }
      const std::size_t end = std::min(text_.find(' ', at), text_.size());
      const std::size_t equals = text_.find('=', at);
      if (equals == std::string::npos || equals >= end || equals == at) {
        fail(at, "key=value", text_.substr(at, end - at));
      }
      Field field{text_.substr(at, equals - at),
                  text_.substr(equals + 1, end - equals - 1),
                  equals + 1,
                  false};
      if (field.value.empty()) {
        fail(field.at, "a value for " + field.key, "nothing");
      }
      if (find(field.key) != nullptr) {
        fail(at, "each key once", field.key + " a second time");
      }
      fields_.push_back(std::move(field));
      at = end;
    }
  }

  bool has(std::string_view key) const { return find(key) != nullptr; }

  Shape shape(std::string_view key) {
    Cursor c = required(key);
    Shape shape;
    if (c.skip_word("scalar")) {
      return shape;
    }
    do {
      if (shape.rank() == kMaxRank) {
        c.fail("at most 16 extents");
      }
      shape.push_back(c.integer());
    } while (c.skip('x'));
    c.end("an extent or x");
    return shape;
  }

  PerAxis per_axis(std::string_view key, const PerAxis& otherwise) {
    if (!has(key)) {
      return otherwise;
    }
    Cursor c = required(key);
    const Index first = c.integer();
    if (c.at_end()) {
      return first;
    }
    PerAxis list;
    list.push_back(first);
    while (c.skip(',')) {
      append(c, list);
    }
    c.end("a number or a comma");
    return list;
  }

  /// As `per_axis`, but a single number is a list of one: it fixes the rank.
  PerAxis axis_list(std::string_view key) {
    Cursor c = required(key);
    PerAxis list;
    do {
      append(c, list);
    } while (c.skip(','));
    c.end("a number or a comma");
    return list;
  }

  Padding padding(std::string_view key) {
    if (!has(key)) {
      return {};
    }
    Cursor c = required(key);
    if (c.skip_word("same")) {
      return same;
    }
    if (c.skip_word("valid")) {
      return valid;
    }
    const Index first = c.integer();
    if (c.at_end()) {
      return first;
    }
    Padding list;
    list.low = list.high = PerAxis();
    const auto add = [&](Index low) {
      const Index high = c.skip(':') ? c.integer() : low;
      if (list.low.count == kMaxSpatialRank) {
        c.fail("at most 8 axes");
      }
      list.push_back({low, high});
    };
    add(first);
    while (c.skip(',')) {
      add(c.integer());
    }
    c.end("a number, low:high, or a comma");
    return list;
  }

  Index integer(std::string_view key, Index otherwise) {
    if (!has(key)) {
      return otherwise;
    }
    Cursor c = required(key);
    const Index value = c.integer();
    c.end("an integer");
    return value;
  }

  OptionalIndex optional_integer(std::string_view key) {
    return has(key) ? OptionalIndex(integer(key, 0)) : OptionalIndex();
  }

  double real(std::string_view key, double otherwise) {
    if (!has(key)) {
      return otherwise;
    }
    Cursor c = required(key);
    const double value = c.real();
    c.end("a number");
    return value;
  }

  /// "2,-1,0": any count of integers; none where the key is absent.
  std::vector<Index> integers(std::string_view key) {
    return list<Index>(key, [](Cursor& c) { return c.integer(); });
  }

  /// "1.5,2": as `integers`, of numbers.
  std::vector<double> reals(std::string_view key) {
    return list<double>(key, [](Cursor& c) { return c.real(); });
  }

  /// The position of the field's value among `choices`.
  template <std::size_t n>
  int choice(std::string_view key, const std::string_view (&choices)[n]) {
    Cursor c = required(key);
    std::string all;
    for (std::size_t i = 0; i < n; ++i) {
      if (c.skip_word(choices[i])) {
        return static_cast<int>(i);
      }
      all += (i > 0 ? " or " : "") + std::string(choices[i]);
    }
    c.fail(all);
  }

  bool flag(std::string_view key, bool otherwise) {
    static constexpr std::string_view kChoices[] = {"false", "true", "0", "1"};
    return has(key) ? choice(key, kChoices) % 2 == 1 : otherwise;
  }

  Layout layout() {
    static constexpr std::string_view kChoices[] = {"channels_first", "channels_last"};
    return has("layout") ? static_cast<Layout>(choice("layout", kChoices)) : Layout::channels_first;
  }

  PadCells pad_cells() {
    static constexpr std::string_view kChoices[] = {"ignore", "zero"};
    return has("pad_cells") ? static_cast<PadCells>(choice("pad_cells", kChoices))
                            : PadCells::ignore;
  }

  /// To be called after reading: complains of the first field nobody asked for.
  void finish(std::string_view op) const {
    for (const Field& field : fields_) {
      if (!field.used) {
        fail(field.at - field.key.size() - 1, "a field of " + std::string(op), field.key);
      }
    }
  }

 private:
  struct Field {
    std::string key;
    std::string value;
    std::size_t at;  ///< offset of the value in the text
    bool used;
  };

  /// Reads one field's value from left to right.
  class Cursor {
   public:
    Cursor(const Problem& problem, const Field& field) : problem_(problem), field_(field) {}

    bool at_end() const { return at_ == field_.value.size(); }
    bool skip(char c) {
      if (at_end() || field_.value[at_] != c) {
        return false;
      }
      ++at_;
      return true;
    }
    bool skip_word(std::string_view word) {
      if (field_.value != word) {
        return false;
      }
      at_ = field_.value.size();
      return true;
    }
    Index integer() { return number<Index>("an integer that fits into 64 bits"); }
    double real() { return number<double>("a number"); }
    void end(const std::string& expected) const {
      if (!at_end()) {
        fail(expected);
      }
    }
    [[noreturn]] void fail(const std::string& expected) const {
      problem_.fail(field_.at + at_, expected, at_end() ? "the end" : field_.value.substr(at_));
    }

   private:
    template <class Number>
    Number number(const std::string& expected) {
      Number value{};
      const char* begin = field_.value.data() + at_;
      const auto [next, failure] =
          std::from_chars(begin, field_.value.data() + field_.value.size(), value);
      if (failure != std::errc()) {
        fail(expected);
      }
      at_ += static_cast<std::size_t>(next - begin);
      return value;
    }

    const Problem& problem_;
    const Field& field_;
    std::size_t at_ = 0;
  };

  static void append(Cursor& c, PerAxis& list) {
    if (list.count == kMaxSpatialRank) {
      c.fail("at most 8 values");
    }
    list.push_back(c.integer());
  }

  const Field* find(std::string_view key) const {
    for (const Field& field : fields_) {
      if (field.key == key) {
        return &field;
      }
    }
    return nullptr;
  }

  Cursor required(std::string_view key) {
    for (Field& field : fields_) {
      if (field.key == key) {
        field.used = true;
        return Cursor(*this, field);
      }
    }
    fail(text_.size(), std::string(key) + "=...", "the end");
  }

  template <class Number, class Read>
  std::vector<Number> list(std::string_view key, Read&& read) {
    std::vector<Number> values;
    if (!has(key)) {
      return values;
    }
    Cursor c = required(key);
    do {
      values.push_back(read(c));
    } while (c.skip(','));
    c.end("a number or a comma");
    return values;
  }

  [[noreturn]] void fail(std::size_t at,
                         const std::string& expected,
                         const std::string& found) const {
    throw Error(ErrorCode::bad_problem,
                "problem \"" + text_ + "\": at byte " + std::to_string(at) + ": expected " +
                    expected + ", found " + found);
  }

  std::string text_;
  std::vector<Field> fields_;
};

// The printing side. A printed geometry parses back to an equal one.

/// "2x4x9x8"
inline std::string problem_text(const Shape& shape) {
  if (shape.rank() == 0) {
    return "scalar";
  }
  std::string text;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    text += (axis > 0 ? "x" : "") + std::to_string(shape[axis]);
  }
  return text;
}

/// "2,-1,0", of any range of integers; reads back with `integers`.
template <class Range>
std::string list_text(const Range& values) {
  std::string text;
  for (const auto& value : values) {
    text += (text.empty() ? "" : ",") + std::to_string(value);
  }
  return text;
}

/// "2,1", from one member of every axis.
inline std::string problem_text(const Windows& windows, Index WindowAxis::*member) {
  std::string text;
  for (int axis = 0; axis < windows.rank(); ++axis) {
    text += (axis > 0 ? "," : "") + std::to_string(windows[axis].*member);
  }
  return text;
}

/// "1:0,2": low:high, or one number where the sides are equal.
inline std::string padding_text(const Windows& windows) {
  std::string text;
  for (int axis = 0; axis < windows.rank(); ++axis) {
    const WindowAxis& a = windows[axis];
    text += (axis > 0 ? "," : "") + std::to_string(a.pad_low);
    if (a.pad_low != a.pad_high) {
      text += ":" + std::to_string(a.pad_high);
    }
  }
  return text;
}

/// The shortest text that reads back as the same double.
inline std::string problem_text(double value) {
  char buffer[64];
  const auto [end, failure] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return failure == std::errc() ? std::string(buffer, end) : std::string("nan");
}

}  // namespace fenestra

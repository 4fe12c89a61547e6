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
#include <concepts>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
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
  int choice(std::string_view key, std::span<const std::string_view> choices) {
    Cursor c = required(key);
    std::string all;
    for (std::size_t i = 0; i < choices.size(); ++i) {
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

  /// The fields of an options struct, see FieldInfo; all but the one called `but`.
  template <class O>
  O options(std::string_view but = {}) {
    O result{};
    O::fields([&](std::string_view name, auto member, const FieldInfo& info) {
      if (info.required) {
        required(name);
      }
      if (!info.help.empty() && name != but && has(name)) {
        read(name, result.*member);
      }
    });
    return result;
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

  void read(std::string_view key, bool& to) { to = flag(key, to); }
  void read(std::string_view key, Index& to) { to = integer(key, to); }
  void read(std::string_view key, double& to) { to = real(key, to); }
  void read(std::string_view key, PerAxis& to) { to = per_axis(key, to); }
  void read(std::string_view key, Padding& to) { to = padding(key); }
  void read(std::string_view key, OptionalIndex& to) { to = optional_integer(key); }
  void read(std::string_view key, int& to) { to = axis(integer(key, to)); }
  void read(std::string_view key, AxisList& to) {
    const PerAxis axes = axis_list(key);
    for (int i = 0; i < axes.count; ++i) {
      to.push_back(axis(axes[i]));
    }
  }
  template <class V>
  void read(std::string_view key, V& to) {
    if constexpr (std::is_enum_v<V>) {
      to = static_cast<V>(choice(key, enum_names<V>));
    } else {  // a number for all axes or a list of them
      const std::vector<double> numbers = reals(key);
      to = numbers.size() == 1 ? V(numbers[0]) : V();
      for (std::size_t i = 0; i < numbers.size() && numbers.size() > 1; ++i) {
        to.push_back(numbers[i]);
      }
    }
  }

  /// An axis that no tensor has is read as one of them.
  static int axis(Index value) {
    return value >= -kMaxRank && value < kMaxRank ? static_cast<int>(value) : kMaxRank;
  }

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

/// One member of every axis, as the option that it came from. A list is never the default, so what
/// windows have is always printed.
constexpr PerAxis per_axis_of(const Windows& windows, Index WindowAxis::*member) {
  PerAxis list;
  for (int axis = 0; axis < windows.rank(); ++axis) {
    list.push_back(windows[axis].*member);
  }
  return list;
}
constexpr Padding padding_of(const Windows& windows) {
  Padding padding;
  padding.low = per_axis_of(windows, &WindowAxis::pad_low);
  padding.high = per_axis_of(windows, &WindowAxis::pad_high);
  return padding;
}

/// The shortest text that reads back as the same double.
inline std::string problem_text(double value) {
  char buffer[64];
  const auto [end, failure] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return failure == std::errc() ? std::string(buffer, end) : std::string("nan");
}

/// The value of a field; empty where it has none.
template <class V>
std::string field_text(const V& value) {
  if constexpr (std::is_same_v<V, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_enum_v<V>) {
    return std::string(enum_names<V>[static_cast<std::size_t>(value)]);
  } else if constexpr (std::integral<V>) {
    return std::to_string(value);
  } else if constexpr (std::is_same_v<V, double>) {
    return problem_text(value);
  } else if constexpr (std::is_same_v<V, AxisList>) {
    return list_text(value);
  } else if constexpr (std::is_same_v<V, OptionalIndex>) {
    return value.given ? std::to_string(value.value) : "";
  } else if constexpr (std::is_same_v<V, Padding>) {
    std::string text = value.is_same ? "same" : field_text(value.low[0]);
    for (int axis = 0; axis < value.low.count && !value.is_same; ++axis) {
      text = (axis > 0 ? text + "," : "") + field_text(value.low[axis]);
      text += value.low[axis] == value.high[axis] ? "" : ":" + field_text(value.high[axis]);
    }
    return text;
  } else {  // one for all axes, or one for each
    std::string text = value.is_given() ? field_text(value[0]) : "";
    for (int axis = 1; axis < value.count; ++axis) {
      text += "," + field_text(value[axis]);
    }
    return text;
  }
}

/// " axes=0,2 keep=true": fields of an options struct that are not what they are by default, and
/// those that are always printed; all but the one called `but`, or that called `only` alone.
template <class O>
std::string fields_text(const O& options, std::string_view but = {}, std::string_view only = {}) {
  std::string text;
  const O defaults{};
  O::fields([&](std::string_view name, auto member, const FieldInfo& info) {
    const bool is_meant = name != but && (only.empty() || name == only);
    const bool is_default = options.*member == defaults.*member;
    if (!info.help.empty() && is_meant && (info.always_printed || !is_default)) {
      text += " " + std::string(name) + "=" + field_text(options.*member);
    }
  });
  return text;
}

/// Equal geometries print alike, so what is printed is what is hashed.
template <class Geometry>
  requires requires(const Geometry& g) {
    { to_string(g) } -> std::same_as<std::string>;
  }
std::size_t hash_value(const Geometry& g) {
  return std::hash<std::string>{}(to_string(g));
}

// --- The fields of an options struct, for people ------------------------------

struct ProblemField {
  std::string_view name;
  std::string_view help;
  std::string otherwise;                  ///< what is taken where it is left out
  std::vector<std::string> choices = {};  ///< the words that it may be, if it is a word
  bool is_required = false;
};

template <class O>
std::vector<ProblemField> problem_fields() {
  std::vector<ProblemField> list;
  const O defaults{};
  O::fields([&]<class V>(std::string_view name, V O::*member, const FieldInfo& info) {
    if (info.help.empty()) {
      return;
    }
    ProblemField field{name, info.help, std::string(info.otherwise)};
    field.is_required = info.required;
    if (field.otherwise.empty() && !info.required) {
      field.otherwise = field_text(defaults.*member);
    }
    if constexpr (std::is_enum_v<V>) {
      field.choices.assign(enum_names<V>.begin(), enum_names<V>.end());
    }
    list.push_back(std::move(field));
  });
  return list;
}

}  // namespace fenestra

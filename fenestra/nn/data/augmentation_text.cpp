// Augmentation as text: what the command line takes and a report prints.
#include <fenestra/nn/data/augmentation.hpp>

#include <fenestra/base/nearest.hpp>

#include <array>
#include <charconv>
#include <string>
#include <vector>

namespace fenestra::nn {

namespace {

/// Any name to a number that is read and written as text; `crop` is a shape and stands alone.
struct Field {
  std::string_view name;
  Index Augmentation::*whole = nullptr;
  double Augmentation::*real = nullptr;
};
constexpr std::array<Field, 7> kFields = {{
    {"padding", &Augmentation::padding, nullptr},
    {"flip", nullptr, &Augmentation::flip},
    {"flip_vertical", nullptr, &Augmentation::flip_vertical},
    {"shift", &Augmentation::shift, nullptr},
    {"rotate", nullptr, &Augmentation::rotate},
    {"cut_out", &Augmentation::cut_out, nullptr},
    {"noise", nullptr, &Augmentation::noise},
}};

template <class Number>
Number parse_number(std::string_view field, std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Error(ErrorCode::invalid_option,
                "augmentation: " + std::string(field) + " = \"" + std::string(text) +
                    "\"\n  fix: a number, e.g. " + std::string(field) +
                    (field == "crop" ? "=24x24" : "=2"));
  }
  return number;
}

template <class Number>
std::string number_text(Number number) {
  char digits[64];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

/// Calls `piece` with what is between the separators.
template <class Piece>
void for_each_piece(std::string_view text, char separator, Piece&& piece) {
  for (;;) {
    const std::size_t end = text.find(separator);
    piece(text.substr(0, end));
    if (end == std::string_view::npos) {
      return;
    }
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Augmentation parse_augmentation(std::string_view text) {
  Augmentation result;
  if (text.empty() || text == "none") {
    return result;
  }
  for_each_piece(text, ',', [&](std::string_view piece) {
    const std::size_t equals = piece.find('=');
    const std::string_view name = piece.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : piece.substr(equals + 1);
    if (name == "crop") {
      result.crop = {};
      for_each_piece(value, 'x', [&](std::string_view extent) {
        result.crop.push_back(parse_number<Index>(name, extent));
      });
      return;
    }
    for (const Field& field : kFields) {
      if (field.name == name && field.whole != nullptr) {
        result.*field.whole = parse_number<Index>(name, value);
        return;
      }
      if (field.name == name) {
        result.*field.real = parse_number<double>(name, value);
        return;
      }
    }
    std::vector<std::string_view> names;
    for (const Field& field : kFields) {
      names.push_back(field.name);
    }
    names.emplace_back("crop");
    throw Error(ErrorCode::unknown_choice, unknown_name("augmentation", name, names));
  });
  return result;
}

std::string to_string(const Augmentation& how) {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value) {
    text += (text.empty() ? "" : ",") + std::string(name) + "=" + value;
  };
  for (const Field& field : kFields) {
    if (field.whole != nullptr && how.*field.whole != 0) {
      add(field.name, number_text(how.*field.whole));
    }
    if (field.real != nullptr && how.*field.real != 0) {
      add(field.name, number_text(how.*field.real));
    }
  }
  if (how.crop.rank() > 0) {
    std::string extents;
    for (const Index extent : how.crop) {
      extents += (extents.empty() ? "" : "x") + std::to_string(extent);
    }
    add("crop", extents);
  }
  return text.empty() ? "none" : text;
}

}  // namespace fenestra::nn

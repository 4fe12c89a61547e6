#include <fenestra/base/text.hpp>
#include <fenestra/cli/units.hpp>
#include <fenestra/cli/usage_error.hpp>

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace fenestra::cli {

namespace {

constexpr std::pair<std::string_view, std::uint64_t> kUnits[] = {
    {"", 1},
    {"b", 1},
    {"k", 1'000},
    {"kb", 1'000},
    {"m", 1'000'000},
    {"mb", 1'000'000},
    {"g", 1'000'000'000},
    {"gb", 1'000'000'000},
    {"t", 1'000'000'000'000},
    {"tb", 1'000'000'000'000},
    {"kib", std::uint64_t{1} << 10U},
    {"mib", std::uint64_t{1} << 20U},
    {"gib", std::uint64_t{1} << 30U},
    {"tib", std::uint64_t{1} << 40U},
};

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw UsageError("\"" + std::string(text) + "\" is not a number of bytes: " + why +
                   "; write 300, 64kB, 10MB, 1.5GiB");
}

/// The number of bytes in one of the unit.
std::uint64_t unit_size(std::string_view text, std::string_view unit) {
  std::string lower;
  for (const char c : unit) {
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (const auto& [name, size] : kUnits) {
    if (name == lower) {
      return size;
    }
  }
  refuse(text, "\"" + std::string(unit) + "\" is no unit");
}

std::string two_digits(std::int64_t number) {
  return (number < 10 ? "0" : "") + std::to_string(number);
}

}  // namespace

std::string time_text(double seconds) {
  // So long that a double has no single seconds any more is not a time either.
  if (!(seconds >= 0 && seconds < 1e15)) {
    return "-";
  }
  if (seconds < 0.9995e-3) {
    return decimal(seconds * 1e6, 0) + " us";
  }
  if (seconds < 0.9995) {
    return decimal(seconds * 1e3, seconds < 9.95e-3 ? 1 : 0) + " ms";
  }
  if (seconds < 59.95) {
    return decimal(seconds, 1) + " s";
  }
  const std::int64_t whole = std::llround(seconds);
  const std::string rest = two_digits(whole % 60);
  if (whole < 3600) {
    return std::to_string(whole / 60) + ":" + rest;
  }
  return std::to_string(whole / 3600) + ":" + two_digits(whole / 60 % 60) + ":" + rest;
}

std::size_t parse_bytes(std::string_view text) {
  const char* const end = text.data() + text.size();
  // from_chars takes no sign but the minus, which the first comparison refuses with "inf" and
  // "nan".
  if (text.empty() || !(std::isdigit(static_cast<unsigned char>(text[0])) != 0 || text[0] == '.')) {
    refuse(text, text.empty() ? "it is empty" : "it does not begin with a digit");
  }
  const auto unit_after = [&](const char* next) {
    std::string_view unit(next, static_cast<std::size_t>(end - next));
    while (unit.starts_with(' ')) {
      unit.remove_prefix(1);
    }
    return unit_size(text, unit);
  };
  constexpr std::uint64_t kMost = std::numeric_limits<std::size_t>::max();
  std::uint64_t whole = 0;
  if (const auto [next, failure] = std::from_chars(text.data(), end, whole);
      failure == std::errc::result_out_of_range) {
    refuse(text, "it is too large");
  } else if (failure == std::errc() && (next == end || *next != '.')) {
    const std::uint64_t size = unit_after(next);
    if (whole > kMost / size) {
      refuse(text, "it is too large");
    }
    return whole * size;
  }
  // A number with a point; "1e3" has been read as 1 and the unit e3, which there is not.
  double number = 0;
  const auto [next, failure] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (failure != std::errc()) {
    refuse(text, "it is not a number");
  }
  const double bytes = number * static_cast<double>(unit_after(next));
  if (!(bytes < 0x1p63)) {
    refuse(text, "it is too large");
  }
  return static_cast<std::size_t>(std::llround(bytes));
}

}  // namespace fenestra::cli

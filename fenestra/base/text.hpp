// Numbers and columns for people: what the tool, reports and errors print. Knows nothing of what is
// printed, and writes nowhere.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

namespace fenestra {

/// "884,736"
inline std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t digits = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > digits + 3; at -= 3) {
    text.insert(at - 3, ",");
  }
  return text;
}

/// "12.3": a number with so many digits after the point.
inline std::string decimal(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

/// "260 B", "1.15 MiB", "2 GiB": three digits, or a whole number of units.
inline std::string bytes_text(std::size_t bytes) {
  if (bytes < 1024) {
    return std::to_string(bytes) + " B";
  }
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  double size = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // Three digits are shown, so that 1023.9 is already the next unit's.
  for (; size >= 999.5 && unit + 1 < std::size(kUnits); ++unit) {
    size /= 1024;
  }
  const bool is_whole = size == static_cast<double>(static_cast<std::size_t>(size));
  return decimal(size, is_whole || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2) + " " + kUnits[unit];
}

enum class Align { left, right };

/// Rows in aligned columns two blanks apart, each line indented; columns without an alignment are
/// left.
inline std::string columns(const std::vector<std::vector<std::string>>& rows,
                           std::size_t indent,
                           const std::vector<Align>& align) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      line += i < align.size() && align[i] == Align::right ? blanks + row[i] : row[i] + blanks;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

/// The same with one alignment for all columns but the first, which is left.
inline std::string columns(const std::vector<std::vector<std::string>>& rows,
                           std::size_t indent,
                           Align align = Align::left) {
  std::vector<Align> all(1, Align::left);
  for (const auto& row : rows) {
    all.resize(std::max(all.size(), row.size()), align);
  }
  return columns(rows, indent, all);
}

}  // namespace fenestra

// Columns, numbers and JSON on standard output. Knows nothing of what is printed.
#pragma once

#include <fenestra/cli/command.hpp>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

namespace fenestra::cli {

/// "884,736"
inline std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t digits = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > digits + 3; at -= 3) {
    text.insert(at - 3, ",");
  }
  return text;
}

enum class Align { left, right };

/// Rows of equal length in aligned columns two blanks apart, each line indented. The first column
/// is always aligned to the left.
inline std::string columns(const std::vector<std::vector<std::string>>& rows,
                           std::size_t indent,
                           Align align = Align::left) {
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
      line += i > 0 && align == Align::right ? blanks + row[i] : row[i] + blanks;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

/// Bytes that are no UTF-8, which a command line may hold, become the replacement character.
inline void print_json(const Json& json) {
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace fenestra::cli

// Numbers and names as the report writes them, in all its parts.
#pragma once

#include <fenestra/base/page.hpp>
#include <fenestra/cli/report.hpp>
#include <fenestra/cli/units.hpp>

#include <cmath>
#include <cstdio>
#include <string>

namespace fenestra::cli {

/// "0.0123", "1.2e-07", with so many digits that count; a dash where nothing is known.
inline std::string number_text(double number, int digits = 4) {
  if (std::isnan(number)) {
    return "–";
  }
  if (std::isinf(number)) {
    return number > 0 ? "∞" : "−∞";
  }
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, number);
  return text;
}

/// "98.5 %", on one line
inline std::string percent_text(double part, int digits = 1) {
  return std::isfinite(part) ? decimal(100 * part, digits) + "\u00a0%" : number_text(part);
}

/// The name of a class, or its number.
inline std::string class_name(const TrainingReport& report, Index number) {
  const bool has_name = number >= 0 && static_cast<std::size_t>(number) < report.classes.size() &&
                        !report.classes[static_cast<std::size_t>(number)].empty();
  return has_name ? report.classes[static_cast<std::size_t>(number)] : std::to_string(number);
}

/// The same as markup.
inline std::string class_text(const TrainingReport& report, Index number) {
  return page::escaped(class_name(report, number));
}

}  // namespace fenestra::cli

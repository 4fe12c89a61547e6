// Names of classes as the report writes them, in all its parts.
#pragma once

#include <fenestra/base/page.hpp>
#include <fenestra/cli/report.hpp>

#include <string>

namespace fenestra::cli {

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

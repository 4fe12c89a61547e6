// Text that fits a terminal, whatever its lines are.
#pragma once

#include <fenestra/cli/terminal.hpp>

#include <string>
#include <string_view>

namespace fenestra::cli {

/// Every line at most as wide as the terminal, cut at its end; as it is where there is no width.
std::string fitted(std::string_view text, const Terminal& terminal);

/// The same, broken at blanks. What is left of a line begins below its second column, where it has
/// two blanks between columns, or two places further in.
std::string wrapped(std::string_view text, const Terminal& terminal);

}  // namespace fenestra::cli

// Rows in aligned columns that fit a terminal.
#pragma once

#include <fenestra/base/text.hpp>
#include <fenestra/cli/terminal.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace fenestra::cli {

struct TableOptions {
  std::vector<Align> align;  ///< of each column; left where there is none
  bool has_header = false;   ///< the first row is one: bold, with a line below
  bool has_footer = false;   ///< the last row is one: with a line above
  std::size_t indent = 0;
};

/// Two blanks between columns. Where the rows are wider than the terminal, the widest columns of
/// words lose the middle of their longest cells. Then, under a header, the last columns of numbers
/// (those on the right) are left out, and a mark stands in the header: a number without its digits
/// says nothing. Only what is as narrow as one column loses digits. A pipe without COLUMNS has no
/// width, and nothing is cut.
std::string table_text(const std::vector<std::vector<std::string>>& rows,
                       const TableOptions& options,
                       const Terminal& terminal);

}  // namespace fenestra::cli

#include <fenestra/cli/table.hpp>

#include <algorithm>
#include <numeric>

namespace fenestra::cli {

namespace {

constexpr std::size_t kGap = 2;
/// Words are cut to this, before numbers are cut at all.
constexpr std::size_t kLeastWords = 8;
constexpr std::size_t kLeastNumber = 3;

Align align_of(const TableOptions& options, std::size_t column) {
  return column < options.align.size() ? options.align[column] : Align::left;
}

/// Takes columns away from the widest of those that have the alignment, one after another, until
/// all fit or all of those are as narrow as `least`.
void shrink(std::vector<std::size_t>& widths,
            std::size_t room,
            const TableOptions& options,
            Align align,
            std::size_t least) {
  while (std::accumulate(widths.begin(), widths.end(), std::size_t{0}) > room) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (align_of(options, i) == align && widths[i] > least &&
          (widest == widths.size() || widths[i] > widths[widest])) {
        widest = i;
      }
    }
    if (widest == widths.size()) {
      return;
    }
    --widths[widest];
  }
}

using Rows = std::vector<std::vector<std::string>>;

std::vector<std::size_t> widths_of(const Rows& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  return widths;
}

/// What the columns take with words cut and all digits.
std::size_t least_width(const Rows& rows, const TableOptions& options) {
  const std::vector<std::size_t> widths = widths_of(rows);
  std::size_t all = options.indent + kGap * (widths.size() - 1);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    all += align_of(options, i) == Align::left ? std::min(widths[i], kLeastWords) : widths[i];
  }
  return all;
}

/// Leaves out columns of numbers, the last ones first, where numbers would lose digits; a mark in
/// the header says so. The first one stays.
void leave_out(Rows& rows, TableOptions& options, const Terminal& terminal) {
  const std::string mark = terminal.has_unicode ? "…" : "...";
  bool has_mark = false;
  while (least_width(rows, options) > terminal.width) {
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < rows[0].size(); ++i) {
      if (align_of(options, i) == Align::right) {
        numbers.push_back(i);
      }
    }
    if (numbers.size() < 2) {
      return;
    }
    const auto last = static_cast<std::ptrdiff_t>(numbers.back());
    for (auto& row : rows) {
      if (last < static_cast<std::ptrdiff_t>(row.size())) {
        row.erase(row.begin() + last);
      }
    }
    options.align.erase(options.align.begin() + last);
    if (!has_mark) {
      rows[0].push_back(mark);
      options.align.resize(rows[0].size(), Align::left);
      has_mark = true;
    }
  }
}

}  // namespace

std::string table_text(const std::vector<std::vector<std::string>>& all_rows,
                       const TableOptions& all_options,
                       const Terminal& terminal) {
  Rows rows = all_rows;
  TableOptions options = all_options;
  if (terminal.has_width && options.has_header && !rows.empty()) {
    leave_out(rows, options, terminal);
  }
  std::vector<std::size_t> widths = widths_of(rows);
  if (widths.empty()) {
    return "";
  }
  const std::size_t fixed = options.indent + kGap * (widths.size() - 1);
  if (terminal.has_width) {
    const std::size_t room = terminal.width > fixed ? terminal.width - fixed : 0;
    shrink(widths, room, options, Align::left, kLeastWords);
    shrink(widths, room, options, Align::right, kLeastNumber);
    shrink(widths, room, options, Align::left, 1);
  }
  const std::size_t all = std::accumulate(widths.begin(), widths.end(), fixed);
  const std::size_t limit = terminal.has_width ? std::min(all, terminal.width) : all;
  std::string rule(options.indent, ' ');
  for (std::size_t i = options.indent; i < limit; ++i) {
    rule += terminal.has_unicode ? "─" : "-";
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line(options.indent, ' ');
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      const std::string shown = shortened_middle(rows[r][i], widths[i], terminal.has_unicode);
      const std::string blanks(widths[i] - display_width(shown), ' ');
      line += align_of(options, i) == Align::right ? blanks + shown : shown + blanks;
      line += std::string(kGap, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    // What has more columns than the terminal has places is cut at its end.
    line = shortened_end(line, limit, terminal.has_unicode);
    const bool is_header = options.has_header && r == 0;
    if (options.has_footer && r + 1 == rows.size() && r > 0) {
      text += painted(rule, Paint::dim, terminal) + "\n";
    }
    text += (is_header ? painted(line, Paint::bold, terminal) : line) + "\n";
    if (is_header) {
      text += painted(rule, Paint::dim, terminal) + "\n";
    }
  }
  return text;
}

}  // namespace fenestra::cli

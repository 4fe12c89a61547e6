#include <fenestra/cli/wrap.hpp>

#include <algorithm>
#include <cstddef>

namespace fenestra::cli {

std::string fitted(std::string_view text, const Terminal& terminal) {
  if (!terminal.has_width) {
    return std::string(text);
  }
  std::string result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    // What fits stays as it is: it may have colours, which take no columns.
    result += line.size() <= terminal.width || line.find('\x1b') != line.npos
                  ? std::string(line)
                  : shortened_end(line, terminal.width, terminal.has_unicode);
    text.remove_prefix(end);
    if (!text.empty()) {
      result += '\n';
      text.remove_prefix(1);
    }
  }
  return result;
}

namespace {

/// The column at which what is left of a line goes on.
std::size_t hanging_indent(std::string_view line, std::size_t width) {
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.find("  ", first);
  const std::size_t second = gap == line.npos ? gap : line.find_first_not_of(' ', gap);
  const std::size_t indent = second == line.npos ? first + 2 : second;
  constexpr std::size_t kLeast = 16;  // columns for words, else the second column is no help
  return indent + kLeast <= width ? indent : std::min<std::size_t>(first + 2, width / 2);
}

}  // namespace

std::string wrapped(std::string_view text, const Terminal& terminal) {
  if (!terminal.has_width) {
    return std::string(text);
  }
  const std::size_t width = terminal.width;
  std::string result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string indent(hanging_indent(line, width), ' ');
    while (display_width(line) > width) {
      // The last blank that leaves a piece that fits, behind the indentation.
      const std::size_t begin = std::max(line.find_first_not_of(' '), indent.size());
      std::size_t at = line.rfind(' ', width);
      if (at == line.npos || at <= begin) {
        at = line.find(' ', begin + 1);
      }
      if (at == line.npos) {
        break;
      }
      const std::size_t rest = line.find_first_not_of(' ', at);
      if (rest == line.npos) {
        break;
      }
      result += line.substr(0, line.find_last_not_of(' ', at) + 1) + "\n";
      line = indent + line.substr(rest);
    }
    result += line + "\n";
  }
  return result;
}

}  // namespace fenestra::cli

#include <fenestra/base/text.hpp>
#include <fenestra/cli/terminal.hpp>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>

namespace fenestra::cli {

namespace {

constexpr std::size_t kLeastBar = 10;
constexpr std::size_t kMostBar = 40;
constexpr auto kBetweenDraws = std::chrono::milliseconds(100);

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

/// 0 where it says nothing sensible.
std::size_t columns_of_environment() {
  const std::string_view text = environment("COLUMNS");
  std::size_t width = 0;
  const auto [next, failure] = std::from_chars(text.data(), text.data() + text.size(), width);
  const bool is_number = failure == std::errc() && next == text.data() + text.size();
  return is_number && width <= 10'000 ? width : 0;
}

/// As the C library reads a locale: the first of these that is set decides.
bool has_utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view value = environment(name);
    if (!value.empty()) {
      std::string lower;
      for (const char c : value) {
        lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      }
      return lower.find("utf-8") != lower.npos || lower.find("utf8") != lower.npos;
    }
  }
  return false;
}

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 1;
};

/// The first of a text that is not empty; a byte that begins none counts as one of its own.
CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t count = lead < 0x80        ? 1
                            : lead >> 5U == 6  ? 2
                            : lead >> 4U == 14 ? 3
                            : lead >> 3U == 30 ? 4
                                               : 0;
  if (count <= 1 || count > text.size()) {
    return {lead < 0x80 ? static_cast<char32_t>(lead) : U'\xfffd', 1};
  }
  auto value = static_cast<char32_t>(lead & (0x7fU >> count));
  for (std::size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) {
      return {U'\xfffd', 1};
    }
    value = value << 6U | (byte(i) & 0x3fU);
  }
  return {value, count};
}

bool is_within(char32_t c, char32_t low, char32_t high) { return c >= low && c <= high; }

/// Without the C library's locale: combining marks take no column, the scripts of East Asia and
/// pictograms take two.
std::size_t columns_of(char32_t c) {
  if (is_within(c, 0x300, 0x36f) || is_within(c, 0x200b, 0x200f) || is_within(c, 0xfe00, 0xfe0f)) {
    return 0;
  }
  const bool is_wide = is_within(c, 0x1100, 0x115f) || is_within(c, 0x2e80, 0xa4cf) ||
                       is_within(c, 0xac00, 0xd7a3) || is_within(c, 0xf900, 0xfaff) ||
                       is_within(c, 0xfe30, 0xfe6f) || is_within(c, 0xff00, 0xff60) ||
                       is_within(c, 0xffe0, 0xffe6) || is_within(c, 0x1f300, 0x1faff) ||
                       is_within(c, 0x20000, 0x3fffd);
  return is_wide ? 2 : 1;
}

/// What a terminal would obey instead of showing it.
std::string without_controls(std::string_view text) {
  std::string shown(text);
  for (char& c : shown) {
    c = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return shown;
}

/// As much of the beginning as fits.
std::string_view beginning(std::string_view text, std::size_t width) {
  std::size_t bytes = 0;
  for (std::size_t used = 0; bytes < text.size();) {
    const CodePoint next = first_code_point(text.substr(bytes));
    used += columns_of(next.value);
    if (used > width) {
      break;
    }
    bytes += next.bytes;
  }
  return text.substr(0, bytes);
}

std::string_view ellipsis(bool has_unicode) { return has_unicode ? "…" : "..."; }

}  // namespace

Terminal terminal_of(Stream stream) {
  const int file = stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO;
  Terminal terminal;
  const bool is_terminal = isatty(file) == 1;
  terminal.is_live = is_terminal && environment("TERM") != "dumb";
  terminal.has_colour = terminal.is_live && environment("NO_COLOR").empty();
  terminal.has_unicode = has_utf8_locale();
  std::size_t width = columns_of_environment();
  if (winsize size{}; width == 0 && is_terminal && ioctl(file, TIOCGWINSZ, &size) == 0) {
    width = size.ws_col;
  }
  if (width > 0) {
    terminal.width = width;
    terminal.has_width = true;
  }
  return terminal;
}

std::string painted(std::string_view text, Paint paint, const Terminal& terminal) {
  if (!terminal.has_colour) {
    return std::string(text);
  }
  const auto code = [&] {
    switch (paint) {
      case Paint::bold: return "1";
      case Paint::dim: return "2";
      case Paint::red: return "31";
      case Paint::green: return "32";
      case Paint::yellow: return "33";
      case Paint::blue: return "34";
    }
    return "0";
  };
  return "\x1b[" + std::string(code()) + "m" + std::string(text) + "\x1b[0m";
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const CodePoint next = first_code_point(text);
    width += columns_of(next.value);
    text.remove_prefix(next.bytes);
  }
  return width;
}

std::string shortened_end(std::string_view text, std::size_t width, bool has_unicode) {
  const std::string shown = without_controls(text);
  if (display_width(shown) <= width) {
    return shown;
  }
  const std::string_view dots = ellipsis(has_unicode);
  const std::size_t taken = display_width(dots);
  return taken > width ? std::string(beginning(shown, width))
                       : std::string(beginning(shown, width - taken)) + std::string(dots);
}

std::string shortened_middle(std::string_view text, std::size_t width, bool has_unicode) {
  const std::string shown = without_controls(text);
  const std::size_t all = display_width(shown);
  const std::size_t taken = display_width(ellipsis(has_unicode));
  if (all <= width || width < taken + 2) {
    return shortened_end(shown, width, has_unicode);
  }
  // More of the beginning where it does not come out even. Half a wide character is none.
  const std::size_t tail = (width - taken) / 2;
  const std::string head(beginning(shown, width - taken - tail));
  std::string_view rest = shown;
  while (display_width(rest) > tail) {
    rest.remove_prefix(first_code_point(rest).bytes);
  }
  return head + std::string(ellipsis(has_unicode)) + std::string(rest);
}

std::string bar_text(double part, std::size_t width, bool has_unicode) {
  const double filled =
      std::clamp(std::isnan(part) ? 0 : part, 0.0, 1.0) * static_cast<double>(width);
  if (!has_unicode) {
    const auto full = static_cast<std::size_t>(filled);
    return std::string(full, '#') + std::string(width - full, '.');
  }
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(filled * 8);
  std::string text;
  for (std::size_t i = 0; i < eighths / 8; ++i) {
    text += "█";
  }
  text += kEighths[eighths % 8];
  return text + std::string(width - eighths / 8 - (eighths % 8 > 0 ? 1 : 0), ' ');
}

std::string progress_text(const ProgressState& state, std::size_t width, bool has_unicode) {
  const bool has_bar = state.part >= 0;
  const std::string edge = has_unicode ? "│" : "|";
  std::string text = state.label;
  const auto add = [&](const std::string& more) {
    text += (text.empty() || more.empty() ? "" : " ") + more;
  };
  const std::size_t words =
      display_width(state.label) + display_width(state.details) + (state.details.empty() ? 0 : 1);
  // A blank and two edges besides the bar itself.
  const std::size_t room = width > words + 3 ? width - words - 3 : 0;
  if (has_bar && room >= kLeastBar) {
    add(edge + bar_text(state.part, std::min(room, kMostBar), has_unicode) + edge);
  } else if (has_bar) {
    add(decimal(100 * std::min(state.part, 1.0), 0) + "%");
  }
  add(state.details);
  return shortened_end(text, width, has_unicode);
}

ProgressLine::ProgressLine() : is_live_(terminal_of(Stream::err).is_live) {}

ProgressLine::~ProgressLine() { clear(); }

bool ProgressLine::is_due() {
  const auto now = Clock::now();
  if (!is_live_ || now < next_) {
    return false;
  }
  next_ = now + kBetweenDraws;
  return true;
}

void ProgressLine::draw(const ProgressState& state) {
  const Terminal terminal = terminal_of(Stream::err);
  // The last column stays free: a terminal that has written it may already be on the next line.
  const std::size_t width = std::max<std::size_t>(terminal.width, 2) - 1;
  std::cerr << "\r\x1b[K" + progress_text(state, width, terminal.has_unicode) << std::flush;
  is_drawn_ = true;
}

void ProgressLine::clear() {
  if (is_drawn_) {
    std::cerr << "\r\x1b[K" << std::flush;
    is_drawn_ = false;
  }
  next_ = {};
}

void ProgressLine::finish(const ProgressState& state) {
  if (is_live_) {
    draw(state);
    std::cerr << "\n" << std::flush;
    is_drawn_ = false;
  }
}

}  // namespace fenestra::cli

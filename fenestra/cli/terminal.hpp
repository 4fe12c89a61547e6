// What a person sees who runs the tool: whether somebody looks at all, how wide it may be, in which
// characters and colours; and a line that shows how far something is.
//
// The tables and pictures that are drawn on it are in table.hpp and terminal_picture.hpp.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace fenestra::cli {

/// What may be written to standard output or standard error. A plain value, so that whatever draws
/// can be asked for any other.
struct Terminal {
  bool is_live = false;      ///< a terminal that understands escapes, not a pipe, a file or dumb
  std::size_t width = 80;    ///< columns
  bool has_width = false;    ///< told by the terminal or by COLUMNS; otherwise 80 is a guess
  bool has_colour = false;   ///< live, and NO_COLOR is not set
  bool has_unicode = false;  ///< the locale is one of UTF-8
};

enum class Stream { out, err };

/// Reads COLUMNS, TERM, NO_COLOR, LC_ALL, LC_CTYPE and LANG, and asks the terminal; each time,
/// since windows change their size.
Terminal terminal_of(Stream stream);

enum class Paint { bold, dim, red, green, yellow, blue };

/// The text in a colour, or as it is where there are none.
std::string painted(std::string_view text, Paint paint, const Terminal& terminal);

// Text in columns.

/// Columns that a text in UTF-8 takes: two for wide characters, none for combining ones.
std::size_t display_width(std::string_view text);

/// At most `width` columns, with an ellipsis where something was left out: in the middle, where
/// names that share their beginning and their end differ least, or at the end. Control characters
/// become question marks.
std::string shortened_middle(std::string_view text, std::size_t width, bool has_unicode);
std::string shortened_end(std::string_view text, std::size_t width, bool has_unicode);

/// A bar of `width` columns, filled to `part` (0 to 1).
std::string bar_text(double part, std::size_t width, bool has_unicode);

/// How far something is, for a person who waits.
struct ProgressState {
  std::string label;    ///< before the bar: "epoch 3/10"
  double part = -1;     ///< 0 to 1; otherwise there is no bar
  std::string details;  ///< after it, what matters most first: "loss 0.12  98.1 %  0:12 left"
};

/// The line of a state, at most `width` columns: first the bar gets shorter, then it goes, then the
/// details are cut.
std::string progress_text(const ProgressState& state, std::size_t width, bool has_unicode);

/// A line on standard error that rewrites itself, at most ten times a second, on a terminal only;
/// wiped when the object goes. Not for several threads at once.
class ProgressLine {
 public:
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  /// `state()` gives a ProgressState, and is asked only where it will be seen.
  template <class State>
  void show(const State& state) {
    if (is_due()) {
      draw(state());
    }
  }
  /// Wipes the line, so that something else can be printed; the next `show` draws at once.
  void clear();
  /// Leaves a last state standing, with a line break.
  void finish(const ProgressState& state);

 private:
  using Clock = std::chrono::steady_clock;

  bool is_due();
  void draw(const ProgressState& state);

  bool is_live_;
  bool is_drawn_ = false;
  Clock::time_point next_;
};

}  // namespace fenestra::cli

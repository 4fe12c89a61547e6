// Words and drawings of resolved windows, for people: the extent formula with its numbers, and the
// windows of one axis. Computes no extent and no cell of its own: it asks the `WindowAxis`.
#pragma once

#include <fenestra/spec/message.hpp>
#include <fenestra/spec/window.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra {

/// What an operator has to say of each of its axes beyond its windows: a range of sizes per axis,
/// both ends included. A descriptor may offer a list of them as `Op::notes(g)`.
struct AxisNote {
  struct Range {
    Index low = 0;
    Index high = 0;
  };
  std::string_view key;   ///< for programs, e.g. "output_sizes"
  std::string_view text;  ///< for people, e.g. "output sizes reachable by output padding"
  std::vector<Range> axes;
};

/// "floor((32 + 1 + 1 - 3)/2) + 1 = 16", by the rule that gave the axis its extent.
inline std::string extent_formula(const WindowAxis& a) {
  const auto n = [](Index value) { return std::to_string(value); };
  const std::string padded =
      n(a.in) + " + " + n(a.pad_low) + " + " + n(a.pad_high) + " - " + n(a.span());
  switch (a.rule) {
    case ExtentRule::floor: return "floor((" + padded + ")/" + n(a.stride) + ") + 1 = " + n(a.out);
    case ExtentRule::ceil: {
      const Index slack = a.in + a.pad_low + a.pad_high - a.span();
      const Index plain = floor_div(slack + a.stride - 1, a.stride) + 1;
      const std::string text =
          "floor((" + padded + " + " + n(a.stride - 1) + ")/" + n(a.stride) + ") + 1 = " + n(plain);
      return plain == a.out ? text
                            : text + ", less a window that starts beyond the input: " + n(a.out);
    }
    case ExtentRule::transposed: {
      const Index base = a.base_extent();
      return "(" + n(a.out) + " - 1)*" + n(a.stride) + " - " + n(a.pad_low) + " - " +
             n(a.pad_high) + " + " + n(a.span()) + " + " + n(a.in - base) + " = " + n(a.in);
    }
    case ExtentRule::adaptive: return "output_size = " + n(a.out);
  }
  return "";
}

namespace detail {

/// The part of an axis that fits into a drawing: cells [begin, end) in columns of `width` digits.
struct DrawnCells {
  Index begin = 0;
  Index end = 0;
  std::size_t width = 1;

  DrawnCells(const WindowAxis& a, Index all_end, Index columns) {
    for (;; ++width) {
      const Index cells = std::max<Index>(columns / static_cast<Index>(width + 1), 4);
      begin = -std::min(a.pad_low, cells / 2);
      end = std::min(all_end, begin + cells);
      if (std::to_string(std::max<Index>(end - 1, 0)).size() <= width) {
        return;
      }
    }
  }
  std::string column(const std::string& text) const {
    return std::string(width + 1 - std::min(width, text.size()), ' ') + text;
  }
};

inline Index end_of(const Window& w) { return w.cell(w.taps - 1) + 1; }

}  // namespace detail

/// The windows of one axis under the cells they look at, one line per window:
///
///   cells      . 0 1 2 3 4 5 .
///   window 0   o # #
///
/// '.' is a padded cell, '~' the overhang of ceil mode, '#' a tap on a real cell, 'o' a tap that
/// finds nothing. Of a transposed convolution the cells are those of y and a line is a cell of x.
/// At most `max_windows` lines of about `max_columns` columns; a last line counts what is left out.
inline std::vector<std::string> draw_windows(const WindowAxis& a,
                                             Index max_windows = 8,
                                             Index max_columns = 76) {
  const bool transposed = a.rule == ExtentRule::transposed;
  const std::string cells_name = transposed ? "y cells" : "cells";
  const std::string name = transposed                       ? "x cell"
                           : a.rule == ExtentRule::adaptive ? "bin"
                                                            : "window";
  const Index all_end = std::max(a.in + a.pad_high, detail::end_of(a.window(a.out - 1)));
  const Index columns = max_columns - static_cast<Index>(name.size()) - 9;  // number, gaps, dots
  const detail::DrawnCells drawn(a, all_end, columns);

  // Only windows that reach into the drawing: those before it lie in padding that was cut off.
  const bool cut = drawn.begin > -a.pad_low;
  const Index first = cut ? a.needed_windows({drawn.begin, drawn.end}).begin : 0;
  Index last = first;
  while (last < a.out && last - first < max_windows && a.window(last).first < drawn.end) {
    ++last;
  }

  const std::size_t label_width = (name + " " + std::to_string(last - 1)).size() + 2;
  const auto label = [&](std::string text) {
    text.resize(label_width, ' ');
    return text;
  };
  std::vector<std::string> lines;
  std::string header = label(cells_name);
  for (Index cell = drawn.begin; cell < drawn.end; ++cell) {
    header += drawn.column(a.is_real(cell)       ? std::to_string(cell)
                           : a.is_declared(cell) ? "."
                                                 : "~");
  }
  lines.push_back(header + (drawn.end < all_end ? " ..." : ""));
  for (Index o = first; o < last; ++o) {
    const Window w = a.window(o);
    std::string line = label(name + " " + std::to_string(o));
    for (Index cell = drawn.begin; cell < drawn.end; ++cell) {
      const bool tapped =
          cell >= w.first && (cell - w.first) % w.step == 0 && (cell - w.first) / w.step < w.taps;
      line += drawn.column(!tapped ? " " : a.is_real(cell) ? "#" : "o");
    }
    if (detail::end_of(w) > drawn.end) {
      line += " ...";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(line);
  }

  const auto count = [&](Index n) { return std::to_string(n) + " " + name + (n == 1 ? "" : "s"); };
  std::string rest;
  if (first > 0) {
    rest += count(first) + " before, in the padding";
  }
  if (last < a.out) {
    rest += (rest.empty() ? "" : ", ") + count(a.out - last) + " after";
  }
  if (!rest.empty()) {
    lines.push_back("not drawn: " + rest);
  }
  return lines;
}

/// What the signs in `draw_windows` mean, as far as this axis can show them.
inline std::string drawing_legend(const WindowAxis& a) {
  const bool overhang = detail::end_of(a.window(a.out - 1)) > a.in + a.pad_high;
  const bool padded = a.pad_low > 0 || a.pad_high > 0;
  const bool transposed = a.rule == ExtentRule::transposed;
  std::string text = a.rule == ExtentRule::adaptive ? "# cell of the bin" : "# tap";
  if (padded || overhang) {
    text += transposed ? ", o tap whose product is cropped" : ", o tap outside the input";
  }
  if (padded) {
    text += transposed ? ", . cropped cell" : ", . padding";
  }
  if (overhang) {
    text += ", ~ beyond the padding";
  }
  return text;
}

}  // namespace fenestra

#include <fenestra/base/error.hpp>
#include <fenestra/cli/terminal_picture.hpp>

#include <algorithm>
#include <cmath>

namespace fenestra::cli {

namespace {

/// Values that span more than this are drawn by their logarithm.
constexpr double kDecades = 30;
constexpr std::size_t kGap = 2;

/// The number of a level for a value from 0 to 1.
std::size_t level(double part, std::size_t levels) {
  const double place = std::clamp(part, 0.0, 1.0) * static_cast<double>(levels);
  return std::min(static_cast<std::size_t>(place), levels - 1);
}

/// Grey, 0 to 1, rows of pixels.
struct Grey {
  std::size_t height = 0;
  std::size_t width = 0;
  std::vector<double> pixels;

  double at(std::size_t y, std::size_t x) const {
    return y < height && x < width ? pixels[y * width + x] : 0;
  }
};

/// The channels' mean; what is outside 0 to 1 is stretched over it, what is not finite is dark.
Grey grey_of(const Tensor<float>& sample) {
  const int rank = sample.rank();
  if (rank != 2 && rank != 3) {
    throw Error(ErrorCode::rank_mismatch,
                "picture: got the shape " + to_string(sample.shape()) +
                    "\n  fix: (height, width) or (channels, height, width)");
  }
  Grey grey{.height = static_cast<std::size_t>(sample.shape()[rank - 2]),
            .width = static_cast<std::size_t>(sample.shape()[rank - 1]),
            .pixels = {}};
  grey.pixels.resize(grey.height * grey.width);
  if (sample.size() == 0) {
    return grey;
  }
  const std::size_t channels = static_cast<std::size_t>(sample.size()) / grey.pixels.size();
  double low = 0;
  double high = 1;
  for (const float value : sample.values()) {
    if (std::isfinite(value)) {
      low = std::min(low, static_cast<double>(value));
      high = std::max(high, static_cast<double>(value));
    }
  }
  for (Index i = 0; i < sample.size(); ++i) {
    const double value = std::isfinite(sample[i]) ? static_cast<double>(sample[i]) : low;
    grey.pixels[static_cast<std::size_t>(i) % grey.pixels.size()] +=
        (value - low) / (high - low) / static_cast<double>(channels);
  }
  return grey;
}

/// Averages squares of pixels, as large as it takes to be at most so wide.
Grey reduced(const Grey& grey, std::size_t most_columns) {
  const std::size_t factor =
      (grey.width + most_columns - 1) / std::max<std::size_t>(most_columns, 1);
  if (factor <= 1) {
    return grey;
  }
  Grey small{.height = (grey.height + factor - 1) / factor,
             .width = (grey.width + factor - 1) / factor,
             .pixels = {}};
  for (std::size_t y = 0; y < small.height; ++y) {
    for (std::size_t x = 0; x < small.width; ++x) {
      double sum = 0;
      std::size_t count = 0;
      for (std::size_t v = y * factor; v < std::min((y + 1) * factor, grey.height); ++v) {
        for (std::size_t u = x * factor; u < std::min((x + 1) * factor, grey.width); ++u) {
          sum += grey.at(v, u);
          ++count;
        }
      }
      small.pixels.push_back(sum / static_cast<double>(count));
    }
  }
  return small;
}

/// A picture as lines, all `columns` wide.
struct Drawn {
  std::size_t columns = 0;
  std::vector<std::string> lines;
};

/// One character: twice as high as it is wide, so it holds two pixels, one above the other.
std::string character(double above, double below, const Terminal& terminal) {
  if (terminal.has_colour && terminal.has_unicode) {
    // The 24 greys of the table of 256 colours, which more terminals have than true colours.
    const auto grey = [](double part) { return std::to_string(232 + level(part, 24)); };
    return "\x1b[38;5;" + grey(above) + ";48;5;" + grey(below) + "m▀";
  }
  const double mean = (above + below) / 2;
  if (terminal.has_unicode) {
    // An edge is worth more than a shade.
    if (std::abs(above - below) > 0.45) {
      return above > below ? "▀" : "▄";
    }
    constexpr const char* kShades[] = {" ", "░", "▒", "▓", "█"};
    return kShades[level(mean, std::size(kShades))];
  }
  constexpr std::string_view kLetters = " .:-=+*#%@";
  return std::string(1, kLetters[level(mean, kLetters.size())]);
}

Drawn drawn(const Grey& grey, const Terminal& terminal, std::size_t most_columns) {
  // Pictures that are tiny get two characters for a pixel, and so are squares again.
  const bool is_doubled = 2 * grey.width <= most_columns;
  Drawn result{.columns = is_doubled ? 2 * grey.width : grey.width, .lines = {}};
  const std::size_t step = is_doubled ? 1 : 2;
  for (std::size_t y = 0; y < grey.height; y += step) {
    std::string line;
    for (std::size_t x = 0; x < grey.width; ++x) {
      const std::string one =
          character(grey.at(y, x), grey.at(is_doubled ? y : y + 1, x), terminal);
      line += is_doubled ? one + one : one;
    }
    result.lines.push_back(line + (terminal.has_colour && terminal.has_unicode ? "\x1b[0m" : ""));
  }
  return result;
}

std::string centred(const std::string& text, std::size_t shown, std::size_t width) {
  const std::size_t left = (width - shown) / 2;
  return std::string(left, ' ') + text + std::string(width - shown - left, ' ');
}

void end_line(std::string& text, std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
  text += line + "\n";
  line.clear();
}

}  // namespace

std::string sparkline(std::span<const double> values, std::size_t width, bool has_unicode) {
  if (values.empty() || width == 0) {
    return "";
  }
  const std::size_t count = std::min(values.size(), width);
  std::vector<double> points;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = i * values.size() / count;
    const std::size_t end = (i + 1) * values.size() / count;
    double mean = 0;
    for (std::size_t j = begin; j < end; ++j) {
      mean += values[j] / static_cast<double>(end - begin);
    }
    points.push_back(mean);
  }
  std::vector<double> finite;
  std::copy_if(points.begin(), points.end(), std::back_inserter(finite), [](double value) {
    return std::isfinite(value);
  });
  if (finite.empty()) {
    return std::string(count, ' ');
  }
  const auto [low, high] = std::minmax_element(finite.begin(), finite.end());
  const bool is_log = *low > 0 && *high / *low > kDecades;
  // Halves, so that the difference of the largest numbers is one.
  const auto place = [&](double value) { return is_log ? std::log(value) : value / 2; };
  const double bottom = place(*low);
  const double range = place(*high) - bottom;
  constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::string_view kLetters = "_.-:=+*#";
  std::string text;
  for (const double point : points) {
    if (!std::isfinite(point)) {
      text += ' ';
      continue;
    }
    const std::size_t at =
        level(range > 0 ? (place(point) - bottom) / range : 0, std::size(kBlocks));
    text += has_unicode ? std::string(kBlocks[at]) : std::string(1, kLetters[at]);
  }
  return text;
}

std::string picture_rows(std::span<const CaptionedPicture> pictures,
                         const Terminal& terminal,
                         std::size_t most_columns) {
  const std::size_t room = std::max<std::size_t>(terminal.width, 1);
  most_columns = std::clamp<std::size_t>(most_columns, 1, room);
  std::vector<Drawn> all;
  std::size_t cell = 0;
  for (const CaptionedPicture& picture : pictures) {
    all.push_back(drawn(reduced(grey_of(picture.sample), most_columns), terminal, most_columns));
    cell = std::max({cell,
                     all.back().columns,
                     // Captions get room, but do not make the pictures few.
                     std::min(display_width(picture.caption), most_columns)});
  }
  const std::size_t in_row = std::max<std::size_t>(1, (room + kGap) / (cell + kGap));
  std::string text;
  std::string line;
  const std::string gap(kGap, ' ');
  for (std::size_t first = 0; first < all.size(); first += in_row) {
    const std::size_t end = std::min(first + in_row, all.size());
    std::size_t height = 0;
    for (std::size_t i = first; i < end; ++i) {
      height = std::max(height, all[i].lines.size());
    }
    for (std::size_t y = 0; y < height; ++y) {
      for (std::size_t i = first; i < end; ++i) {
        const bool has_line = y < all[i].lines.size();
        line += centred(has_line ? all[i].lines[y] : "", has_line ? all[i].columns : 0, cell);
        line += i + 1 < end ? gap : "";
      }
      end_line(text, line);
    }
    for (std::size_t i = first; i < end; ++i) {
      const std::string caption = shortened_end(pictures[i].caption, cell, terminal.has_unicode);
      line += centred(pictures[i].is_wrong ? painted(caption, Paint::red, terminal) : caption,
                      display_width(caption),
                      cell);
      line += i + 1 < end ? gap : "";
    }
    end_line(text, line);
    text += end < all.size() ? "\n" : "";
  }
  return text;
}

}  // namespace fenestra::cli

#include <fenestra/base/chart.hpp>
#include <fenestra/base/page.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

namespace fenestra::page {

namespace {

/// Values that span more than this are drawn on a logarithmic axis.
constexpr double kDecades = 30;
/// One value near zero would press all others together: what is so much less lies on the edge.
constexpr double kMostDecades = 1e9;
/// Less is nothing: powers of ten still have inverses here.
constexpr double kLeast = 1e-200;
/// The side of the drawing before it is stretched.
constexpr double kSide = 1000;

struct Axis {
  std::vector<double> ticks;
  bool is_log = false;

  /// 0 at the first tick, 1 at the last.
  double part(double value) const {
    // Quarters, so that the difference of the largest numbers is one.
    const auto place = [&](double v) { return is_log ? std::log(v) : v / 4; };
    const double low = place(ticks.front());
    const double high = place(ticks.back());
    return std::clamp((place(value) - low) / (high - low), 0.0, 1.0);
  }
};

/// Nothing where no value is finite.
std::optional<Axis> y_axis(const Chart& chart) {
  double low = 0;
  double high = 0;
  bool is_first = true;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      if (std::isfinite(point.y)) {
        low = is_first ? point.y : std::min(low, point.y);
        high = is_first ? point.y : std::max(high, point.y);
        is_first = false;
      }
    }
  }
  if (is_first) {
    return std::nullopt;
  }
  if (chart.may_be_log && low > 0 && high > kLeast && high / low > kDecades) {
    return Axis{round_log_ticks(std::max(low, high / kMostDecades), high), true};
  }
  // Zero belongs to the picture where it is not far away.
  if (low > 0 && (chart.has_zero || low < high / 3)) {
    low = 0;
  }
  return Axis{round_ticks(low, high, 5), false};
}

/// Steps of less than a percent need digits.
std::string tick_text(const Axis& axis, double value, bool is_percent) {
  if (!is_percent) {
    return number_text(value, 6);
  }
  const double apart = axis.ticks[1] - axis.ticks[0];
  return percent_text(value, axis.is_log || apart < 0.01 ? (apart < 0.001 ? 2 : 1) : 0);
}

std::string coordinate(double part) { return decimal(kSide * part, 1); }

class Drawing {
 public:
  Drawing(const Chart& chart, const Axis& y) : chart_(chart), y_(y) {}

  std::string text() {
    text_ =
        "<div class=\"plot\"><svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\""
        " role=\"img\" aria-label=\"" +
        escaped(description()) + "\">\n";
    for (const double tick : y_.ticks) {
      text_ += "<path class=\"grid\" d=\"M0 " + height(tick) + "H1000\"/>";
    }
    for (const ChartSeries& series : chart_.series) {
      curve(series);
    }
    notes();
    text_ += "</svg>\n";
    words();
    return text_ + "</div>\n";
  }

 private:
  double x_part(double x) const {
    const auto place = [&](double v) { return chart_.x_is_log ? std::log(v) : v; };
    const double low = place(chart_.x_low);
    return std::clamp((place(x) - low) / (place(chart_.x_high) - low), 0.0, 1.0);
  }
  std::string left(double x) const { return coordinate(x_part(x)); }
  std::string height(double y) const { return coordinate(1 - y_.part(y)); }

  /// For those who cannot see it.
  std::string description() const {
    std::string text = chart_.title + " by " + chart_.x_name;
    for (const ChartSeries& series : chart_.series) {
      const auto last = std::find_if(
          series.points.rbegin(), series.points.rend(), [](auto& p) { return std::isfinite(p.y); });
      if (last != series.points.rend()) {
        text += "; " + series.name + " ends at " +
                (chart_.is_percent ? percent_text(last->y, 2) : number_text(last->y));
      }
    }
    return text;
  }

  void curve(const ChartSeries& series) {
    std::string path;
    std::string dots;
    bool is_open = false;
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      const ChartPoint& point = series.points[i];
      // A logarithm needs more than a finite number.
      if (!std::isfinite(point.y) || (y_.is_log && point.y <= 0)) {
        is_open = false;
        continue;
      }
      const std::string place = left(point.x) + " " + height(point.y);
      path += (is_open ? "L" : "M") + place;
      is_open = true;
      // Points are lines of no length with round ends, which no stretching makes into ellipses.
      dots += "M" + place + "h0";
    }
    if (path.empty()) {
      return;
    }
    constexpr std::size_t kMostDots = 40;
    text_ += "<path class=\"curve " + series.style + "\" d=\"" + path + "\"/>\n";
    if (series.style != "faint" && series.points.size() <= kMostDots) {
      text_ += "<path class=\"dots " + series.style + "\" d=\"" + dots + "\"/>\n";
    }
  }

  /// A strip around each note, up to half the way to its neighbours.
  void notes() {
    for (std::size_t i = 0; i < chart_.notes.size(); ++i) {
      const ChartNote& note = chart_.notes[i];
      const auto border = [&](std::size_t other) {
        return x_part((note.x + chart_.notes[other].x) / 2);
      };
      const double begin = i == 0 ? 0 : border(i - 1);
      const double end = i + 1 == chart_.notes.size() ? 1 : border(i + 1);
      text_ += "<rect class=\"strip\" x=\"" + coordinate(begin) + "\" y=\"0\" width=\"" +
               coordinate(std::max(end - begin, 0.0)) + "\" height=\"1000\"><title>" +
               escaped(note.text) + "</title></rect>\n";
    }
  }

  void words() {
    for (const double tick : y_.ticks) {
      text_ += "<span class=\"y\" style=\"top:" + decimal(100 - 100 * y_.part(tick), 2) + "%\">" +
               tick_text(y_, tick, chart_.is_percent) + "</span>";
    }
    // Numbers that are nearer to each other would be one.
    constexpr double kApart = 0.05;
    double last = -1;
    for (const double tick :
         chart_.x_ticks.empty() ? round_ticks(chart_.x_low, chart_.x_high, 6) : chart_.x_ticks) {
      // The axis ends where the data end, not at a round number.
      const bool is_inside = tick >= chart_.x_low && tick <= chart_.x_high;
      const double part = x_part(tick);
      if (is_inside && part - last >= kApart && (!chart_.x_is_whole || tick == std::round(tick))) {
        text_ += "<span class=\"x\" style=\"left:" + decimal(100 * part, 2) + "%\">" +
                 number_text(tick, 6) + "</span>";
        last = part;
      }
    }
    text_ += "\n";
  }

  const Chart& chart_;
  const Axis& y_;
  std::string text_;
};

}  // namespace

std::vector<double> round_ticks(double low, double high, int count) {
  const double largest = std::max(std::abs(low), std::abs(high));
  if (!(high / 2 - low / 2 > 1e-9 * largest && largest > kLeast)) {
    // One value, as far as digits tell: a little room on both sides.
    const double room = largest > kLeast ? largest / 2 : 1;
    low -= room;
    high += room;
  }
  const double rough = high / count - low / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double factor = rough / power <= 1   ? 1
                        : rough / power <= 2 ? 2
                        : rough / power <= 5 ? 5
                                             : 10;
  const double step = factor * power;
  std::vector<double> ticks;
  // Counted, not added up: a sum of many steps is no longer round.
  const double first = std::floor(low / step + 1e-9);
  for (double i = first; ticks.size() < 2 || ticks.back() < high - 1e-9 * step; ++i) {
    ticks.push_back(factor >= 1 && power >= 1 ? i * step : i * factor / std::round(1 / power));
  }
  return ticks;
}

std::vector<double> round_log_ticks(double low, double high) {
  // As far as powers of ten go, and at least one of them.
  low = std::clamp(low, kLeast, 1 / kLeast);
  high = std::clamp(high, 10 * low, 100 / kLeast);
  const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(high) - 1e-9));
  std::vector<double> ticks;
  const int decades = last - first;
  const int apart = std::max(1, (decades + 5) / 6);
  for (int power = first; power <= last + apart - 1; power += apart) {
    ticks.push_back(std::pow(10, power));
    if (decades <= 3 && power < last) {
      ticks.push_back(2 * std::pow(10, power));
      ticks.push_back(5 * std::pow(10, power));
    }
  }
  // As near to the data as round numbers are.
  while (ticks.size() > 2 && ticks[1] <= low) {
    ticks.erase(ticks.begin());
  }
  while (ticks.size() > 2 && ticks[ticks.size() - 2] >= high) {
    ticks.pop_back();
  }
  return ticks;
}

std::string chart_markup(const RowChart& chart) {
  const auto is_drawn = [&](const ChartDot& dot) {
    return std::isfinite(dot.x) && (!chart.is_log || dot.x > 0);
  };
  std::vector<double> values = chart.marks;
  bool has_dots = false;
  for (const ChartRow& row : chart.rows) {
    for (const ChartDot& dot : row.dots) {
      if (is_drawn(dot)) {
        values.push_back(std::clamp(dot.x, chart.least, chart.most));
        has_dots = true;
      }
    }
  }
  if (!has_dots) {
    return "";
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const Axis axis{chart.is_log ? round_log_ticks(*low, *high) : round_ticks(*low, *high, 6),
                  chart.is_log};
  const auto mark = [&](const std::string& style, double x) {
    return "<path class=\"" + style + "\" d=\"M" + coordinate(axis.part(x)) + " 0V1000\"/>";
  };
  std::string lines;
  for (const double tick : axis.ticks) {
    lines += mark("grid", tick);
  }
  for (const double x : chart.marks) {
    lines += mark("mark", x);
  }
  std::string rows;
  for (const ChartRow& row : chart.rows) {
    std::string dots;
    for (const ChartDot& dot : row.dots) {
      if (is_drawn(dot)) {
        dots += "<path class=\"dots " + dot.style + "\" d=\"M" + coordinate(axis.part(dot.x)) +
                " 500h0\"><title>" + escaped(dot.note) + "</title></path>";
      }
    }
    if (!dots.empty()) {
      rows += "<b>" + escaped(row.name) +
              "</b><div class=\"row-plot\"><svg viewBox=\"0 0 1000 1000\""
              " preserveAspectRatio=\"none\" role=\"img\" aria-label=\"" +
              escaped(row.name) + "\">" + lines + dots + "</svg></div>\n";
    }
  }
  std::string ticks;
  for (const double tick : axis.ticks) {
    ticks += "<span class=\"x\" style=\"left:" + decimal(100 * axis.part(tick), 2) + "%\">" +
             tick_text(axis, tick, chart.is_percent) + "</span>";
  }
  std::string legend;
  for (const auto& [style, name] : chart.legend) {
    legend += "<li><i class=\"" + style + "\"></i>" + escaped(name) + "</li>";
  }
  const std::string scale = "<b class=\"end\"></b><div class=\"row-ticks\">" + ticks + "</div>\n";
  return "<figure class=\"chart main\">\n<figcaption>" + escaped(chart.title) + " <small>" +
         escaped(chart.x_name) + (chart.is_log ? ", logarithmic" : "") +
         "</small></figcaption>\n<ul class=\"legend\">" + legend +
         "</ul>\n<div class=\"row-chart\">\n" + scale + rows + scale + "</div></figure>\n";
}

std::string chart_markup(const Chart& chart) {
  const std::optional<Axis> y = y_axis(chart);
  if (!y) {
    return "";
  }
  std::size_t missing = 0;
  std::string legend;
  for (const ChartSeries& series : chart.series) {
    missing += static_cast<std::size_t>(std::count_if(
        series.points.begin(), series.points.end(), [](auto& p) { return std::isinf(p.y); }));
    legend += "<li><i class=\"" + series.style + "\"></i>" + escaped(series.name) + "</li>";
  }
  std::string text =
      "<figure class=\"chart" + std::string(chart.is_main ? " main" : "") + "\">\n<figcaption>" +
      escaped(chart.title) + (y->is_log ? " <small>logarithmic</small>" : "") + "</figcaption>\n" +
      Drawing(chart, *y).text() + "<p class=\"axis\">" + escaped(chart.x_name) + "</p>\n";
  if (chart.series.size() > 1) {
    text += "<ul class=\"legend\">" + legend + "</ul>\n";
  }
  if (missing > 0) {
    text += "<p>" + std::to_string(missing) + (missing == 1 ? " value is" : " values are") +
            " infinite and not drawn.</p>\n";
  }
  return text + "</figure>\n";
}

}  // namespace fenestra::page

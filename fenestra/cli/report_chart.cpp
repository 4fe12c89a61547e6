#include <fenestra/base/page.hpp>
#include <fenestra/cli/report_chart.hpp>
#include <fenestra/cli/report_words.hpp>

#include <algorithm>
#include <cmath>

namespace fenestra::cli {

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

std::string coordinate(double part) { return decimal(kSide * part, 1); }

class Drawing {
 public:
  Drawing(const Chart& chart, const Axis& y) : chart_(chart), y_(y) {}

  std::string text() {
    text_ =
        "<div class=\"plot\"><svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\""
        " role=\"img\" aria-label=\"" +
        page::escaped(description()) + "\">\n";
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
    return std::clamp((x - chart_.x_low) / (chart_.x_high - chart_.x_low), 0.0, 1.0);
  }
  std::string left(double x) const { return coordinate(x_part(x)); }
  std::string height(double y) const { return coordinate(1 - y_.part(y)); }

  std::string value_text(double value) const {
    if (!chart_.is_percent) {
      return number_text(value, 6);
    }
    const double apart = y_.ticks[1] - y_.ticks[0];
    return percent_text(value, y_.is_log || apart < 0.01 ? (apart < 0.001 ? 2 : 1) : 0);
  }

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
               page::escaped(note.text) + "</title></rect>\n";
    }
  }

  void words() {
    for (const double tick : y_.ticks) {
      text_ += "<span class=\"y\" style=\"top:" + decimal(100 - 100 * y_.part(tick), 2) + "%\">" +
               value_text(tick) + "</span>";
    }
    for (const double tick : round_ticks(chart_.x_low, chart_.x_high, 6)) {
      // The axis ends where the data end, not at a round number.
      const bool is_inside = tick >= chart_.x_low && tick <= chart_.x_high;
      if (is_inside && (chart_.x_name != "epoch" || tick == std::round(tick))) {
        text_ += "<span class=\"x\" style=\"left:" + decimal(100 * x_part(tick), 2) + "%\">" +
                 number_text(tick, 6) + "</span>";
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
    legend += "<li><i class=\"" + series.style + "\"></i>" + page::escaped(series.name) + "</li>";
  }
  std::string text = "<figure class=\"chart" + std::string(chart.is_main ? " main" : "") +
                     "\">\n<figcaption>" + page::escaped(chart.title) +
                     (y->is_log ? " <small>logarithmic</small>" : "") + "</figcaption>\n" +
                     Drawing(chart, *y).text() + "<p class=\"axis\">" +
                     page::escaped(chart.x_name) + "</p>\n";
  if (chart.series.size() > 1) {
    text += "<ul class=\"legend\">" + legend + "</ul>\n";
  }
  if (missing > 0) {
    text += "<p>" + std::to_string(missing) + (missing == 1 ? " value is" : " values are") +
            " infinite and not drawn.</p>\n";
  }
  return text + "</figure>\n";
}

}  // namespace fenestra::cli

// Curves of a report: a drawing that is stretched to the width there is, with its words beside it
// as text, so that they stay readable at any width.
#pragma once

#include <string>
#include <vector>

namespace fenestra::cli {

struct ChartPoint {
  double x = 0;
  double y = 0;  ///< not finite: a gap in the curve
};

struct ChartSeries {
  std::string name;
  std::string style;  ///< class of the style sheet: "first", "second", "faint"
  std::vector<ChartPoint> points;
};

/// What a narrow strip of the chart says when it is pointed at.
struct ChartNote {
  double x = 0;
  std::string text;
};

struct Chart {
  std::string title;
  std::string x_name;
  std::vector<ChartSeries> series;
  std::vector<ChartNote> notes;
  double x_low = 0;
  double x_high = 1;
  bool is_percent = false;
  bool may_be_log = true;
  bool has_zero = false;  ///< the axis begins there
  bool is_main = false;   ///< larger than the others
};

/// Empty where no point is finite. The y axis is logarithmic where it may be and positive values
/// span decades.
std::string chart_markup(const Chart& chart);

/// Round numbers (1, 2, 5 times a power of ten) from `low` or below to `high` or above, about
/// `count` of them.
std::vector<double> round_ticks(double low, double high, int count);
/// The same for a logarithmic axis: powers of ten, and 2 and 5 times them where there are few.
std::vector<double> round_log_ticks(double low, double high);

}  // namespace fenestra::cli

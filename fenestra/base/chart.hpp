// Charts of pages: a drawing that is stretched to the width there is, with its words beside it as
// text, so that they stay readable at any width. A page with charts adds `kChartStyle` to its
// style. Internal: not installed.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra::page {

struct ChartPoint {
  double x = 0;
  double y = 0;  ///< not finite: a gap in the curve
};

struct ChartSeries {
  std::string name;
  std::string style;  ///< class of the style sheet: "first" to "fourth", "faint"
  std::vector<ChartPoint> points;
};

/// What a narrow strip of the chart says when it is pointed at.
struct ChartNote {
  double x = 0;
  std::string text;
};

/// Curves.
struct Chart {
  std::string title;
  std::string x_name;
  std::vector<ChartSeries> series;
  std::vector<ChartNote> notes;
  double x_low = 0;
  double x_high = 1;
  std::vector<double> x_ticks = {};  ///< round numbers where empty
  bool x_is_whole = false;           ///< of round numbers only whole ones
  bool x_is_log = false;
  bool is_percent = false;
  bool may_be_log = true;
  bool has_zero = false;  ///< the axis begins there
  bool is_main = false;   ///< larger than the others
};

/// Empty where no point is finite. The y axis is logarithmic where it may be and positive values
/// span decades.
std::string chart_markup(const Chart& chart);

/// One of several values of a row.
struct ChartDot {
  double x = 0;
  std::string style;  ///< as of a series
  std::string note;   ///< what it says when it is pointed at
};

struct ChartRow {
  std::string name;
  std::vector<ChartDot> dots;
};

/// Values in rows with names: many things beside each other on one axis.
struct RowChart {
  std::string title;
  std::string x_name;
  std::vector<ChartRow> rows;
  std::vector<std::pair<std::string, std::string>> legend;  ///< style and name
  std::vector<double> marks = {};                           ///< values with a line through all rows
  /// One value far away would press all others together: what lies beyond is drawn on the edge.
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool is_log = false;
  bool is_percent = false;
};

/// Empty where no value can be drawn; rows without one are left out.
std::string chart_markup(const RowChart& chart);

/// Round numbers (1, 2, 5 times a power of ten) from `low` or below to `high` or above, about
/// `count` of them.
std::vector<double> round_ticks(double low, double high, int count);
/// The same for a logarithmic axis: powers of ten, and 2 and 5 times them where there are few.
std::vector<double> round_log_ticks(double low, double high);

inline constexpr std::string_view kChartStyle = R"css(
.charts { display: flex; flex-wrap: wrap; gap: 1rem; margin-top: .75rem; }
.chart { flex: 1 1 20rem; margin: 0; padding: .9rem 1.1rem .7rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; min-width: 0; }
.chart.main { flex-basis: 100%; }
.chart figcaption { font-weight: 600; }
.chart figcaption small { color: var(--soft); font-weight: 400; }
.chart .axis { margin: 1.55rem 0 0; max-width: none; text-align: center; font-size: .8rem; }
.plot { position: relative; height: 11rem; margin: 1rem .6rem 0 3.1rem; }
.chart.main .plot { height: clamp(13rem, 24vw, 22rem); }
.plot svg { position: absolute; inset: 0; height: 100%; overflow: visible; }
.plot span, .row-ticks span { position: absolute; color: var(--soft); font-size: .75rem; line-height: 1;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
.plot span.y { right: calc(100% + .5rem); transform: translateY(-50%); }
.plot span.x { top: calc(100% + .5rem); }
span.x { transform: translateX(-50%); }
.plot path, .row-plot path { fill: none; vector-effect: non-scaling-stroke; }
.curve { stroke-width: 2; stroke-linejoin: round; }
.dots { stroke-width: 7; stroke-linecap: round; }
.curve.faint { stroke-width: 1.25; }
.first { stroke: var(--first); } .second { stroke: var(--second); }
.third { stroke: var(--third); } .fourth { stroke: var(--fourth); } .faint { stroke: var(--faint); }
i.first { background: var(--first); } i.second { background: var(--second); }
i.third { background: var(--third); } i.fourth { background: var(--fourth); }
i.faint { background: var(--faint); }
.strip { fill: var(--ink); opacity: 0; }
.strip:hover { opacity: .07; }
.row-chart { display: grid; grid-template-columns: max-content 1fr; column-gap: .9rem;
  margin-top: .75rem; font-size: .8rem; line-height: 1.35; }
.row-chart b { font-weight: 400; text-align: right; padding: .1rem 0; overflow-wrap: anywhere; }
.row-chart b.end { padding: 0; }
.row-plot { position: relative; min-height: 1.25rem; border-top: 1px solid var(--line);
  margin-right: 1rem; }
.row-plot svg { position: absolute; inset: 0; height: 100%; overflow: visible; }
.row-plot .dots { opacity: .75; }
.row-plot .dots:hover { opacity: 1; stroke-width: 11; }
.row-plot .mark { stroke: var(--soft); stroke-dasharray: 3 3; }
.row-ticks { position: relative; height: 1.4rem; margin-right: 1rem; }
.row-ticks span { top: .35rem; }
@media (max-width: 40rem) {
  .chart { padding: .75rem .8rem .6rem; }
  .row-chart { grid-template-columns: 1fr; }
  .row-chart b { text-align: left; padding: .3rem 0 0; }
  .row-plot { border-top: 0; min-height: 1.1rem; }
  .row-plot, .row-ticks { margin-left: .5rem; }
}
@media print { .chart { break-inside: avoid; } }
)css";

}  // namespace fenestra::page

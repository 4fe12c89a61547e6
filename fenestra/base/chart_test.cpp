// Ticks and curves of charts, as far as they are numbers and markup.
#include <fenestra/base/chart.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

namespace fenestra::page {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

TEST(ChartTicks, AreRoundAndAroundTheData) {
  EXPECT_EQ(round_ticks(0, 1, 5), (std::vector<double>{0, 0.2, 0.4, 0.6, 0.8, 1}));
  EXPECT_EQ(round_ticks(1, 12, 6), (std::vector<double>{0, 2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(round_ticks(0.973, 0.991, 5),
            (std::vector<double>{0.97, 0.975, 0.98, 0.985, 0.99, 0.995}));
  EXPECT_EQ(round_log_ticks(0.012, 2.3),
            (std::vector<double>{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5}));
}

TEST(ChartTicks, EndForAnyNumbers) {
  const double values[] = {0, 1, -1, 3e-5, 5e-324, 1e-310, 1e308, -1e308, 1e16, 1e16 + 2};
  for (const double a : values) {
    for (const double b : values) {
      const auto [low, high] = std::minmax(a, b);
      const std::vector<double> ticks = round_ticks(low, high, 5);
      EXPECT_GE(ticks.size(), 2U);
      EXPECT_LE(ticks.size(), 12U) << low << " " << high;
      EXPECT_LT(ticks.front(), ticks.back());
      if (low > 0) {
        const std::vector<double> powers = round_log_ticks(low, high * 40);
        EXPECT_GE(powers.size(), 2U) << low << " " << high;
        EXPECT_LE(powers.size(), 16U) << low << " " << high;
      }
    }
  }
}

Chart chart_of(const std::vector<double>& values) {
  Chart chart{
      .title = "Loss", .x_name = "epoch", .series = {{"training", "first", {}}}, .notes = {}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    chart.series[0].points.push_back({static_cast<double>(i), values[i]});
  }
  chart.x_high = static_cast<double>(values.size() - 1);
  return chart;
}

TEST(Charts, IsLogarithmicWhereValuesSpanDecades) {
  EXPECT_NE(chart_markup(chart_of({10, 1, 0.01})).find("logarithmic"), std::string::npos);
  EXPECT_EQ(chart_markup(chart_of({3, 2, 1})).find("logarithmic"), std::string::npos);
  EXPECT_EQ(chart_markup(chart_of({10, 1, 0})).find("logarithmic"), std::string::npos);
}

TEST(Charts, HasGapsWhereNumbersAreNone) {
  const std::string text = chart_markup(chart_of({1, kNothing, 2, 1, kInfinity}));
  EXPECT_NE(text.find("1 value is infinite"), std::string::npos);
  // Two pieces, and dots of which each begins anew.
  const std::size_t path = text.find("<path class=\"curve first\"");
  const std::string curve = text.substr(path, text.find("/>", path) - path);
  EXPECT_EQ(std::count(curve.begin(), curve.end(), 'M'), 2);
  EXPECT_EQ(std::count(curve.begin(), curve.end(), 'L'), 1);
  EXPECT_EQ(chart_markup(chart_of({kNothing, kInfinity})), "");
}

TEST(Charts, LogarithmicSizesLieEvenly) {
  Chart chart{.title = "speed", .x_name = "batch", .series = {{"ours", "first", {}}}, .notes = {}};
  for (const double x : {1.0, 4.0, 4.25, 16.0}) {
    chart.series[0].points.push_back({x, 1});
    chart.x_ticks.push_back(x);
  }
  chart.x_low = 1;
  chart.x_high = 16;
  chart.x_is_log = true;
  const std::string text = chart_markup(chart);
  EXPECT_NE(text.find("left:50.00%\">4<"), std::string::npos);
  // Nothing but the ticks that were given, and none upon another.
  EXPECT_EQ(text.find(">10<"), std::string::npos);
  EXPECT_EQ(text.find(">4.25<"), std::string::npos);
}

RowChart rows_of(const std::vector<double>& values) {
  RowChart chart{.title = "Speed", .x_name = "times", .rows = {}, .legend = {{"first", "forward"}}};
  for (const double value : values) {
    chart.rows.push_back({"row <" + std::to_string(chart.rows.size()) + ">", {}});
    chart.rows.back().dots.push_back({value, "first", "note"});
  }
  chart.marks = {1};
  return chart;
}

TEST(RowCharts, LeaveOutWhatCannotBeDrawn) {
  RowChart chart = rows_of({0.5, kNothing, 2, 0});
  chart.is_log = true;
  const std::string text = chart_markup(chart);
  EXPECT_NE(text.find("row &lt;0&gt;"), std::string::npos);
  EXPECT_EQ(text.find("row &lt;1&gt;"), std::string::npos);
  EXPECT_NE(text.find("row &lt;2&gt;"), std::string::npos);
  EXPECT_EQ(text.find("row &lt;3&gt;"), std::string::npos);
  EXPECT_EQ(chart_markup(rows_of({kNothing})), "");
  EXPECT_EQ(chart_markup(rows_of({})), "");
}

TEST(RowCharts, PutWhatIsFarAwayOnTheEdge) {
  RowChart chart = rows_of({0, 1000, 1});
  chart.most = 2;
  const std::string text = chart_markup(chart);
  EXPECT_NE(text.find("<path class=\"dots first\" d=\"M1000.0 500h0\">"), std::string::npos);
  EXPECT_NE(text.find("<path class=\"dots first\" d=\"M500.0 500h0\">"), std::string::npos);
}

TEST(RowCharts, PutDotsOnTheAxis) {
  // Ticks from 0 to 2: the mark and the dot in the middle.
  const std::string text = chart_markup(rows_of({0, 2, 1}));
  EXPECT_NE(text.find("<path class=\"dots first\" d=\"M500.0 500h0\">"), std::string::npos);
  EXPECT_NE(text.find("<path class=\"mark\" d=\"M500.0 0V1000\"/>"), std::string::npos);
  EXPECT_NE(text.find("left:50.00%"), std::string::npos);
}

}  // namespace
}  // namespace fenestra::page

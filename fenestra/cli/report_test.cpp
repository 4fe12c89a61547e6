// What of a report is a number. The pages themselves are read and opened by
// tests/cli/report_test.py.
#include <fenestra/cli/report.hpp>
#include <fenestra/cli/report_chart.hpp>
#include <fenestra/cli/report_picture.hpp>
#include <fenestra/io/image.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace fenestra::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(ReportTicks, AreRoundAndAroundTheData) {
  EXPECT_EQ(round_ticks(0, 1, 5), (std::vector<double>{0, 0.2, 0.4, 0.6, 0.8, 1}));
  EXPECT_EQ(round_ticks(1, 12, 6), (std::vector<double>{0, 2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(round_ticks(0.973, 0.991, 5),
            (std::vector<double>{0.97, 0.975, 0.98, 0.985, 0.99, 0.995}));
  EXPECT_EQ(round_log_ticks(0.012, 2.3),
            (std::vector<double>{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5}));
}

TEST(ReportTicks, EndForAnyNumbers) {
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

TEST(ReportChart, IsLogarithmicWhereValuesSpanDecades) {
  EXPECT_NE(chart_markup(chart_of({10, 1, 0.01})).find("logarithmic"), std::string::npos);
  EXPECT_EQ(chart_markup(chart_of({3, 2, 1})).find("logarithmic"), std::string::npos);
  EXPECT_EQ(chart_markup(chart_of({10, 1, 0})).find("logarithmic"), std::string::npos);
}

TEST(ReportChart, HasGapsWhereNumbersAreNone) {
  const std::string text = chart_markup(chart_of({1, kUnknown, 2, 1, kInfinity}));
  EXPECT_NE(text.find("1 value is infinite"), std::string::npos);
  // Two pieces, and dots of which each begins anew.
  const std::size_t path = text.find("<path class=\"curve first\"");
  const std::string curve = text.substr(path, text.find("/>", path) - path);
  EXPECT_EQ(std::count(curve.begin(), curve.end(), 'M'), 2);
  EXPECT_EQ(std::count(curve.begin(), curve.end(), 'L'), 1);
  EXPECT_EQ(chart_markup(chart_of({kUnknown, kInfinity})), "");
}

/// The picture inside a tag, read back by the library's decoder.
io::Image image_in(const std::string& markup) {
  const std::string start = "base64,";
  const std::size_t begin = markup.find(start) + start.size();
  const std::string text = markup.substr(begin, markup.find('"', begin) - begin);
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::byte> bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text.substr(0, text.find('='))) {
    bits = bits << 6U | static_cast<unsigned>(digits.find(c));
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<std::byte>(bits >> static_cast<unsigned>(count) & 255U));
    }
  }
  return io::decode_image(bytes, "picture");
}

TEST(ReportPicture, ShowsTheNumbersOfASample) {
  const io::Image grey = image_in(sample_markup(Tensor<float>({1, 1, 2}, {0.0F, 1.0F}), "a"));
  EXPECT_EQ(grey.bytes, (std::vector<std::uint8_t>{0, 0, 0, 255, 255, 255}));
  const io::Image colours =
      image_in(sample_markup(Tensor<float>({3, 1, 1}, {1.0F, 0.0F, 0.2F}), "a"));
  EXPECT_EQ(colours.bytes, (std::vector<std::uint8_t>{255, 0, 51}));
  // What was normalised is stretched.
  const io::Image stretched =
      image_in(sample_markup(Tensor<float>({1, 1, 3}, {-2.0F, 0.0F, 2.0F}), "a"));
  EXPECT_EQ(stretched.bytes, (std::vector<std::uint8_t>{0, 0, 0, 128, 128, 128, 255, 255, 255}));
}

TEST(ReportPicture, DoesNotHideWhatIsNotANumber) {
  const io::Image image =
      image_in(sample_markup(Tensor<float>({1, 1, 2}, {std::nanf(""), 1.0F}), "a"));
  EXPECT_EQ(image.bytes, (std::vector<std::uint8_t>{255, 0, 255, 255, 255, 255}));
  const Saliency saliency{
      Tensor<float>({2, 1, 2}), Tensor<float>({2, 1, 2}, {std::nanf(""), 0.0F, 1.0F, 0.0F}), ""};
  EXPECT_EQ(image_in(gradient_markup(saliency, "a")).bytes,
            (std::vector<std::uint8_t>{255, 0, 255, 0, 0, 4}));
}

TEST(ReportPicture, PutsSlicesOfAVolumeSideBySide) {
  Tensor<float> volume({1, 2, 1, 1}, {0.0F, 1.0F});
  const io::Image image = image_in(sample_markup(volume, "a"));
  EXPECT_EQ((std::pair{image.height, image.width}), (std::pair<Index, Index>{1, 2}));
}

TEST(ReportPicture, MasksAndTheirDifferencesAgree) {
  const Tensor<Index> mask({1, 2}, {0, 1});
  const io::Image same = image_in(difference_markup(mask, mask, "a"));
  EXPECT_TRUE(std::equal(same.bytes.begin(), same.bytes.begin() + 3, same.bytes.begin() + 3));
  const io::Image colours = image_in(mask_markup(mask, "a"));
  char second[8];
  std::snprintf(
      second, sizeof second, "#%02x%02x%02x", colours.bytes[3], colours.bytes[4], colours.bytes[5]);
  EXPECT_EQ(class_colour(1), second);
}

}  // namespace
}  // namespace fenestra::cli

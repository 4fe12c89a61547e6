// What of a report is a number. The pages themselves are read and opened by
// tests/cli/report_test.py.
#include <fenestra/cli/report.hpp>
#include <fenestra/cli/report_picture.hpp>
#include <fenestra/io/image.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace fenestra::cli {
namespace {

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

#include <fenestra/base/error.hpp>
#include <fenestra/cli/table.hpp>
#include <fenestra/cli/terminal.hpp>
#include <fenestra/cli/terminal_picture.hpp>
#include <fenestra/cli/wrap.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace fenestra::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Terminal plain(std::size_t width) { return {.is_live = false, .width = width, .has_width = true}; }
Terminal unicode(std::size_t width) {
  return {.is_live = true, .width = width, .has_width = true, .has_unicode = true};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

TEST(Terminal, TextIsMeasuredInColumns) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("conv"), 4U);
  EXPECT_EQ(display_width("Größe…"), 6U);
  EXPECT_EQ(display_width("数字"), 4U);
  EXPECT_EQ(display_width("e\u0301"), 1U);
  EXPECT_EQ(display_width("\xff\xfe"), 2U);
  EXPECT_EQ(display_width("\xe2\x80"), 2U);  // cut off
}

TEST(Terminal, LongNamesLoseTheirMiddle) {
  EXPECT_EQ(shortened_middle("stage2.0.conv.weight", 20, true), "stage2.0.conv.weight");
  EXPECT_EQ(shortened_middle("stage2.0.conv.weight", 11, true), "stage…eight");
  EXPECT_EQ(shortened_middle("stage2.0.conv.weight", 11, false), "stag...ight");
  EXPECT_EQ(shortened_end("stage2.0.conv.weight", 7, true), "stage2…");
  EXPECT_EQ(shortened_end("stage2.0.conv.weight", 2, false), "st");
  EXPECT_EQ(shortened_end("a\x1b[31mb\n", 20, true), "a?[31mb?");
}

TEST(Terminal, WhatIsShortenedFitsAtEveryWidth) {
  for (const std::string text : {"stage2.0.conv.weight", "数字的图片都在这里", "Größenänderung"}) {
    for (std::size_t width = 0; width < 24; ++width) {
      for (const bool has_unicode : {false, true}) {
        EXPECT_LE(display_width(shortened_middle(text, width, has_unicode)), width);
        EXPECT_LE(display_width(shortened_end(text, width, has_unicode)), width);
      }
    }
  }
}

TEST(Terminal, BarsAreAsWideAsTheyAreAskedFor) {
  for (const double part : {-1.0, 0.0, 0.03, 0.5, 0.999, 1.0, 7.0, std::nan("")}) {
    for (std::size_t width = 0; width < 12; ++width) {
      EXPECT_EQ(display_width(bar_text(part, width, true)), width) << part;
      EXPECT_EQ(display_width(bar_text(part, width, false)), width) << part;
    }
  }
  EXPECT_EQ(bar_text(0.5, 4, false), "##..");
  EXPECT_EQ(bar_text(0.625, 2, true), "█▎");
  EXPECT_EQ(bar_text(1, 2, true), "██");
}

TEST(Terminal, ProgressGivesUpTheBarBeforeTheWords) {
  const ProgressState state{.label = "epoch 3/10", .part = 0.25, .details = "loss 0.1234"};
  EXPECT_EQ(progress_text(state, 40, false), "epoch 3/10 |###............| loss 0.1234");
  EXPECT_EQ(progress_text(state, 30, false), "epoch 3/10 25% loss 0.1234");
  EXPECT_EQ(progress_text(state, 20, true), "epoch 3/10 25% loss…");
  for (std::size_t width = 0; width < 130; ++width) {
    EXPECT_LE(display_width(progress_text(state, width, true)), width);
    EXPECT_LE(display_width(progress_text(state, width, false)), width);
  }
}

TEST(Terminal, ColoursAreForTerminalsThatHaveThem) {
  Terminal terminal = unicode(80);
  EXPECT_EQ(painted("a", Paint::red, terminal), "a");
  terminal.has_colour = true;
  EXPECT_EQ(painted("a", Paint::red, terminal), "\x1b[31ma\x1b[0m");
}

// Tables.

const std::vector<std::vector<std::string>> kRows = {
    {"layer", "output", "parameters"},
    {"stage2.0.conv.weight.of.a.long.name", "(1, 64, 56, 56)", "36,864"},
    {"stage2.1", "(1, 64, 56, 56)", "128"},
    {"all", "", "36,992"}};
const TableOptions kOptions{
    .align = {Align::left, Align::left, Align::right}, .has_header = true, .has_footer = true};

TEST(Table, ColumnsAreAlignedAndNumbersStandOnTheRight) {
  EXPECT_EQ(table_text(kRows, kOptions, plain(120)),
            "layer                                output           parameters\n"
            "----------------------------------------------------------------\n"
            "stage2.0.conv.weight.of.a.long.name  (1, 64, 56, 56)      36,864\n"
            "stage2.1                             (1, 64, 56, 56)         128\n"
            "----------------------------------------------------------------\n"
            "all                                                       36,992\n");
}

TEST(Table, WhatIsTooWideLosesTheMiddleOfItsNames) {
  EXPECT_EQ(table_text(kRows, kOptions, unicode(44)),
            "layer            output           parameters\n"
            "────────────────────────────────────────────\n"
            "stage2.…ng.name  (1, 64, 56, 56)      36,864\n"
            "stage2.1         (1, 64, 56, 56)         128\n"
            "────────────────────────────────────────────\n"
            "all                                   36,992\n");
}

TEST(Table, ColumnsOfNumbersAreLeftOutBeforeNumbersLoseDigits) {
  const std::vector<std::vector<std::string>> rows = {
      {"name", "layer", "parameters", "multiply-adds", "sees"},
      {"stage2.0.conv", "conv", "36,864", "115,605,504", "99x99"},
      {"total", "", "36,992", "115,605,504", ""}};
  const TableOptions options{
      .align = {Align::left, Align::left, Align::right, Align::right, Align::right},
      .has_header = true,
      .has_footer = true};
  EXPECT_EQ(table_text(rows, options, unicode(45)),
            "name      layer  parameters  multiply-adds  …\n"
            "─────────────────────────────────────────────\n"
            "stag…onv  conv       36,864    115,605,504\n"
            "─────────────────────────────────────────────\n"
            "total                36,992    115,605,504\n");
  EXPECT_EQ(table_text(rows, options, plain(33)),
            "name       layer  parameters  ...\n"
            "---------------------------------\n"
            "sta...onv  conv       36,864\n"
            "---------------------------------\n"
            "total                 36,992\n");
  for (std::size_t width = 1; width < 70; ++width) {
    for (const std::string& line : lines_of(table_text(rows, options, plain(width)))) {
      EXPECT_LE(display_width(line), width);
    }
  }
}

TEST(Table, NoLineIsEverWiderThanTheTerminal) {
  for (std::size_t width = 1; width < 70; ++width) {
    for (const Terminal& terminal : {plain(width), unicode(width)}) {
      for (const std::string& line : lines_of(table_text(kRows, kOptions, terminal))) {
        EXPECT_LE(display_width(line), width);
      }
    }
  }
}

TEST(Table, APipeHasNoWidth) {
  const std::string text = table_text(kRows, kOptions, {.width = 20, .has_width = false});
  EXPECT_NE(text.find("stage2.0.conv.weight.of.a.long.name"), std::string::npos);
  EXPECT_EQ(table_text({}, kOptions, plain(80)), "");
}

// Curves and pictures.

TEST(Sparkline, RisesWithTheValues) {
  EXPECT_EQ(sparkline(std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}, 8, true), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline(std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}, 8, false), "_.-:=+*#");
  EXPECT_EQ(sparkline(std::vector<double>{0, 0, 7, 7}, 2, true), "▁█");
  // Ten times as much each: even steps of the logarithm.
  EXPECT_EQ(sparkline(std::vector<double>{1, 10, 100}, 3, true), "▁▅█");
}

TEST(Sparkline, TakesAnyNumbers) {
  EXPECT_EQ(sparkline({}, 8, true), "");
  EXPECT_EQ(sparkline(std::vector<double>{1}, 0, true), "");
  EXPECT_EQ(sparkline(std::vector<double>{3, 3}, 8, true), "▁▁");
  EXPECT_EQ(sparkline(std::vector<double>{std::nan(""), kInfinity}, 8, true), "  ");
  EXPECT_EQ(sparkline(std::vector<double>{0, std::nan(""), 1}, 8, true), "▁ █");
  EXPECT_EQ(sparkline(std::vector<double>{-1.7e308, 1.7e308}, 8, true), "▁█");
  for (std::size_t count = 1; count < 50; ++count) {
    const std::vector<double> values(count, 1.0);
    EXPECT_EQ(display_width(sparkline(values, 20, true)), std::min<std::size_t>(count, 20));
  }
}

Tensor<float> checks(Index side) {
  Tensor<float> sample({1, side, side});
  for (Index y = 0; y < side; ++y) {
    for (Index x = 0; x < side; ++x) {
      sample.mutable_at(0, y, x) = (x + y) % 2 == 0 ? 1.0F : 0.0F;
    }
  }
  return sample;
}

TEST(Pictures, StandSideBySideWithTheirCaptions) {
  const std::vector<CaptionedPicture> pictures = {{checks(2), "7", false}, {checks(2), "3", true}};
  EXPECT_EQ(picture_rows(pictures, plain(40)),
            "@@    @@\n"
            "  @@    @@\n"
            " 7     3\n");
  EXPECT_EQ(picture_rows(pictures, unicode(40)),
            "██    ██\n"
            "  ██    ██\n"
            " 7     3\n");
  // A row of its own where there is room for one only.
  EXPECT_EQ(picture_rows(pictures, plain(6)), "@@\n  @@\n 7\n\n@@\n  @@\n 3\n");
}

TEST(Pictures, ColoursHoldTwoPixelsInACharacter) {
  Terminal terminal = unicode(40);
  terminal.has_colour = true;
  const std::vector<CaptionedPicture> pictures = {
      {Tensor<float>({2, 1}, {0.0F, 1.0F}), "wrong", true}};
  EXPECT_EQ(picture_rows(pictures, terminal, 1),
            "\x1b[38;5;232;48;5;255m▀\x1b[0m\n\x1b[31m…\x1b[0m\n");
  EXPECT_NE(picture_rows(pictures, terminal).find("\x1b[31mwrong\x1b[0m"), std::string::npos);
}

TEST(Pictures, FitAtEveryWidth) {
  std::vector<CaptionedPicture> pictures;
  for (const Index side : {1, 5, 14, 28, 64, 300}) {
    pictures.push_back({checks(side), "is 7, read as 3 (99.5 %)", false});
  }
  for (const std::size_t width : {1U, 7U, 40U, 80U, 120U}) {
    for (const Terminal& terminal : {plain(width), unicode(width)}) {
      for (const std::string& line : lines_of(picture_rows(pictures, terminal))) {
        EXPECT_LE(display_width(line), width);
      }
    }
  }
}

TEST(Wrap, LinesGoOnBelowTheirSecondColumn) {
  EXPECT_EQ(wrapped("  --seed S   of weights and order of the samples\nshort\n", plain(30)),
            "  --seed S   of weights and\n"
            "             order of the\n"
            "             samples\n"
            "short\n");
  EXPECT_EQ(wrapped("one two three four", plain(10)), "one two\n  three\n  four\n");
  EXPECT_EQ(wrapped("", plain(10)), "");
  const std::string text = "a word that no line can hold: " + std::string(40, 'x') + " end\n";
  EXPECT_EQ(wrapped(text, Terminal{}), text);
  for (std::size_t width = 1; width < 40; ++width) {
    const std::string narrow = wrapped(text, plain(width));
    std::string words = narrow;
    std::erase_if(words, [](char c) { return c == ' ' || c == '\n'; });
    EXPECT_EQ(words, "awordthatnolinecanhold:" + std::string(40, 'x') + "end") << width;
  }
}

TEST(Wrap, LinesAreCutAtTheEndOfTheTerminal) {
  EXPECT_EQ(fitted("abcdefghij\nabc\n\nlast one", plain(6)), "abc...\nabc\n\nlas...");
  EXPECT_EQ(fitted("abcdefghij", unicode(6)), "abcde\u2026");
  EXPECT_EQ(fitted("abcdefghij", Terminal{}), "abcdefghij");
}

TEST(Pictures, TakeAnyNumbersAndRefuseOtherShapes) {
  const float nan = std::nanf("");
  EXPECT_EQ(
      picture_rows(std::vector<CaptionedPicture>{{Tensor<float>({1, 2}, {nan, -5.0F}), "", false}},
                   plain(40)),
      "\n\n");
  EXPECT_EQ(picture_rows({}, plain(40)), "");
  EXPECT_NO_THROW(
      picture_rows(std::vector<CaptionedPicture>{{Tensor<float>({0, 3}), "", false}}, plain(40)));
  EXPECT_THROW(
      picture_rows(std::vector<CaptionedPicture>{{Tensor<float>({3}), "", false}}, plain(40)),
      Error);
}

}  // namespace
}  // namespace fenestra::cli

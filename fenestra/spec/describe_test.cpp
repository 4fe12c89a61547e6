// What people are shown of an axis: the formula with its numbers, by each rule, and the drawing of
// its windows.
#include <fenestra/spec/describe.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fenestra {
namespace {

using Lines = std::vector<std::string>;

WindowAxis sliding(const AxisRequest& r, ExtentRule rule = ExtentRule::floor) {
  return resolve_sliding(r, 0, rule).axis;
}

TEST(Describe, TheFormulaFollowsTheRuleThatGaveTheExtent) {
  EXPECT_EQ(
      extent_formula(sliding({.in = 32, .kernel = 3, .stride = 2, .pad_low = 1, .pad_high = 1})),
      "floor((32 + 1 + 1 - 3)/2) + 1 = 16");
  EXPECT_EQ(extent_formula(sliding({.in = 7, .kernel = 3, .stride = 3}, ExtentRule::ceil)),
            "floor((7 + 0 + 0 - 3 + 2)/3) + 1 = 3");
  EXPECT_EQ(extent_formula(sliding({.in = 6, .kernel = 1, .stride = 2}, ExtentRule::ceil)),
            "floor((6 + 0 + 0 - 1 + 1)/2) + 1 = 4, less a window that starts beyond the input: 3");
  EXPECT_EQ(
      extent_formula(resolve_transposed(
                         {.in = 3, .kernel = 3, .stride = 2, .pad_low = 1, .pad_high = 1}, 0, 1, {})
                         .axis),
      "(3 - 1)*2 - 1 - 1 + 3 + 1 = 6");
  EXPECT_EQ(extent_formula(resolve_adaptive(10, 3, 0).axis), "output_size = 3");
}

TEST(Describe, WindowsAreDrawnUnderTheCellsTheyLookAt) {
  EXPECT_EQ(draw_windows(sliding({.in = 6, .kernel = 3, .stride = 2, .pad_low = 1, .pad_high = 1})),
            (Lines{"cells      . 0 1 2 3 4 5 .",  //
                   "window 0   o # #",            //
                   "window 1       # # #",        //
                   "window 2           # # #"}));
}

TEST(Describe, TheOverhangOfCeilModeIsNotPadding) {
  const WindowAxis axis = sliding({.in = 3, .kernel = 2, .stride = 2}, ExtentRule::ceil);
  EXPECT_EQ(draw_windows(axis),
            (Lines{"cells      0 1 2 ~",  //
                   "window 0   # #",      //
                   "window 1       # o"}));
  EXPECT_EQ(drawing_legend(axis), "# tap, o tap outside the input, ~ beyond the padding");
}

TEST(Describe, DilationLeavesGaps) {
  EXPECT_EQ(draw_windows(sliding({.in = 5, .kernel = 2, .dilation = 3})),
            (Lines{"cells      0 1 2 3 4",  //
                   "window 0   #     #",    //
                   "window 1     #     #"}));
}

TEST(Describe, BinsMayOverlap) {
  EXPECT_EQ(draw_windows(resolve_adaptive(4, 3, 0).axis),
            (Lines{"cells   0 1 2 3",  //
                   "bin 0   # #",      //
                   "bin 1     # #",    //
                   "bin 2       # #"}));
}

TEST(Describe, ATransposedAxisDrawsWhereEachInputCellLands) {
  const WindowAxis axis =
      resolve_transposed({.in = 2, .kernel = 3, .stride = 2, .pad_low = 1, .pad_high = 1}, 0, 0, {})
          .axis;
  EXPECT_EQ(draw_windows(axis),
            (Lines{"y cells    . 0 1 2 .",  //
                   "x cell 0   o # #",      //
                   "x cell 1       # # o"}));
  EXPECT_EQ(drawing_legend(axis), "# tap, o tap whose product is cropped, . cropped cell");
}

TEST(Describe, WhatIsLeftOutIsCounted) {
  const Lines lines = draw_windows(sliding({.in = 1000, .kernel = 3}), 2);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].substr(lines[0].size() - 4), " ...");
  EXPECT_LE(lines[0].size(), 76u);
  EXPECT_EQ(lines[3], "not drawn: 996 windows after");
}

TEST(Describe, ColumnsAreAsWideAsTheLargestCellDrawn) {
  const Lines lines = draw_windows(sliding({.in = 11, .kernel = 1, .stride = 10}));
  EXPECT_EQ(lines[0], "cells       0  1  2  3  4  5  6  7  8  9 10");
  EXPECT_EQ(lines[2], "window 1                                  #");
}

TEST(Describe, TheLargestAxesAreDrawnAsQuicklyAsSmallOnes) {
  const Index huge = Index{1} << 60;
  for (const AxisRequest& r :
       {AxisRequest{.in = huge, .kernel = 3},
        AxisRequest{.in = 1, .kernel = 1, .pad_low = huge, .pad_high = huge},
        AxisRequest{.in = huge, .kernel = 2, .stride = huge, .dilation = huge - 1}}) {
    const auto [axis, fault] = resolve_sliding(r, 0, ExtentRule::ceil);
    ASSERT_FALSE(fault);
    const Lines lines = draw_windows(axis);
    EXPECT_LE(lines.size(), 10u);
    for (const std::string& line : lines) {
      EXPECT_LE(line.size(), 120u) << line;  // the columns and two numbers of 19 digits
    }
  }
}

}  // namespace
}  // namespace fenestra

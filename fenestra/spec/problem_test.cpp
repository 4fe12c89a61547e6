// Problem strings: what each field reads as, and what is refused, at which byte and in which words.
#include <fenestra/spec/problem.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace fenestra {
namespace {

struct TwoWords {
  Layout layout = Layout::channels_first;
  PadCells pad_cells = PadCells::ignore;

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    layout_field<TwoWords>(field);
    field("pad_cells", &TwoWords::pad_cells, {.help = "what padding is"});
  }
};

TEST(Problem, ReadsEveryKindOfField) {
  Problem p(
      "x=2x4x9x8 s=scalar stride=2,1 one=3 padding=1:0,2 groups=4 beta=-0.5 ceil_mode=true "
      "normalised=0 layout=channels_last pad_cells=zero");
  EXPECT_EQ(p.shape("x"), (Shape{2, 4, 9, 8}));
  EXPECT_EQ(p.shape("s"), Shape{});
  EXPECT_EQ(p.per_axis("stride", 1), (PerAxis{2, 1}));
  EXPECT_EQ(p.padding("padding"), (Padding{{1, 0}, {2, 2}}));
  EXPECT_EQ(p.integer("groups", 1), 4);
  EXPECT_EQ(p.real("beta", 1.0), -0.5);
  EXPECT_TRUE(p.flag("ceil_mode", false));
  EXPECT_FALSE(p.flag("normalised", true));
  EXPECT_EQ(p.options<TwoWords>().layout, Layout::channels_last);
  EXPECT_EQ(p.options<TwoWords>().pad_cells, PadCells::zero);
  EXPECT_THROW(p.finish("op"), Error) << "nobody has read `one`";
  EXPECT_EQ(p.per_axis("one", 1), PerAxis(3)) << "one number holds for every axis";
  EXPECT_EQ(p.axis_list("one"), (PerAxis{3})) << "or is a list of one";
  EXPECT_NO_THROW(p.finish("op"));
}

TEST(Problem, AFieldThatIsNotThereHasItsDefault) {
  Problem p("  ");
  EXPECT_FALSE(p.has("x"));
  EXPECT_EQ(p.per_axis("stride", 1), PerAxis(1));
  EXPECT_EQ(p.padding("padding"), Padding());
  EXPECT_EQ(p.integer("groups", 7), 7);
  EXPECT_EQ(p.optional_integer("divisor"), OptionalIndex());
  EXPECT_EQ(p.real("beta", 1.5), 1.5);
  EXPECT_TRUE(p.flag("flag", true));
  EXPECT_EQ(p.options<TwoWords>().layout, Layout::channels_first);
  EXPECT_EQ(p.options<TwoWords>().pad_cells, PadCells::ignore);
  EXPECT_NO_THROW(p.finish("op"));
}

TEST(Problem, PaddingHasFiveForms) {
  const auto padding = [](const std::string& text) { return Problem("p=" + text).padding("p"); };
  EXPECT_EQ(padding("same"), Padding(same));
  EXPECT_EQ(padding("valid"), Padding(valid));
  EXPECT_EQ(padding("3"), Padding(3));
  EXPECT_EQ(padding("1,2"), (Padding{1, 2}));
  EXPECT_EQ(padding("1:2"), (Padding{{1, 2}}));
  EXPECT_EQ(padding("1:2,3,4:5"), (Padding{{1, 2}, {3, 3}, {4, 5}}));
}

TEST(Problem, IntegersReachTheEndsOf64Bits) {
  Problem p("a=9223372036854775807 b=-9223372036854775808 c=9223372036854775808");
  EXPECT_EQ(p.integer("a", 0), std::numeric_limits<Index>::max());
  EXPECT_EQ(p.integer("b", 0), std::numeric_limits<Index>::min());
  EXPECT_THROW(p.integer("c", 0), Error);
}

struct Refusal {
  const char* text;
  std::function<void(Problem&)> read;
  int byte;
  const char* expected;
  const char* found;
};

TEST(Problem, RefusesWithTheByteTheExpectationAndWhatWasFound) {
  const auto shape = [](Problem& p) { p.shape("x"); };
  const auto list = [](Problem& p) { p.per_axis("s", 1); };
  const auto pad = [](Problem& p) { p.padding("p"); };
  const auto nothing = [](Problem&) {};
  const std::vector<Refusal> table = {
      {"x", nothing, 0, "key=value", "x"},
      {"x=1 stride", nothing, 4, "key=value", "stride"},
      {"=3", nothing, 0, "key=value", "=3"},
      {"x= y=1", nothing, 2, "a value for x", "nothing"},
      {"x=1 x=2", nothing, 4, "each key once", "x a second time"},
      {"", shape, 0, "x=...", "the end"},
      {"y=1", shape, 3, "x=...", "the end"},
      {"x=2x", shape, 4, "an integer", "the end"},
      {"x=2xx3", shape, 4, "an integer", "x3"},
      {"x=2x3,4", shape, 5, "an extent or x", ",4"},
      {"x=99999999999999999999", shape, 2, "64 bits", "9999"},
      {"x=1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1", shape, 34, "at most 16 extents", "1"},
      {"s=a", list, 2, "an integer", "a"},
      {"s=1,", list, 4, "an integer", "the end"},
      {"s=1;2", list, 3, "a comma", ";2"},
      {"s=1,1,1,1,1,1,1,1,1", list, 18, "at most 8 values", "1"},
      {"p=1:", pad, 4, "an integer", "the end"},
      {"p=1:2:3", pad, 5, "low:high", ":3"},
      {"p=sam", pad, 2, "an integer", "sam"},
      {"p=1,1,1,1,1,1,1,1,1", pad, 19, "at most 8 axes", "the end"},
      {"g=1.5", [](Problem& p) { p.integer("g", 1); }, 3, "an integer", ".5"},
      {"b=1.5y", [](Problem& p) { p.real("b", 1); }, 5, "a number", "y"},
      {"b=yes", [](Problem& p) { p.flag("b", true); }, 2, "false or true or 0 or 1", "yes"},
      {"layout=nchw",
       [](Problem& p) { p.options<TwoWords>(); },
       7,
       "channels_first or channels_last",
       "nchw"},
      {"pad_cells=one", [](Problem& p) { p.options<TwoWords>(); }, 10, "ignore or zero", "one"},
      {"x=1 strid=2",
       [](Problem& p) { p.shape("x"), p.finish("conv"); },
       4,
       "a field of conv",
       "strid"},
  };
  for (const Refusal& refusal : table) {
    SCOPED_TRACE(refusal.text);
    try {
      Problem problem(refusal.text);
      refusal.read(problem);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(error.code(), ErrorCode::bad_problem);
      EXPECT_NE(text.find("problem \"" + std::string(refusal.text) + "\""), std::string::npos)
          << text;
      EXPECT_NE(text.find("at byte " + std::to_string(refusal.byte) + ": "), std::string::npos)
          << text;
      const auto expected = text.find("expected ");
      const auto found = text.find(", found ");
      ASSERT_NE(expected, std::string::npos) << text;
      ASSERT_NE(found, std::string::npos) << text;
      EXPECT_NE(text.find(refusal.expected, expected), std::string::npos) << text;
      EXPECT_NE(text.find(refusal.found, found), std::string::npos) << text;
    }
  }
}

TEST(Problem, NumbersPrintAsTheShortestTextThatReadsBack) {
  for (const double value : {1.0, -0.5, 0.1, 1e300, 5e-324, 1.0 / 3.0, -123456789.125}) {
    Problem p("v=" + problem_text(value));
    EXPECT_EQ(p.real("v", 0), value);
  }
  EXPECT_EQ(problem_text(0.1), "0.1");
  EXPECT_EQ(problem_text(4.0), "4");
}

TEST(Problem, ShapesAndAxesPrintInTheFormTheyAreReadIn) {
  EXPECT_EQ(problem_text(Shape{2, 4, 9}), "2x4x9");
  EXPECT_EQ(problem_text(Shape{}), "scalar");
  Windows windows;
  windows.push_back({.stride = 2, .pad_low = 1, .pad_high = 0});
  windows.push_back({.stride = 1, .pad_low = 2, .pad_high = 2});
  EXPECT_EQ(field_text(per_axis_of(windows, &WindowAxis::stride)), "2,1");
  EXPECT_EQ(field_text(padding_of(windows)), "1:0,2");
}

}  // namespace
}  // namespace fenestra

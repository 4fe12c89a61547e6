// The weight gradient by outer products against the definition wherever it is able to run, also
// where it would leave the problem to a faster candidate.
#include <fenestra/kernels/isa.hpp>
#include <fenestra/ops/conv/kernels/outer.hpp>
#include <fenestra/ops/conv/kernels/testing.hpp>

#include <gtest/gtest.h>

#include <string>

namespace fenestra {
namespace {

void expect_within_bound(const ConvGeometry& g, Random& random) {
  const ConvProblem p{ConvDirection::weight_grad, g};
  if (detail::outer_lacks(p) != nullptr || ::testing::Test::HasFatalFailure()) {
    return;
  }
  testing::expect_conv_within_bound<float>(detail::run_conv_outer<float>, p, random);
  testing::expect_conv_within_bound<double>(detail::run_conv_outer<double>, p, random);
}

class ConvOuter : public ::testing::TestWithParam<std::string_view> {
 protected:
  kernels::ScopedIsa isa_{GetParam()};
};

TEST_P(ConvOuter, StaysWithinTheBoundOnRandomProblems) {
  Random random(51);
  for (int i = 0; i < 400 && !HasFatalFailure(); ++i) {
    expect_within_bound(Conv::random(random), random);
  }
}

// Parts by samples and by rows, of y_bar and of x, shared places or parts that are tasks, in more
// rounds than one; several chunks; x in place and copied; taps that
// are neighbours and taps that are not; more neighbours than a tile has; panels of one to four
// vectors and what is left of them; groups.
TEST_P(ConvOuter, StaysWithinTheBoundOnEveryPathOfTheLoops) {
  Random random(52);
  for (const char* problem : {"x=5x1x70x70 w=20x1x2x2 padding=1",
                              "x=2x2x160x150 w=16x2x1x2",
                              "x=2x2x161x150 w=17x2x2x1 stride=2,1 padding=1",
                              "x=2x130x40x40 w=5x130x1x2 stride=3 padding=1",
                              "x=1x2x30x40 w=40x2x3x3",
                              "x=3x7x9x8 w=33x7x3x3 padding=1",
                              "x=2x3x20x21 w=18x3x5x7 stride=2 padding=3",
                              "x=1x2x20x70 w=5x2x2x30 padding=0,4",
                              "x=2x5x12x13 w=14x5x3x3 stride=3,2 padding=2:0,1:2 dilation=2,3",
                              "x=1x30x9x9 w=100x30x1x1",
                              "x=2x27x6x5 w=120x27x1x1 stride=2",
                              "x=2x12x10x11 w=36x4x3x2 padding=1 groups=3",
                              "x=2x3x100 w=5x3x9 padding=4",
                              "x=1x4x60 w=40x4x3 dilation=8 padding=8",
                              "x=1x3x6x9x17 w=20x3x3x3x3 padding=1 stride=2,1,2",
                              "x=1x2x4x3x5x14 w=9x2x2x3x2x3 padding=1 dilation=1,1,2,1",
                              "x=1x8x3x3 w=16x8x5x5 padding=3",
                              "x=40x1x70x70 w=3x1x2x2 padding=1",
                              "x=3x70x70x3 w=7x3x3x16 stride=2 padding=3 layout=channels_last",
                              "x=2x9x8x7 w=3x3x7x33 padding=1 layout=channels_last",
                              "x=2x20x21x3 w=5x7x3x18 stride=2 padding=3 layout=channels_last",
                              "x=2x12x13x5 w=3x3x5x14 dilation=2,3 padding=1 layout=channels_last",
                              "x=2x10x11x12 w=3x2x4x36 padding=1 groups=3 layout=channels_last",
                              "x=2x9x10x40 w=3x3x40x50 padding=1 layout=channels_last",
                              "x=3x7x9x37 w=1x1x37x130 stride=2 layout=channels_last",
                              "x=1x9x8x70 w=2x3x35x64 dilation=1,2 groups=2 layout=channels_last",
                              "x=2x40x33 w=5x33x34 padding=2 stride=3 layout=channels_last",
                              "x=1x4x5x6x32 w=2x3x2x32x48 padding=1 layout=channels_last"}) {
    expect_within_bound(Conv::parse(problem), random);
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST_P(ConvOuter, StaysWithinTheBoundAtEveryNumberOfChannels) {
  Random random(53);
  constexpr Index kMost = 4 * 16 + 3;
  for (Index channels = 1; channels <= kMost && !HasFatalFailure(); ++channels) {
    for (const Index kernel : {1, 3}) {
      for (const Layout layout : {Layout::channels_first, Layout::channels_last}) {
        const bool first = layout == Layout::channels_first;
        const Index in = random.between(1, 35);
        const Shape x = first ? Shape{2, in, 5, 6} : Shape{2, 5, 6, in};
        const Shape w = first ? Shape{channels, in, 2, kernel} : Shape{2, kernel, in, channels};
        expect_within_bound(
            conv_geometry(x, w, std::nullopt, {.padding = kernel / 2, .layout = layout}), random);
      }
    }
  }
}

TEST_P(ConvOuter, GivesTheSameBitsOnAnyNumberOfThreads) {
  Random random(54);
  for (const char* problem : {"x=3x16x40x40 w=24x16x3x3 padding=1",
                              "x=5x3x70x70 w=20x3x5x5 padding=2 stride=2",
                              "x=2x64x14x14 w=130x64x1x1",
                              "x=3x128x9x9 w=128x8x3x3 padding=1 groups=16",
                              "x=9x3x70x70 w=16x3x3x3 padding=1",
                              "x=3x64x64x17 w=3x3x17x17 padding=1 layout=channels_last",
                              "x=3x20x21x40 w=3x3x40x50 padding=1 layout=channels_last",
                              "x=3x20x21x6 w=3x3x6x50 padding=1 layout=channels_last"}) {
    const ConvProblem p{ConvDirection::weight_grad, Conv::parse(problem)};
    testing::expect_conv_bits_on_any_threads<float>(detail::run_conv_outer<float>, p, random);
    testing::expect_conv_bits_on_any_threads<double>(detail::run_conv_outer<double>, p, random);
  }
}

INSTANTIATE_TEST_SUITE_P(Isa,
                         ConvOuter,
                         ::testing::ValuesIn(kernels::supported_isas()),
                         [](const auto& isa) { return std::string(isa.param); });

TEST(ConvOuterChoice, NamesWhatItLacks) {
  const ConvGeometry g = Conv::parse("x=2x3x8x8 w=16x3x3x3");
  EXPECT_NE(detail::outer_lacks({ConvDirection::forward, g}), nullptr);
  EXPECT_NE(detail::outer_lacks({ConvDirection::input_grad, g}), nullptr);
  EXPECT_EQ(detail::outer_lacks({ConvDirection::weight_grad, g}), nullptr);
  for (const char* empty : {"x=0x3x8x8 w=4x3x3x3", "x=2x0x8x8 w=4x0x3x3", "x=2x3x8x8 w=0x3x3x3"}) {
    EXPECT_NE(detail::outer_lacks({ConvDirection::weight_grad, Conv::parse(empty)}), nullptr);
  }
}

}  // namespace
}  // namespace fenestra

// The direct convolution against the definition wherever it is able to run, also where it would
// leave the problem to a faster candidate.
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/isa.hpp>
#include <fenestra/ops/conv/kernels/direct.hpp>
#include <fenestra/ops/conv/kernels/testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace fenestra {
namespace {

using testing::kConvDirections;

void expect_within_bound(const ConvGeometry& g, Random& random) {
  for (const ConvDirection direction : kConvDirections) {
    const ConvProblem p{direction, g};
    if (detail::direct_lacks(p) != nullptr || ::testing::Test::HasFatalFailure()) {
      continue;
    }
    testing::expect_conv_within_bound<float>(detail::run_conv_direct<float>, p, random);
    testing::expect_conv_within_bound<double>(detail::run_conv_direct<double>, p, random);
  }
}

class ConvDirect : public ::testing::TestWithParam<std::string_view> {
 protected:
  kernels::ScopedIsa isa_{GetParam()};
};

TEST_P(ConvDirect, StaysWithinTheBoundOnRandomProblems) {
  Random random(21);
  for (int i = 0; i < 400 && !HasFatalFailure(); ++i) {
    expect_within_bound(Conv::random(random), random);
  }
}

// Several bands, tiles of one to four channels, one and several phases, planes of outer taps, taps
// that reach no cell, empty batches.
TEST_P(ConvDirect, StaysWithinTheBoundOnEveryPathOfTheLoops) {
  Random random(22);
  for (const char* problem : {"x=2x3x40x50 w=10x3x7x7 stride=2 padding=3 bias=true",
                              "x=2x6x41x37 w=6x1x3x3 padding=1 groups=6 bias=true",
                              "x=2x6x41x37 w=12x1x3x3 stride=2 padding=1 groups=6",
                              "x=1x5x30x30 w=5x1x5x5 padding=2 groups=5",
                              "x=1x8x33x20 w=8x4x3x3 padding=1 groups=2 bias=true",
                              "x=1x2x20x20 w=7x2x3x3 stride=3,2 padding=2:0,1:2 dilation=2,3",
                              "x=1x3x9x60 w=2x3x2x5 stride=1,4 dilation=3,2 padding=3",
                              "x=1x4x20x21 w=3x4x2x2 stride=4 bias=true",
                              "x=3x20x12x12 w=9x20x3x3 padding=1",
                              "x=2x3x100 w=5x3x9 padding=4 bias=true",
                              "x=1x3x6x9x17 w=4x3x3x3x3 padding=1 stride=2,1,2",
                              "x=1x2x4x3x5x14 w=3x2x2x3x2x3 padding=1 dilation=1,1,2,1",
                              "x=0x3x8x8 w=4x3x3x3 bias=true",
                              "x=1x1x8x8 w=1x1x3x3 padding=1 bias=true",
                              "x=3x21x22x40 w=3x3x1x40 padding=1 groups=40 bias=true "
                              "layout=channels_last",
                              "x=2x20x11x12 w=5x3x2x18 padding=2,1 stride=2 groups=6 bias=true "
                              "layout=channels_last",
                              "x=2x4x7x9x3 w=3x2x3x3x5 padding=1 layout=channels_last",
                              "x=2x50x7 w=4x7x2 layout=channels_last",
                              "x=0x8x8x3 w=3x3x3x4 layout=channels_last"}) {
    expect_within_bound(Conv::parse(problem), random);
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST_P(ConvDirect, StaysWithinTheBoundAtEveryWidth) {
  Random random(23);
  constexpr Index kWidest = 2 * 16 + 3;
  for (Index width = 1; width <= kWidest && !HasFatalFailure(); ++width) {
    for (const Index stride : {1, 2, 3}) {
      for (const Index groups : {1, 3}) {
        const Index in = groups * random.between(1, 3);
        const Index out = groups * random.between(1, 5);
        expect_within_bound(conv_geometry({2, in, 5, (width - 1) * stride + 1},
                                          {out, in / groups, 3, 3},
                                          std::nullopt,
                                          {.stride = stride, .padding = 1, .groups = groups}),
                            random);
      }
    }
  }
}

// Three of a larger kernel's taps see neighbouring rows: an input gradient with a stride.
TEST_P(ConvDirect, StaysWithinTheBoundWhereThreeTapsOfALargerKernelTouch) {
  Random random(26);
  for (const char* problem : {"x=1x1x8x8 w=1x1x5x5 stride=2 padding=2",
                              "x=2x1x19x40 w=1x1x6x6 stride=2 padding=2",
                              "x=1x1x20x37 w=1x1x7x7 stride=2 padding=3",
                              "x=1x1x23x41 w=1x1x7x7 stride=3 padding=3",
                              "x=1x1x23x41 w=1x1x9x9 stride=3 padding=4 bias=true",
                              "x=2x6x17x18 w=6x1x5x5 stride=2 padding=2 groups=6 bias=true",
                              "x=1x6x20x21 w=6x1x6x6 stride=2 padding=2:1,0:3 groups=6",
                              "x=1x5x22x40 w=5x1x7x7 stride=2 padding=3 groups=5",
                              "x=1x5x22x40 w=10x1x7x7 stride=3 padding=2 groups=5",
                              "x=1x3x18x33 w=3x1x5x3 stride=2,1 padding=2,1 groups=3",
                              "x=1x3x18x33 w=3x1x3x5 stride=1,2 padding=1,2 groups=3",
                              "x=1x3x18x33 w=3x1x3x3 stride=2 dilation=2 padding=2 groups=3",
                              "x=1x3x18x33 w=3x1x6x5 stride=4,2 dilation=2 padding=5 groups=3",
                              "x=1x2x5x12x15 w=2x1x3x5x5 stride=2 padding=2 groups=2"}) {
    expect_within_bound(Conv::parse(problem), random);
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST_P(ConvDirect, GivesTheSameBitsOnAnyNumberOfThreads) {
  Random random(24);
  for (const char* problem : {"x=3x16x40x40 w=16x1x3x3 padding=1 groups=16",
                              "x=3x16x40x40 w=16x4x3x3 padding=1 groups=4 stride=2 bias=true",
                              "x=3x3x60x60 w=20x3x5x5 padding=2",
                              "x=5x30x31x18 w=3x3x1x18 padding=1 groups=18 bias=true "
                              "layout=channels_last"}) {
    for (const ConvDirection direction : kConvDirections) {
      testing::expect_conv_bits_on_any_threads<float>(
          detail::run_conv_direct<float>, {direction, Conv::parse(problem)}, random);
    }
  }
}

TEST_P(ConvDirect, GivesASampleTheSameBitsAloneAndInItsBatch) {
  Random random(25);
  for (const char* problem : {"x=5x6x21x22 w=12x2x3x3 padding=1 groups=3 bias=true",
                              "x=4x3x30x30 w=5x3x4x4 stride=2 padding=1",
                              "x=5x13x14x18 w=3x3x2x36 padding=1 groups=9 bias=true "
                              "layout=channels_last"}) {
    for (const ConvDirection direction : {ConvDirection::forward, ConvDirection::input_grad}) {
      testing::expect_conv_bits_of_samples<double>(
          detail::run_conv_direct<double>, {direction, Conv::parse(problem)}, random);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa,
                         ConvDirect,
                         ::testing::ValuesIn(kernels::supported_isas()),
                         [](const auto& isa) { return std::string(isa.param); });

TEST(ConvDirectChoice, NamesWhatItLacks) {
  EXPECT_NE(detail::direct_lacks({ConvDirection::forward, Conv::parse("x=2x0x8x8 w=4x0x3x3")}),
            nullptr);
}

}  // namespace
}  // namespace fenestra

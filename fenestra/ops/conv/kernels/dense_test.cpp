// The dense convolution against the definition wherever it is able to run, also where it would
// leave the problem to a faster candidate: on small integers, by equality.
#include <fenestra/kernels/isa.hpp>
#include <fenestra/ops/conv/kernels/dense.hpp>
#include <fenestra/ops/conv/kernels/testing.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace fenestra {
namespace {

constexpr ConvDirection kDirections[] = {ConvDirection::forward, ConvDirection::input_grad};
constexpr Layout kLayouts[] = {Layout::channels_first, Layout::channels_last};

template <class T>
void expect_exact(const ConvProblem& p, Random& random) {
  // Products of at most 16, so that sums of a million of them are exact.
  const auto in = testing::random_conv_operands<T>(p, random).map(
      [](T value) { return std::round(4 * value); });
  const Tensor<T> got = testing::conv_by<T>(detail::run_conv_dense<T>, p, in);
  const Tensor<T> expected = testing::conv_by_definition(p, in);
  for (Index i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], expected[i]) << "direction " << static_cast<int>(p.direction) << ", element "
                                   << i << " of " << got.size() << ": " << to_string(p.geometry);
  }
}

/// In both layouts.
void expect_exact(ConvGeometry g, Random& random) {
  for (const Layout layout : kLayouts) {
    g.layout = layout;
    for (const ConvDirection direction : kDirections) {
      const ConvProblem p{direction, g};
      if (detail::dense_lacks(p) == nullptr && !::testing::Test::HasFatalFailure()) {
        expect_exact<float>(p, random);
        expect_exact<double>(p, random);
      }
    }
  }
}

/// The same problem with the channels elsewhere.
ConvGeometry in_layout(Layout layout, const char* problem) {
  ConvGeometry g = Conv::parse(problem);
  g.layout = layout;
  return g;
}

class ConvDense : public ::testing::TestWithParam<std::string_view> {
 protected:
  kernels::ScopedIsa isa_{GetParam()};
};

TEST_P(ConvDense, IsTheDefinitionOnRandomProblems) {
  Random random(81);
  for (int i = 0; i < 600 && !HasFatalFailure(); ++i) {
    expect_exact(Conv::random(random), random);
  }
}

// Several bands, blocks of one and two vectors, parts of rows, source rows in place and in strips,
// cells two columns and more apart, planes of outer taps, taps that no cell sees, cells that are
// gathered from those of all groups, empty batches.
TEST_P(ConvDense, IsTheDefinitionOnEveryPathOfTheLoops) {
  Random random(82);
  for (const char* problem : {"x=2x40x30x31 w=70x40x3x3 padding=1 bias=true",
                              "x=1x150x40x40 w=17x150x3x3 padding=1",
                              "x=1x1000x4x70 w=9x1000x1x3 padding=0,1",
                              "x=2x33x13x17 w=41x33x3x3 stride=2 padding=1 bias=true",
                              "x=2x33x13x17 w=41x33x1x1 stride=2 bias=true",
                              "x=2x20x12x13 w=35x20x1x1 bias=true",
                              "x=2x20x16x32 w=35x20x1x1",
                              "x=1x12x14x14 w=16x12x5x5",
                              "x=1x3x300 w=18x3x5 padding=2 bias=true",
                              "x=2x24x9x9 w=48x8x3x3 padding=1 groups=3 bias=true",
                              "x=2x6x9x9 w=40x3x3x3 groups=2 bias=true",
                              "x=1x40x8x7 w=36x20x5x3 padding=2,1 stride=1,2 groups=2",
                              "x=1x3x90x200 w=40x3x3x3 padding=1 bias=true",
                              "x=1x6x9x40 w=5x6x3x4 stride=3,4 padding=2 dilation=2,3",
                              "x=2x7x1x2 w=5x7x5x7 stride=4,5 padding=3",
                              "x=1x9x2x2 w=4x9x4x4 stride=4 padding=1 bias=true",
                              "x=1x20x10x11 w=30x20x4x4 stride=2 padding=1",
                              "x=1x4x6x9x17 w=20x4x3x3x3 padding=1 stride=2,1,2 bias=true",
                              "x=1x2x4x3x5x14 w=18x2x2x3x2x3 padding=1 dilation=1,1,2,1",
                              "x=2x5x6x7x8 w=12x5x1x1x1 bias=true",
                              "x=0x3x8x8 w=4x3x3x3 bias=true"}) {
    expect_exact(Conv::parse(problem), random);
    if (HasFatalFailure()) {
      return;
    }
  }
}

// As a transposed convolution with output padding has them.
TEST_P(ConvDense, IsTheDefinitionWhereNoWindowReachesTheLastCells) {
  Random random(86);
  for (const char* problem : {"x=1x70x5x7 w=20x70x1x1 bias=true",
                              "x=2x20x9x40 w=33x20x3x3 padding=1",
                              "x=1x20x9x30 w=33x20x3x3 stride=2 padding=1"}) {
    ConvGeometry g = Conv::parse(problem);
    g.windows.axes[0].out -= 2;
    g.windows.axes[1].out -= 1;
    expect_exact(g, random);
  }
}

TEST_P(ConvDense, IsTheDefinitionAtEveryWidthAndNumberOfChannels) {
  Random random(83);
  constexpr Index kMost = 2 * 16 + 3;
  for (Index n = 1; n <= kMost && !HasFatalFailure(); ++n) {
    for (const Index stride : {1, 2, 3}) {
      for (const Index kernel : {1, 3}) {
        expect_exact(conv_geometry({1, 4, 5, (n - 1) * stride + 1},
                                   {kMost + 1 - n, 4, kernel, kernel},
                                   std::nullopt,
                                   {.stride = stride, .padding = kernel / 2}),
                     random);
      }
    }
  }
}

TEST_P(ConvDense, GivesTheSameBitsOnAnyNumberOfThreads) {
  Random random(84);
  for (const char* problem : {"x=3x40x30x31 w=70x40x3x3 padding=1 bias=true",
                              "x=1x64x20x20 w=96x64x1x1",
                              "x=1x32x14x14 w=40x32x3x3 padding=1 stride=2",
                              "x=2x48x12x12 w=64x24x3x3 padding=1 groups=2 bias=true"}) {
    for (const Layout layout : kLayouts) {
      for (const ConvDirection direction : kDirections) {
        const ConvProblem p{direction, in_layout(layout, problem)};
        testing::expect_conv_bits_on_any_threads<float>(detail::run_conv_dense<float>, p, random);
        testing::expect_conv_bits_on_any_threads<double>(detail::run_conv_dense<double>, p, random);
      }
    }
  }
}

// Of 61x61 cells the batch is too large for a cache and asks ahead, in other bands; a sample is
// not.
TEST_P(ConvDense, GivesASampleTheSameBitsAloneAndInItsBatch) {
  Random random(85);
  for (const char* problem : {"x=5x40x15x16 w=33x40x3x3 padding=1 bias=true",
                              "x=3x96x61x61 w=16x96x1x1",
                              "x=4x64x7x7 w=50x64x1x1",
                              "x=3x16x20x20 w=40x16x4x4 stride=2 padding=1"}) {
    for (const Layout layout : kLayouts) {
      for (const ConvDirection direction : kDirections) {
        testing::expect_conv_bits_of_samples<float>(
            detail::run_conv_dense<float>, {direction, in_layout(layout, problem)}, random);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa,
                         ConvDense,
                         ::testing::ValuesIn(kernels::supported_isas()),
                         [](const auto& isa) { return std::string(isa.param); });

TEST(ConvDenseChoice, NamesWhatItLacks) {
  const auto lacks = [](ConvDirection direction, const char* problem) {
    return detail::dense_lacks({direction, Conv::parse(problem)}) != nullptr;
  };
  EXPECT_TRUE(lacks(ConvDirection::weight_grad, "x=2x3x8x8 w=4x3x3x3"));
  EXPECT_TRUE(lacks(ConvDirection::forward, "x=2x0x8x8 w=4x0x3x3"));
  EXPECT_FALSE(lacks(ConvDirection::forward, "x=2x8x8x3 w=3x3x3x4 layout=channels_last"));
  EXPECT_FALSE(lacks(ConvDirection::input_grad, "x=2x3x8x8 w=4x3x3x3"));
}

}  // namespace
}  // namespace fenestra

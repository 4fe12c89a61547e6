// The convolution's own kernels against the definition: every direction, layout, tail and
// instruction set, within the a-priori bound of a sum of n products.
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/isa.hpp>
#include <fenestra/ops/conv/candidates.hpp>
#include <fenestra/ops/conv/kernels/testing.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fenestra {
namespace {

using testing::kConvDirections;

/// The last candidate is the definition itself.
template <class T>
bool is_definition(const ConvCandidate<T>& candidate) {
  return candidate.name == conv_candidates<T>().back().name;
}
/// Bits are promised by our own kernels only.
template <class T>
bool promises_bits(const ConvCandidate<T>& candidate) {
  return !is_definition(candidate) && !candidate.name.ends_with("_onednn");
}

template <class T>
void expect_within_bound(const ConvCandidate<T>& candidate, const ConvProblem& p, Random& random) {
  if (candidate.refuse(p) != nullptr || is_definition(candidate)) {
    return;
  }
  SCOPED_TRACE(std::string(candidate.name) + " on " + std::string(kernels::isa_name()));
  testing::expect_conv_within_bound<T>(candidate.run, p, random);
}

void expect_within_bound(const ConvGeometry& g, Random& random) {
  for (const ConvDirection direction : kConvDirections) {
    for (const auto& candidate : conv_candidates<float>()) {
      expect_within_bound(candidate, {direction, g}, random);
    }
    for (const auto& candidate : conv_candidates<double>()) {
      expect_within_bound(candidate, {direction, g}, random);
    }
  }
}

/// One problem string for each path of the loops: several blocks of depth, columns and rows,
/// samples that share panels, phases of the stride, rows in place and packed, taps that reach no
/// cell, samples transposed together.
const std::vector<std::string>& structured_problems() {
  static const std::vector<std::string> problems = {
      "x=2x40x13x19 w=14x40x3x3 padding=1 bias=true",
      "x=2x13x19x40 w=3x3x40x14 padding=1 bias=true layout=channels_last",
      "x=1x3x21x41 w=8x3x7x7 stride=2 padding=3 bias=true",
      "x=1x21x41x3 w=7x7x3x8 stride=2 padding=3 bias=true layout=channels_last",
      "x=5x13x7x7 w=17x13x3x3 padding=1",
      "x=5x7x7x13 w=3x3x13x17 padding=1 layout=channels_last",
      "x=3x330x5x4 w=7x330x1x1 bias=true",
      "x=3x5x4x330 w=1x1x330x7 bias=true layout=channels_last",
      "x=2x8x17x18 w=12x4x3x2 stride=3,2 padding=1:0,0:2 dilation=2,1 groups=2 bias=true",
      "x=2x17x18x8 w=3x2x4x12 stride=3,2 padding=1:0,0:2 dilation=2,1 groups=2 "
      "layout=channels_last",
      "x=1x6x20x20 w=9x6x2x2 stride=4 bias=true",
      "x=1x20x20x6 w=2x2x6x9 stride=4 layout=channels_last",
      "x=1x4x30 w=5x4x4 stride=2 dilation=2 padding=3",
      "x=1x4x30 w=5x4x3 stride=6 dilation=4 padding=5",
      "x=2x5x6x7x8 w=4x5x3x3x3 padding=1 stride=1,2,1 bias=true",
      "x=2x6x7x8x5 w=3x3x3x5x4 padding=1 stride=1,2,1 layout=channels_last",
      "x=1x2x4x3x5x4 w=3x2x2x3x2x2 padding=1 dilation=1,1,2,1",
      "x=0x3x8x8 w=4x3x3x3 bias=true",
      "x=2x0x8x8 w=4x0x3x3 bias=true",
      "x=2x3x8x8 w=0x3x3x3",
      "x=1x1x28x28 w=6x1x5x5 padding=2",
      "x=2x1x60x60 w=1x1x3x3 padding=1",
      "x=1x3x24x40 w=100x3x3x3",
      "x=3x16x11x13 w=24x16x3x2 stride=2,3 padding=2:0,1:2 dilation=1,2",
      "x=2x64x9x7 w=26x32x3x3 padding=1 groups=2",
      "x=2x15x6x5x9 w=13x15x2x3x3 padding=0,1,1 stride=1,2,1",
  };
  return problems;
}

class ConvKernels : public ::testing::TestWithParam<std::string_view> {
 protected:
  kernels::ScopedIsa isa_{GetParam()};
};

TEST_P(ConvKernels, StayWithinTheBoundOnRandomProblems) {
  Random random(11);
  for (int i = 0; i < 150 && !HasFatalFailure(); ++i) {
    expect_within_bound(Conv::random(random), random);
  }
}

TEST_P(ConvKernels, StayWithinTheBoundOnEveryPathOfTheLoops) {
  Random random(12);
  for (const std::string& problem : structured_problems()) {
    expect_within_bound(Conv::parse(problem), random);
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST_P(ConvKernels, StayWithinTheBoundWhereASampleIsBlockedInParts) {
  Random random(16);
  const ConvGeometry g = Conv::parse("x=2x16x70000 w=12x16x4 padding=1 stride=20");
  for (const auto& candidate : conv_candidates<float>()) {
    if (candidate.name.ends_with("_gemm")) {
      expect_within_bound(candidate, {ConvDirection::weight_grad, g}, random);
    }
  }
}

TEST_P(ConvKernels, StayWithinTheBoundAtEveryTailOfColumnsAndChannels) {
  Random random(13);
  constexpr Index kWidest = 2 * 16 + 3;
  for (Index width = 1; width <= kWidest && !HasFatalFailure(); ++width) {
    for (const Index stride : {1, 2, 3}) {
      for (const Layout layout : {Layout::channels_first, Layout::channels_last}) {
        const bool first = layout == Layout::channels_first;
        const Index in = random.between(1, 9);
        const Index x_width = (width - 1) * stride + 1;
        const Shape x = first ? Shape{2, in, 3, x_width} : Shape{2, 3, x_width, in};
        const Shape w = first ? Shape{width, in, 2, 3} : Shape{2, 3, in, width};
        expect_within_bound(
            conv_geometry(x, w, std::nullopt, {.stride = stride, .padding = 1, .layout = layout}),
            random);
      }
    }
  }
}

TEST_P(ConvKernels, GiveTheSameBitsOnAnyNumberOfThreads) {
  Random random(14);
  for (const char* problem : {"x=5x24x30x31 w=40x24x3x3 padding=1 bias=true",
                              "x=5x30x31x24 w=3x3x24x40 padding=1 bias=true layout=channels_last",
                              "x=6x64x7x7 w=70x64x3x3 padding=1 stride=2",
                              "x=3x48x60x61 w=14x48x3x3 padding=1",
                              "x=3x64x20x20 w=64x4x3x3 padding=1 groups=16"}) {
    for (const ConvDirection direction : kConvDirections) {
      const ConvProblem p{direction, Conv::parse(problem)};
      for (const auto& candidate : conv_candidates<float>()) {
        if (candidate.refuse(p) == nullptr && promises_bits(candidate)) {
          SCOPED_TRACE(candidate.name);
          testing::expect_conv_bits_on_any_threads<float>(candidate.run, p, random);
        }
      }
    }
  }
}

TEST_P(ConvKernels, GiveASampleTheSameBitsAloneAndInItsBatch) {
  Random random(15);
  for (const char* problem : {"x=5x24x15x16 w=20x24x3x3 padding=1 bias=true",
                              "x=5x15x16x24 w=3x3x24x20 padding=1 bias=true layout=channels_last",
                              "x=7x9x5x5 w=11x9x3x3 padding=1 stride=2"}) {
    const ConvGeometry g = Conv::parse(problem);
    for (const ConvDirection direction : {ConvDirection::forward, ConvDirection::input_grad}) {
      for (const auto& candidate : conv_candidates<double>()) {
        if (candidate.refuse({direction, g}) == nullptr &&
            candidate.refuse({direction, Conv::single_sample(g)}) == nullptr &&
            promises_bits(candidate)) {
          SCOPED_TRACE(candidate.name);
          testing::expect_conv_bits_of_samples<double>(candidate.run, {direction, g}, random);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa,
                         ConvKernels,
                         ::testing::ValuesIn(kernels::supported_isas()),
                         [](const auto& isa) { return std::string(isa.param); });

}  // namespace
}  // namespace fenestra

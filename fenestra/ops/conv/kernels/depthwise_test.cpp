// The depthwise kernel on channels-last tensors: the definition's results within the a-priori
// bound, and bits that depend neither on threads nor on the batch.
#include <fenestra/kernels/isa.hpp>
#include <fenestra/ops/conv/kernels/depthwise.hpp>
#include <fenestra/ops/conv/kernels/testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace fenestra {
namespace {

using testing::kConvDirections;

/// Channels below a vector, ragged and full; strides with phases, windows that reach no cell, rows
/// of one column, ranks 1 to 3.
constexpr const char* kProblems[] = {
    "x=2x9x21x16 w=3x3x1x16 padding=1 groups=16 bias=true",
    "x=1x5x7x4 w=3x3x1x4 padding=1 groups=4",
    "x=2x11x13x37 w=5x5x1x37 padding=2 stride=2 groups=37 bias=true",
    "x=1x12x33x72 w=5x5x1x72 stride=2 padding=2 groups=72",
    "x=1x9x9x96 w=7x7x1x96 padding=3 groups=96",
    "x=2x10x17x19 w=3x2x1x19 stride=3,2 padding=1:0,0:2 dilation=2,1 groups=19",
    "x=1x14x15x7 w=2x2x1x7 stride=4 groups=7 bias=true",
    "x=1x6x3x33 w=3x5x1x33 padding=1,4 groups=33",
    "x=1x4x1x8 w=3x3x1x8 padding=1 groups=8",
    "x=3x40x12 w=9x1x12 padding=4 dilation=3 groups=12",
    "x=1x5x6x9x20 w=3x3x3x1x20 padding=1 stride=1,2,1 groups=20 bias=true",
    "x=0x6x6x8 w=3x3x1x8 groups=8",
    "x=1x20x20x130 w=3x3x1x130 padding=1 groups=130",
};

/// Groups that fill a vector, or all but some lanes of it; a last block of fewer groups; more
/// sources than targets and less; phases; a source shorter than a vector.
constexpr const char* kGroupedProblems[] = {
    "x=2x9x11x32 w=3x3x2x32 padding=1 groups=16 bias=true",
    "x=2x9x21x14 w=3x3x2x21 padding=1 groups=7 bias=true",
    "x=1x13x12x20 w=3x2x2x20 stride=2,3 padding=1:0,1 dilation=2,1 groups=10",
    "x=1x12x13x40 w=5x5x1x80 stride=2 padding=2 groups=40",
    "x=3x8x9x6 w=3x3x2x6 padding=1 groups=3",
    "x=2x4x5x7x12 w=2x3x3x2x12 padding=1 stride=1,2,1 groups=6 bias=true",
};

template <class T>
void expect_laws(const ConvGeometry& geometry, Random& random) {
  for (const ConvDirection direction : kConvDirections) {
    const ConvProblem p{direction, geometry};
    if (detail::depthwise_lacks<T>(p) != nullptr) {
      // Vectors that do not hold a group, or the weight gradient of groups.
      const Index widest = std::max(geometry.group_in(), geometry.group_out());
      ASSERT_TRUE(widest > 1 && (direction == ConvDirection::weight_grad ||
                                 detail::depthwise_loops<T>().lanes < widest))
          << to_string(geometry);
      continue;
    }
    testing::expect_conv_within_bound<T>(detail::run_conv_depthwise<T>, p, random);
    testing::expect_conv_bits_on_any_threads<T>(detail::run_conv_depthwise<T>, p, random);
    if (direction != ConvDirection::weight_grad && geometry.batch > 0) {
      testing::expect_conv_bits_of_samples<T>(detail::run_conv_depthwise<T>, p, random);
    }
  }
}

TEST(ConvDepthwise, ComputesTheDefinitionWithBitsThatNothingElseDecides) {
  Random random(5);
  for (const std::string_view isa : kernels::supported_isas()) {
    const kernels::ScopedIsa scope(isa);
    SCOPED_TRACE(std::string(isa));
    const auto expect_all = [&](const auto& problems) {
      for (const char* text : problems) {
        const ConvGeometry geometry = Conv::parse(std::string(text) + " layout=channels_last");
        expect_laws<float>(geometry, random);
        expect_laws<double>(geometry, random);
      }
    };
    expect_all(kProblems);
    expect_all(kGroupedProblems);
  }
}

TEST(ConvDepthwise, SaysWhatItDoesNotDo) {
  const auto reason = [](const char* text, ConvDirection direction = ConvDirection::forward) {
    return detail::refuse_conv_depthwise<float>({direction, Conv::parse(text)});
  };
  EXPECT_NE(reason("x=1x8x9x9 w=8x1x3x3 groups=8"), nullptr);
  EXPECT_NE(reason("x=1x9x9x8 w=3x3x2x8 groups=4 layout=channels_last", ConvDirection::weight_grad),
            nullptr);
  EXPECT_NE(reason("x=1x9x9x32 w=3x3x16x32 groups=2 layout=channels_last"), nullptr);
  EXPECT_NE(reason("x=1x9x9x32 w=3x3x8x4 groups=4 layout=channels_last"), nullptr);
  EXPECT_NE(reason("x=1x9x9x3 w=3x3x1x3 groups=3 layout=channels_last"), nullptr);
}

}  // namespace
}  // namespace fenestra

// The depthwise kernel on channels-first planes: the definition's results within the a-priori
// bound, and bits that depend neither on threads nor on the batch.
#include <fenestra/kernels/isa.hpp>
#include <fenestra/ops/conv/kernels/planes.hpp>
#include <fenestra/ops/conv/kernels/testing.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace fenestra {
namespace {

using testing::kConvDirections;

template <class T>
void expect_laws(const ConvGeometry& geometry, Random& random) {
  for (const ConvDirection direction : kConvDirections) {
    const ConvProblem p{direction, geometry};
    ASSERT_EQ(detail::planes_lacks<T>(p), nullptr) << to_string(geometry);
    testing::expect_conv_within_bound<T>(detail::run_conv_planes<T>, p, random);
    testing::expect_conv_bits_on_any_threads<T>(detail::run_conv_planes<T>, p, random);
    if (direction != ConvDirection::weight_grad && geometry.batch > 0) {
      testing::expect_conv_bits_of_samples<T>(detail::run_conv_planes<T>, p, random);
    }
  }
}

class ConvPlanes : public ::testing::TestWithParam<std::string_view> {
 protected:
  void expect(const ConvGeometry& geometry) {
    expect_laws<float>(geometry, random_);
    expect_laws<double>(geometry, random_);
  }
  kernels::ScopedIsa isa_{GetParam()};
  Random random_{31};
};

// Rectangles of taps of every height, close and two rows apart, and lists of taps; several bands;
// phases; rows of one column; taps that reach no cell; padding beyond the span; one axis.
TEST_P(ConvPlanes, ComputeTheDefinitionWithBitsThatNothingElseDecides) {
  for (const char* problem : {"x=2x6x41x37 w=6x1x3x3 padding=1 groups=6 bias=true",
                              "x=1x5x30x30 w=5x1x5x5 padding=2 groups=5",
                              "x=2x3x20x20 w=3x1x7x7 padding=3 groups=3 bias=true",
                              "x=1x4x7x7 w=4x1x3x3 padding=1 groups=4",
                              "x=2x5x22x40 w=5x1x3x3 stride=2 padding=1 groups=5 bias=true",
                              "x=2x6x17x18 w=6x1x5x5 stride=2 padding=2 groups=6 bias=true",
                              "x=1x5x22x40 w=5x1x7x7 stride=2 padding=3 groups=5",
                              "x=1x6x20x21 w=6x1x6x6 stride=2 padding=2:1,0:3 groups=6",
                              "x=1x3x18x33 w=3x1x5x3 stride=2,1 padding=2,1 groups=3",
                              "x=1x3x18x33 w=3x1x3x5 stride=1,2 padding=1,2 groups=3",
                              "x=1x3x18x33 w=3x1x3x3 stride=2 dilation=2 padding=2 groups=3",
                              "x=1x3x18x33 w=3x1x6x5 stride=4,2 dilation=2 padding=5 groups=3",
                              "x=1x2x23x41 w=2x1x7x7 stride=3 padding=3 groups=2",
                              "x=1x2x30x10 w=2x1x2x2 stride=2 groups=2 bias=true",
                              "x=1x2x14x15 w=2x1x2x2 stride=4 groups=2 bias=true",
                              "x=1x2x6x6 w=2x1x3x3 padding=7 groups=2",
                              "x=1x2x6x6 w=2x1x2x3 padding=9 stride=3 groups=2 bias=true",
                              "x=1x3x9x1 w=3x1x3x1 padding=1,0 groups=3",
                              "x=1x3x90x120 w=3x1x3x3 padding=1 groups=3",
                              "x=1x2x100x90 w=2x1x5x5 padding=2 stride=2 groups=2 bias=true",
                              "x=3x4x200 w=4x1x9 padding=4 groups=4 bias=true",
                              "x=2x4x50 w=4x1x9 padding=12 dilation=3 stride=2 groups=4",
                              "x=1x1x8x8 w=1x1x3x3 padding=1 bias=true",
                              "x=0x3x8x8 w=3x1x3x3 groups=3 bias=true",
                              "x=5x70x9x9 w=70x1x3x3 padding=1 groups=70"}) {
    SCOPED_TRACE(problem);
    expect(Conv::parse(problem));
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST_P(ConvPlanes, ComputeTheDefinitionAtEveryWidth) {
  constexpr Index kWidest = 2 * 16 + 3;
  for (Index width = 1; width <= kWidest && !HasFatalFailure(); ++width) {
    for (const Index stride : {1, 2, 3}) {
      for (const Index kernel : {3, 4}) {
        expect(conv_geometry({1, 2, width % 9 + 3, (width - 1) * stride + 1},
                             {2, 1, kernel, kernel},
                             std::nullopt,
                             {.stride = stride, .padding = kernel / 2, .groups = 2}));
      }
    }
  }
}

// Lanes behind the last cell of a row are other cells: what they hold must not reach a sum.
TEST_P(ConvPlanes, AddNothingThatNoWindowSees) {
  const ConvGeometry g = Conv::parse("x=1x1x6x8 w=1x1x3x3 stride=2");
  std::vector<float> x(48, 1.0F);
  for (Index row = 0; row < 6; ++row) {
    x[static_cast<std::size_t>(row * 8 + 7)] = std::numeric_limits<float>::infinity();
  }
  const std::vector<float> y(6, 1.0F);
  std::vector<float> w(9);
  detail::run_conv_planes<float>({ConvDirection::weight_grad, g},
                                 {.lhs = x.data(), .rhs = y.data(), .out = w.data()});
  EXPECT_EQ(w, std::vector<float>(9, 6.0F));
}

INSTANTIATE_TEST_SUITE_P(Isa,
                         ConvPlanes,
                         ::testing::ValuesIn(kernels::supported_isas()),
                         [](const auto& isa) { return std::string(isa.param); });

TEST(ConvPlanesChoice, SaysWhatItDoesNotDo) {
  const auto reason = [](const char* text) {
    return detail::planes_lacks<float>({ConvDirection::forward, Conv::parse(text)});
  };
  EXPECT_EQ(reason("x=1x8x9x9 w=8x1x3x3 groups=8"), nullptr);
  EXPECT_NE(reason("x=1x9x9x8 w=3x3x1x8 groups=8 layout=channels_last"), nullptr);
  EXPECT_NE(reason("x=1x8x9x9 w=16x1x3x3 groups=8"), nullptr);
  EXPECT_NE(reason("x=1x8x9x9x9 w=8x1x3x3x3 groups=8"), nullptr);
  EXPECT_NE(reason("x=1x8x9x100000 w=8x1x3x3 groups=8"), nullptr);
}

}  // namespace
}  // namespace fenestra

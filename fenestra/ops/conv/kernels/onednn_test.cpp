// oneDNN's convolution against the definition wherever oneDNN is able to run, and the plans it
// keeps.
#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/conv/kernels/onednn.hpp>
#include <fenestra/ops/conv/kernels/testing.hpp>

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace fenestra {
namespace {

using testing::kConvDirections;

void expect_within_bound(const ConvGeometry& g, Random& random) {
  for (const ConvDirection direction : kConvDirections) {
    const ConvProblem p{direction, g};
    if (detail::onednn_lacks(p) == nullptr && !::testing::Test::HasFatalFailure()) {
      testing::expect_conv_within_bound<float>(detail::run_conv_onednn, p, random);
    }
  }
}

/// One thread, unless a test says otherwise: on a busy machine most of the time would go into
/// waiting for the others.
class ConvOnednn : public ::testing::Test {
 protected:
  void SetUp() override { set_threads(1); }
  void TearDown() override { set_threads(before_); }

 private:
  int before_ = threads();
};

TEST_F(ConvOnednn, StaysWithinTheBoundOnRandomProblems) {
  Random random(31);
  for (int i = 0; i < 60 && !HasFatalFailure(); ++i) {
    expect_within_bound(Conv::random(random), random);
  }
}

// Both layouts, ranks 1 to 3, each freedom of layout, several chunks of samples, bias in two
// directions.
TEST_F(ConvOnednn, StaysWithinTheBoundOnEveryWayItIsCalled) {
  Random random(32);
  for (const char* problem :
       {"x=2x16x20x19 w=24x16x3x3 padding=1:0,0:1 bias=true",
        "x=2x20x19x16 w=3x3x16x24 padding=1 bias=true layout=channels_last",
        "x=2x16x9x9 w=8x16x1x1 bias=true",
        "x=2x9x9x16 w=1x1x16x8 stride=2 layout=channels_last",
        "x=2x16x30 w=8x16x5 dilation=2 padding=3",
        "x=1x30x16 w=5x16x8 dilation=2 padding=3 layout=channels_last",
        "x=1x8x6x7x8 w=4x8x3x3x3 padding=1 stride=1,2,1 bias=true",
        "x=1x16x12x12 w=16x1x3x3 padding=1 groups=16",
        "x=1x12x12x16 w=3x3x1x16 padding=1 groups=16 layout=channels_last bias=true",
        "x=1x16x12x12 w=24x4x3x3 padding=1 groups=4",
        "x=2x128x4x4 w=130x128x3x3 padding=1",
        "x=5x1x700x700 w=1x1x1x2 stride=7"}) {
    expect_within_bound(Conv::parse(problem), random);
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST_F(ConvOnednn, StaysWithinTheBoundOnSeveralThreads) {
  Random random(35);
  set_threads(2);
  expect_within_bound(Conv::parse("x=2x16x20x19 w=24x16x3x3 padding=1 bias=true"), random);
}

TEST_F(ConvOnednn, KeepsABoundedNumberOfPlans) {
  Random random(33);
  constexpr auto kMore = static_cast<Index>(detail::kOnednnPlans) + 16;
  for (Index width = 8; width < 8 + kMore; ++width) {
    const ConvProblem p{ConvDirection::forward,
                        conv_geometry({1, 2, 3, width}, {2, 2, 1, 3}, std::nullopt, {})};
    testing::conv_by<float>(
        detail::run_conv_onednn, p, testing::random_conv_operands<float>(p, random));
  }
  EXPECT_EQ(detail::onednn_cached(), detail::kOnednnPlans);
}

TEST_F(ConvOnednn, GivesTheSameBitsToSeveralThreadsAtOnce) {
  Random random(34);
  const ConvProblem p{ConvDirection::forward, Conv::parse("x=2x16x20x20 w=16x16x3x3 padding=1")};
  const auto in = testing::random_conv_operands<float>(p, random);
  const auto alone = testing::conv_by<float>(detail::run_conv_onednn, p, in);
  std::vector<Tensor<float>> results(4);
  std::vector<std::thread> callers;
  for (Tensor<float>& result : results) {
    callers.emplace_back([&result, &p, &in] {
      for (int i = 0; i < 10; ++i) {
        result = testing::conv_by<float>(detail::run_conv_onednn, p, in);
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  for (const Tensor<float>& result : results) {
    EXPECT_TRUE(result == alone);
  }
}

// oneDNN 2.6.3 computes these wrongly on AVX-512: every cell of the first.
TEST_F(ConvOnednn, RefusesTheWeightGradientsThatOnednnGetsWrong) {
  for (const char* problem : {"x=256x1x80 w=48x1x6 stride=3 padding=15 dilation=3",
                              "x=3x33x137 w=15x33x7 stride=4 padding=17:18 dilation=4",
                              "x=2x2x6x112 w=4x2x2x7 stride=1,4 padding=1:2,16:3 dilation=3",
                              "x=3x33x2x61 w=1x33x3x8 stride=2 padding=1,15:10 dilation=1,3"}) {
    const ConvGeometry g = Conv::parse(problem);
    EXPECT_NE(detail::onednn_lacks({ConvDirection::weight_grad, g}), nullptr) << problem;
    EXPECT_EQ(detail::onednn_lacks({ConvDirection::forward, g}), nullptr) << problem;
    EXPECT_EQ(detail::onednn_lacks({ConvDirection::input_grad, g}), nullptr) << problem;
  }
}

TEST_F(ConvOnednn, RunsOnlyWhereItIsAskedForByName) {
  for (const char* problem : {"x=8x64x56x56 w=64x64x3x3 padding=1",
                              "x=1x28x28x96 w=3x3x1x96 padding=1 groups=96 layout=channels_last",
                              "x=8x3x224x224 w=64x3x7x7 stride=2 padding=3"}) {
    for (const ConvDirection direction : kConvDirections) {
      const ConvProblem p{direction, Conv::parse(problem)};
      EXPECT_NE(kernels::choose(conv_candidates<float>(), p).name, detail::kOnednnName) << problem;
      const kernels::ForcedKernel forced(detail::kOnednnName);
      EXPECT_EQ(kernels::choose(conv_candidates<float>(), p).name, detail::kOnednnName) << problem;
    }
  }
}

TEST_F(ConvOnednn, NamesWhatItLacks) {
  for (const char* problem :
       {"x=1x2x4x3x5x4 w=3x2x2x3x2x2", "x=0x3x8x8 w=4x3x3x3", "x=2x0x8x8 w=4x0x3x3"}) {
    EXPECT_NE(detail::onednn_lacks({ConvDirection::forward, Conv::parse(problem)}), nullptr)
        << problem;
  }
}

}  // namespace
}  // namespace fenestra

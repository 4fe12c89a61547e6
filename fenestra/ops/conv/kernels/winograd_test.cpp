// The convolution by transforms: its expression against the definition in rationals, its kernels
// against the definition within their own bound, and where it is chosen.
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/isa.hpp>
#include <fenestra/kernels/numerics.hpp>
#include <fenestra/ops/conv/kernels/testing.hpp>
#include <fenestra/ops/conv/kernels/winograd.hpp>
#include <fenestra/ops/conv/winograd.hpp>

#include <gtest/gtest.h>

#ifdef FENESTRA_HAVE_GMP
#include <fenestra/spec/gmp_rational.hpp>
#endif

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace fenestra {
namespace {

using testing::kConvDirections;

/// 3x3 of stride 1: few or many channels, extents around multiples of 4, any padding.
ConvGeometry random_geometry(Random& random, Index most_channels) {
  const Index in = random.between(1, most_channels);
  const Index out = random.between(1, most_channels);
  const Index rows = random.between(1, 13);
  const Index width = random.between(1, 13);
  const auto pad = [&](Index extent) -> LowHigh {
    const Index low = random.between(0, 4);
    return {low, std::max<Index>(random.between(0, 4), 3 - extent - low)};
  };
  const Padding padding{pad(rows), pad(width)};
  const Layout layout = random.chance(2) ? Layout::channels_last : Layout::channels_first;
  const bool first = layout == Layout::channels_first;
  const Index batch = random.between(1, 3);
  return conv_geometry(first ? Shape{batch, in, rows, width} : Shape{batch, rows, width, in},
                       first ? Shape{out, in, 3, 3} : Shape{3, 3, in, out},
                       random.chance(2) ? std::optional(Shape{out}) : std::nullopt,
                       {.padding = padding, .layout = layout});
}

#ifdef FENESTRA_HAVE_GMP
TEST(Winograd, EqualsTheDefinitionInRationals) {
  Random random(31);
  for (int i = 0; i < 15; ++i) {
    const ConvGeometry g = random_geometry(random, 2);
    for (const ConvDirection direction : kConvDirections) {
      const ConvProblem p{direction, g};
      const auto in = testing::random_conv_operands<float>(p, random).map(
          [](float v) { return from_double<GmpRational>(std::round(v * 8)); });
      const auto got = spec::Winograd<GmpRational>(g).run(
          direction, in.lhs, in.rhs, in.has_bias ? &in.bias : nullptr);
      ASSERT_TRUE(got == testing::conv_by_definition(p, in)) << to_string(g);
    }
  }
}
#endif

/// How much larger |A|'[(|G| 1 |G|') . (|B|' 1 |B|)]|A| is than the sum it stands for, all
/// values 1.
TEST(Winograd, AmplifiesByNoMoreThanItsBoundSays) {
  const ConvGeometry g = Conv::parse("x=1x1x6x6 w=1x1x3x3");
  const spec::Winograd<double> magnitudes(g, true);
  const Tensor<double> x(g.x_shape(), 1.0);
  const Tensor<double> w(g.w_shape(), 1.0);
  const Tensor<double> y_bar(g.y_shape(), 1.0);
  const auto largest = [](const Tensor<double>& values) {
    return *std::max_element(values.data(), values.data() + values.size());
  };
  EXPECT_LE(largest(magnitudes.run(ConvDirection::forward, x, w, nullptr)) / 9, 63);
  EXPECT_LE(largest(magnitudes.run(ConvDirection::weight_grad, x, y_bar, nullptr)) / 16, 51);
}

/// |computed - exact| <= gamma(n) |A|'[sum (|G||w||G|') . (|B|'|x||B|)]|A| and likewise in the
/// other directions; the reference is wider and has the bound of its own sum.
template <class T>
void expect_within_bound(const ConvProblem& p, Random& random) {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  const auto in = testing::random_conv_operands<T>(p, random);
  const Tensor<T> got = testing::conv_by<T>(detail::run_conv_winograd<T>, p, in);
  const auto wide = in.map([](T v) { return static_cast<Wide>(v); });
  const auto sizes = in.map([](T v) { return std::fabs(static_cast<Wide>(v)); });
  const auto reference = testing::conv_by_definition(p, wide);
  const auto magnitude = testing::conv_by_definition(p, sizes);
  const auto amplified =
      spec::Winograd<Wide>(p.geometry, true)
          .run(p.direction, sizes.lhs, sizes.rhs, sizes.has_bias ? &sizes.bias : nullptr);
  const auto gamma = [](Index count, long double epsilon) {
    const long double nu = static_cast<long double>(count) * epsilon / 2;
    return nu / (1 - nu);
  };
  const long double own = gamma(spec::winograd_roundings(p.direction, p.geometry),
                                static_cast<long double>(std::numeric_limits<T>::epsilon()));
  const long double wider =
      gamma(testing::conv_terms(p), static_cast<long double>(std::numeric_limits<Wide>::epsilon()));
  for (Index i = 0; i < got.size(); ++i) {
    const long double error =
        std::fabs(static_cast<long double>(got[i]) - static_cast<long double>(reference[i]));
    ASSERT_LE(error,
              own * static_cast<long double>(amplified[i]) +
                  wider * static_cast<long double>(magnitude[i]))
        << kernels::isa_name() << ", direction " << static_cast<int>(p.direction) << ", element "
        << i << " of " << got.size() << ": " << to_string(p.geometry);
  }
}

void expect_within_bound(const ConvGeometry& g, Random& random) {
  for (const ConvDirection direction : kConvDirections) {
    const ConvProblem p{direction, g};
    if (detail::winograd_lacks(p) != nullptr || ::testing::Test::HasFatalFailure()) {
      continue;
    }
    expect_within_bound<float>(p, random);
    expect_within_bound<double>(p, random);
  }
}

class ConvWinograd : public ::testing::TestWithParam<std::string_view> {
 protected:
  kernels::ScopedIsa isa_{GetParam()};
};

TEST_P(ConvWinograd, StaysWithinItsBoundOnRandomProblems) {
  Random random(32);
  for (int i = 0; i < 30 && !HasFatalFailure(); ++i) {
    expect_within_bound(random_geometry(random, random.chance(4) ? 36 : 6), random);
  }
}

TEST_P(ConvWinograd, StaysWithinItsBoundWhenTheBatchIsCutIntoParts) {
  Random random(33);
  for (const char* problem : {"x=4x3x118x123 w=2x3x3x3 padding=1 bias=true",
                              "x=4x118x123x3 w=3x3x3x2 padding=1 bias=true layout=channels_last",
                              "x=1x2x9x700 w=3x2x3x3 padding=0:3,0:3"}) {
    for (const ConvDirection direction : kConvDirections) {
      expect_within_bound<float>({direction, Conv::parse(problem)}, random);
    }
  }
}

TEST_P(ConvWinograd, StaysWithinItsBoundWhenTheWeightsAreCutIntoParts) {
  Random random(34);
  const auto expect = [&](ConvDirection direction, const char* problem) {
    expect_within_bound<float>({direction, Conv::parse(problem)}, random);
  };
  expect(ConvDirection::forward, "x=1x500x4x3 w=50x500x3x3 padding=1 bias=true");
  expect(ConvDirection::input_grad, "x=1x50x4x3 w=500x50x3x3 padding=1");
  expect(ConvDirection::weight_grad, "x=1x500x4x3 w=180x500x3x3 padding=1");
  expect(ConvDirection::weight_grad, "x=1x4x3x180 w=3x3x180x500 padding=1 layout=channels_last");
}

TEST_P(ConvWinograd, GivesTheSameBitsOnAnyNumberOfThreads) {
  Random random(35);
  // Several samples and one; of the last two the weights are cut into parts, each for a thread.
  for (const char* problem : {"x=5x70x30x31 w=40x70x3x3 padding=1 bias=true",
                              "x=5x30x31x40 w=3x3x40x70 padding=1 layout=channels_last",
                              "x=1x70x30x31 w=40x70x3x3 padding=1 bias=true",
                              "x=1x64x14x14 w=64x64x3x3 padding=1",
                              "x=1x300x9x14 w=200x300x3x3 padding=1 bias=true",
                              "x=1x9x14x300 w=3x3x300x200 padding=1 layout=channels_last"}) {
    for (const ConvDirection direction : kConvDirections) {
      testing::expect_conv_bits_on_any_threads<float>(
          detail::run_conv_winograd<float>, {direction, Conv::parse(problem)}, random);
    }
  }
}

TEST_P(ConvWinograd, GivesASampleTheSameBitsAloneAndInItsBatch) {
  Random random(36);
  for (const char* problem : {"x=9x70x9x14 w=40x70x3x3 padding=1 bias=true",
                              "x=9x9x14x40 w=3x3x40x70 padding=1:2,0:1 layout=channels_last",
                              "x=13x600x9x14 w=64x600x3x3 padding=1 bias=true"}) {
    for (const ConvDirection direction : {ConvDirection::forward, ConvDirection::input_grad}) {
      testing::expect_conv_bits_of_samples<float>(
          detail::run_conv_winograd<float>, {direction, Conv::parse(problem)}, random);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa,
                         ConvWinograd,
                         ::testing::ValuesIn(kernels::supported_isas()),
                         [](const auto& isa) { return std::string(isa.param); });

std::string chosen(const char* problem, ConvDirection direction) {
  return std::string(choose_conv<float>(direction, Conv::parse(problem)).name);
}

TEST(WinogradChoice, NeedsFastNumericsAndNothingElse) {
  constexpr auto kProblem = "x=8x64x28x28 w=64x64x3x3 padding=1";
  for (const ConvDirection direction : kConvDirections) {
    const std::string strict = chosen(kProblem, direction);
    EXPECT_NE(strict, "conv_f32_winograd");
    {
      const kernels::ScopedNumerics fast(Numerics::fast);
      EXPECT_EQ(chosen(kProblem, direction), "conv_f32_winograd");
      const kernels::ScopedNumerics nested(Numerics::strict);
      EXPECT_EQ(chosen(kProblem, direction), strict);
    }
    EXPECT_EQ(chosen(kProblem, direction), strict);
  }
}

TEST(WinogradChoice, IsKeptByWhatWasPreparedUnderIt) {
  const ConvPrimitive primitive{
      {}, ConvDirection::forward, Conv::parse("x=8x64x28x28 w=64x64x3x3 padding=1"), false};
  const auto prepared = [&] {
    const kernels::ScopedNumerics fast(Numerics::fast);
    return primitive.prepare<float>();
  }();
  EXPECT_EQ(prepared->name(), "conv_f32_winograd");
  EXPECT_NE(primitive.prepare<float>()->name(), "conv_f32_winograd");
}

TEST(WinogradChoice, SaysWhyItRefuses) {
  const auto refusal = [](const char* problem) {
    for (const KernelChoice& choice : Conv::kernels(Conv::parse(problem))) {
      if (choice.name == "conv_f32_winograd") {
        return choice.refusal;
      }
    }
    return std::string("not listed");
  };
  EXPECT_EQ(refusal("x=8x64x28x28 w=64x64x3x3 padding=1"), "transforms need Numerics::fast");
  EXPECT_EQ(refusal("x=8x64x28 w=64x64x3"), "not a 3x3 window");
  EXPECT_EQ(refusal("x=8x64x28x28 w=64x64x5x3"), "not a 3x3 window");
  EXPECT_EQ(refusal("x=8x64x28x28 w=64x64x3x3 stride=1,2"), "stride or dilation other than 1");
  EXPECT_EQ(refusal("x=8x64x28x28 w=64x64x3x3 dilation=2"), "stride or dilation other than 1");
  EXPECT_EQ(refusal("x=8x64x28x28 w=64x32x3x3 groups=2"), "groups");
  EXPECT_EQ(refusal("x=0x64x28x28 w=64x64x3x3"), "nothing to multiply");
  EXPECT_EQ(refusal("x=8x8x28x28 w=64x8x3x3"),
            "too few channels: the transforms cost more than they save");
  EXPECT_EQ(refusal("x=64x64x5x5 w=64x64x3x3 padding=1"), "tiles of 4x4 cells would stand outside");
  EXPECT_EQ(refusal("x=64x64x8x8 w=64x64x3x3 padding=1"),
            "too few tiles: transforming the weights costs more than it saves");
}

}  // namespace
}  // namespace fenestra

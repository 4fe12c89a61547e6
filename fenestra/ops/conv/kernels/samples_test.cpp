// Convolutions along the batch against the definition, on small integers by equality, and the bits
// that a sample has alone.
#include <fenestra/kernels/isa.hpp>
#include <fenestra/ops/conv/kernels/dense.hpp>
#include <fenestra/ops/conv/kernels/direct.hpp>
#include <fenestra/ops/conv/kernels/samples.hpp>
#include <fenestra/ops/conv/kernels/testing.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace fenestra {
namespace {

constexpr ConvDirection kDirections[] = {ConvDirection::forward, ConvDirection::input_grad};

/// One result after the other in bits, signs of zeros and NaNs too.
template <class T>
bool are_same_bits(const T* a, const T* b, Index count) {
  return std::memcmp(a, b, static_cast<std::size_t>(count) * sizeof(T)) == 0;
}

class ConvSamples : public ::testing::TestWithParam<std::string_view> {
 protected:
  kernels::ScopedIsa isa_{GetParam()};

  /// Gives the samples that were computed, for both kinds of bias.
  template <class T>
  Index expect_exact(const ConvProblem& p, Random& random) {
    // Products of at most 16, so that sums of a million of them are exact.
    const auto in = testing::random_conv_operands<T>(p, random).map(
        [](T value) { return std::round(4 * value); });
    const Tensor<T> expected = testing::conv_by_definition(p, in);
    Index done = 0;
    for (const auto place :
         {detail::BiasPlace::before_products, detail::BiasPlace::behind_products}) {
      Tensor<T> got(testing::conv_out_shape(p), std::numeric_limits<T>::quiet_NaN());
      done = detail::run_samples<T>(p,
                                    {.lhs = in.lhs.data(),
                                     .rhs = in.rhs.data(),
                                     .bias = in.has_bias ? in.bias.data() : nullptr,
                                     .out = got.mutable_data()},
                                    place);
      const Index computed = got.size() / p.geometry.batch * done;
      for (Index i = 0; i < computed; ++i) {
        EXPECT_EQ(got[i], expected[i]) << "direction " << static_cast<int>(p.direction)
                                       << ", element " << i << ": " << to_string(p.geometry);
        if (got[i] != expected[i]) {
          return done;
        }
      }
      for (Index i = computed; i < got.size(); ++i) {
        EXPECT_TRUE(std::isnan(got[i])) << to_string(p.geometry);
      }
    }
    return done;
  }

  /// A sample in its batch has the bits that the same kernel gives it alone.
  template <class T>
  void expect_bits_alone(const ConvProblem& p, const testing::ConvOperands<T>& in) {
    for (const testing::ConvRun<T> run : {testing::ConvRun<T>{detail::run_conv_direct<T>},
                                          testing::ConvRun<T>{detail::run_conv_dense<T>}}) {
      const ConvProblem single{p.direction, Conv::single_sample(p.geometry)};
      const Tensor<T> whole = testing::conv_by(run, p, in);
      const Index step = in.lhs.size() / p.geometry.batch;
      const Index out_step = whole.size() / p.geometry.batch;
      for (Index n = 0; n < p.geometry.batch; ++n) {
        testing::ConvOperands<T> alone = in;
        alone.lhs = Tensor<T>(testing::conv_lhs_shape(single),
                              std::span(in.lhs.data() + n * step, static_cast<std::size_t>(step)));
        const Tensor<T> one = testing::conv_by(run, single, alone);
        ASSERT_TRUE(are_same_bits(one.data(), whole.data() + n * out_step, out_step))
            << "direction " << static_cast<int>(p.direction) << ", sample " << n << " of "
            << to_string(p.geometry);
      }
    }
  }
};

/// With so many samples that some vectors are full and some samples are left.
ConvGeometry in_batch(ConvGeometry g, Random& random) {
  g.batched = true;
  g.batch = random.between(16, 19);
  return g;
}

TEST_P(ConvSamples, AreTheDefinitionOnRandomProblems) {
  Random random(61);
  int taken = 0;
  for (int i = 0; i < 400 && !HasFailure(); ++i) {
    const ConvGeometry g = in_batch(Conv::random(random), random);
    for (const ConvDirection direction : kDirections) {
      taken += expect_exact<float>({direction, g}, random) > 0 ? 1 : 0;
      taken += expect_exact<double>({direction, g}, random) > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(taken, 200);
}

// Rows and columns of all phases, tiles of all widths, channels in several tiles, groups, bands,
// taps that no cell sees, targets without a source.
TEST_P(ConvSamples, AreTheDefinitionOnEveryPathOfTheLoops) {
  Random random(62);
  for (const char* problem : {"x=17x6x14x14 w=16x6x5x5 bias=true",
                              "x=16x3x9x7 w=5x3x3x3 padding=1 bias=true",
                              "x=17x4x11x13 w=6x2x5x3 stride=2,3 padding=2:0,1:3 dilation=1,2 "
                              "groups=2 bias=true",
                              "x=19x7x3x2 w=13x7x2x2 padding=3 stride=3",
                              "x=18x2x40 w=3x2x7 padding=3 stride=2 dilation=2 bias=true",
                              "x=16x5x1x19 w=9x5x1x6 stride=1,4 padding=0,9",
                              "x=16x1x6x6 w=1x1x7x7 padding=5",
                              "x=16x8x44x20 w=5x8x3x3 padding=1",
                              "x=16x2x8x8 w=19x2x3x3 stride=4"}) {
    const ConvGeometry g = Conv::parse(problem);
    for (const ConvDirection direction : kDirections) {
      EXPECT_GT(expect_exact<float>({direction, g}, random), 0) << problem;
      EXPECT_GT(expect_exact<double>({direction, g}, random), 0) << problem;
    }
  }
}

TEST_P(ConvSamples, HaveTheBitsOfASampleAlone) {
  Random random(63);
  for (int i = 0; i < 100 && !HasFatalFailure(); ++i) {
    const ConvGeometry g = in_batch(Conv::random(random), random);
    for (const ConvDirection direction : kDirections) {
      const ConvProblem p{direction, g};
      if (detail::direct_lacks(p) == nullptr && detail::dense_lacks(p) == nullptr) {
        expect_bits_alone<float>(p, testing::random_conv_operands<float>(p, random));
        expect_bits_alone<double>(p, testing::random_conv_operands<double>(p, random));
      }
    }
  }
}

TEST_P(ConvSamples, HaveTheBitsOfASampleAloneOnAnyThreads) {
  Random random(64);
  const ConvGeometry g = Conv::parse("x=19x6x14x14 w=16x6x5x5 bias=true");
  for (const ConvDirection direction : kDirections) {
    testing::expect_conv_bits_on_any_threads<float>(
        detail::run_conv_direct<float>, {direction, g}, random);
    testing::expect_conv_bits_on_any_threads<double>(
        detail::run_conv_dense<double>, {direction, g}, random);
  }
}

// What lies outside the source is left out here and multiplied as zeros elsewhere: that must not
// show in products that vanish, and does in weights that are not finite.
TEST_P(ConvSamples, HaveTheBitsOfASampleAloneWhereZerosHaveSigns) {
  const ConvGeometry g = Conv::parse("x=16x3x9x7 w=5x3x3x3 padding=2 bias=true");
  const float tiny = std::numeric_limits<float>::min();
  for (const ConvDirection direction : kDirections) {
    const ConvProblem p{direction, g};
    Random random(65);
    testing::ConvOperands<float> in = testing::random_conv_operands<float>(p, random);
    in.lhs = in.lhs.map([&](float) { return tiny; });
    in.rhs = in.rhs.map([&](float) { return -tiny; });
    in.bias = in.bias.map([](float) { return -0.0F; });
    expect_bits_alone<float>(p, in);
  }
}

TEST_P(ConvSamples, AreLeftAloneWhereWeightsAreNotFinite) {
  const ConvGeometry g = Conv::parse("x=16x3x9x7 w=5x3x3x3 padding=2");
  for (const float odd :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const ConvDirection direction : kDirections) {
      const ConvProblem p{direction, g};
      Random random(66);
      testing::ConvOperands<float> in = testing::random_conv_operands<float>(p, random);
      in.rhs.mutable_data()[in.rhs.size() - 1] = odd;
      Tensor<float> out(testing::conv_out_shape(p));
      EXPECT_EQ(detail::run_samples<float>(
                    p,
                    {.lhs = in.lhs.data(), .rhs = in.rhs.data(), .out = out.mutable_data()},
                    detail::BiasPlace::behind_products),
                0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa,
                         ConvSamples,
                         ::testing::ValuesIn(kernels::supported_isas()),
                         [](const auto& isa) { return std::string(isa.param); });

}  // namespace
}  // namespace fenestra

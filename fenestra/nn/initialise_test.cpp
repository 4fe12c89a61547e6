// Initial weights: fans, bounds, moments, and the bits that a seed gives.
#include <fenestra/nn/initialise.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace fenestra::nn {
namespace {

/// Mean of f over the values of a tensor.
template <class F>
double mean_of(const Tensor<double>& w, F&& f) {
  double sum = 0;
  for (const double value : w.values()) {
    sum += f(value);
  }
  return sum / static_cast<double>(w.size());
}

TEST(Initialise, FansFollowTheWeightLayout) {
  const Fans first = weight_fans({8, 3, 5, 7});
  EXPECT_EQ(first.in, 3 * 35);
  EXPECT_EQ(first.out, 8 * 35);
  const Fans last = weight_fans({5, 7, 3, 8}, Layout::channels_last);
  EXPECT_EQ(last.in, first.in);
  EXPECT_EQ(last.out, first.out);
  const Fans linear = weight_fans({10, 64});
  EXPECT_EQ(linear.in, 64);
  EXPECT_EQ(linear.out, 10);
}

TEST(Initialise, UniformWeightsStayWithinTheirBoundAndReachTowardsIt) {
  Random random(1);
  const Tensor<double> kaiming = kaiming_uniform<double>({64, 16, 3, 3}, random);
  const double bound = std::sqrt(6.0 / (16 * 9));
  const Tensor<double> xavier = xavier_uniform<double>({64, 128}, random);
  const double xavier_bound = std::sqrt(6.0 / (64 + 128));
  for (const auto& [w, largest] : {std::pair{kaiming, bound}, std::pair{xavier, xavier_bound}}) {
    const double top = *std::max_element(w.values().begin(), w.values().end());
    const double bottom = *std::min_element(w.values().begin(), w.values().end());
    // The bound itself is a product of three roundings; 1e-9 is the chance that 8192 draws all miss
    // the outer 1/400.
    EXPECT_LE(std::max(top, -bottom), largest * (1 + 0x1p-51));
    EXPECT_GT(std::min(top, -bottom), largest * (1 - 1.0 / 200));
  }
}

TEST(Initialise, NormalWeightsHaveTheMomentsOfTheirDistribution) {
  Random random(2);
  const Index n = 100000;
  const Tensor<double> w = normal<double>({n}, random, 1);
  // Six standard errors: var(z) = 1, var(z^2) = 2, var(z^3) = 15, var(z^4) = 96.
  const double error = 6 / std::sqrt(static_cast<double>(n));
  EXPECT_LE(std::fabs(mean_of(w, [](double z) { return z; })), error);
  EXPECT_LE(std::fabs(mean_of(w, [](double z) { return z * z; }) - 1), error * std::sqrt(2.0));
  EXPECT_LE(std::fabs(mean_of(w, [](double z) { return z * z * z; })), error * std::sqrt(15.0));
  EXPECT_LE(std::fabs(mean_of(w, [](double z) { return z * z * z * z; }) - 3),
            error * std::sqrt(96.0));
}

TEST(Initialise, KaimingNormalScalesByTheFan) {
  Random a(3);
  Random b(3);
  const Tensor<double> by_in = kaiming_normal<double>({4, 9}, a, {.gain = 1});
  const Tensor<double> by_out = kaiming_normal<double>({4, 9}, b, {.gain = 1, .fan = Fan::out});
  for (Index i = 0; i < by_in.size(); ++i) {
    // 1/3 and 1/2 times the same draw; the thirds round twice.
    EXPECT_LE(std::fabs(by_in[i] * 3 - by_out[i] * 2), 3 * 0x1p-53 * std::fabs(by_out[i] * 2));
  }
}

TEST(Initialise, ASeedGivesTheSameBitsEverywhere) {
  Random random(42);
  const Tensor<double> normals = normal<double>({4}, random, 1);
  const Tensor<float> uniforms = kaiming_uniform<float>({2, 2}, random);
  const std::uint64_t normal_bits[] = {
      0x3fdf8c80e851c08cULL, 0xbff47f4af60c7f94ULL, 0xbfe342959c9fa344ULL, 0xbff8ad8264f1e64dULL};
  const std::uint32_t uniform_bits[] = {0xbf82d917U, 0xbcc6f3ccU, 0x3d3e13b4U, 0x3d8dfbe5U};
  for (Index i = 0; i < 4; ++i) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(normals[i]), normal_bits[i])
        << std::hex << std::bit_cast<std::uint64_t>(normals[i]);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(uniforms[i]), uniform_bits[i])
        << std::hex << std::bit_cast<std::uint32_t>(uniforms[i]);
  }
}

TEST(Initialise, ConstantsAreConstantInEveryScalar) {
  EXPECT_EQ(zeros<float>({2}), Tensor<float>(Shape{2}, {0.0f, 0.0f}));
  EXPECT_EQ(constant<Rational>({2}, 0.5),
            Tensor<Rational>(Shape{2}, {Rational(1, 2), Rational(1, 2)}));
}

TEST(Initialise, AVectorHasNoFans) {
  Random random(1);
  try {
    kaiming_uniform<float>({3}, random);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::rank_mismatch);
  }
  EXPECT_EQ(kaiming_uniform<float>({3, 0}, random).size(), 0);
}

}  // namespace
}  // namespace fenestra::nn

// The law of the kernels on a problem that transforms take: random problems of the harness are too
// small for them. Also tests of the law itself, with candidates that lose bits on purpose.
#include <fenestra/check/kernel_law.hpp>
#include <fenestra/ops/conv/op.hpp>
#include <fenestra/ops/conv_transpose/op.hpp>
#include <fenestra/spec/random.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fenestra::check {
namespace {

/// One candidate in float loses what is left of `kBits` bits.
template <bool kTransforms, int kBits>
struct LosesBitsInOneOf : Conv {
  template <class V>
  static V call(const Geometry& g,
                const std::vector<V>& in,
                const std::vector<Tensor<Index>>& data) {
    const V y = Conv::call<V>(g, in, data);
    if constexpr (std::is_same_v<V, Tensor<float>>) {
      constexpr std::string_view kName = kTransforms ? "conv_f32_winograd" : "conv_f32_gemm";
      return kernels::forced_kernel() == kName ? scale(y, 1 + std::ldexp(1.0, -kBits)) : y;
    } else {
      return y;
    }
  }
};

struct StatesNoBound : Conv {
  static void transformed() {}
};

template <class Op>
std::string complaint_of_kernels(const char* text) {
  const auto g = Op::parse(text);
  Random random(41);
  const auto draw = [&](const Shape& shape) {
    Tensor<double> result(shape);
    for (double& value : result.mutable_values()) {
      value = static_cast<float>(random.real());
    }
    return result;
  };
  Inputs<double> in;
  std::vector<Tensor<double>> dots;
  for (const TensorInfo& info : Op::inputs(g)) {
    in.values.push_back(draw(info.shape));
    dots.push_back(draw(info.shape));
  }
  return kernels_complaint<Op>(g, in, dots, draw(Op::output(g).shape));
}

/// The smallest problem that the transforms take, in all three directions.
constexpr auto kTransformed = "x=1x32x12x16 w=32x32x3x3 padding=1 bias=true";

TEST(LawOfKernels, HoldsTransformsToTheirOwnBoundAndNobodyElse) {
  EXPECT_EQ(complaint_of_kernels<Conv>(kTransformed), "");
  EXPECT_EQ(complaint_of_kernels<ConvTranspose>(kTransformed), "");
  const auto complaint_without_bits = []<bool kTransforms, int kBits>() {
    return complaint_of_kernels<LosesBitsInOneOf<kTransforms, kBits>>(kTransformed);
  };
  // 13 bits are about 3 times the bound of the definition and half that of the transforms, 8 bits
  // 18 times the latter.
  EXPECT_EQ((complaint_without_bits.operator()<true, 13>()), "");
  const std::string strict = complaint_without_bits.operator()<false, 13>();
  EXPECT_TRUE(strict.starts_with("conv_f32_gemm")) << strict;
  const std::string fast = complaint_without_bits.operator()<true, 8>();
  EXPECT_TRUE(fast.starts_with("conv_f32_winograd")) << fast;
}

TEST(LawOfKernels, SeesATransformThatStatesNoBound) {
  const std::string complaint = complaint_of_kernels<StatesNoBound>(kTransformed);
  EXPECT_NE(complaint.find("states no bound"), std::string::npos) << complaint;
}

}  // namespace
}  // namespace fenestra::check

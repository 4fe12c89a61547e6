// Folding: prints before and after, and values within the rounding bound.
#include <fenestra/check/rounded.hpp>
#include <fenestra/graph/fold.hpp>
#include <fenestra/graph/plan.hpp>
#include <fenestra/graph/simplify.hpp>
#include <fenestra/graph/testing_test.hpp>
#include <fenestra/ops/rules.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fenestra::graph {
namespace {

using check::Rounded;

Tensor<Rounded> rounded(const Tensor<float>& x) {
  return x.map([](float v) { return Rounded(static_cast<double>(v), 0); });
}

/// Whether two computations of `exact`, each with as many roundings, could differ as they do.
void expect_within_bound(const Tensor<float>& got,
                         const Tensor<float>& other,
                         const Tensor<Rounded>& exact,
                         std::int64_t more_roundings) {
  ASSERT_EQ(got.shape(), other.shape());
  ASSERT_EQ(got.shape(), exact.shape());
  const double unit = std::numeric_limits<float>::epsilon() / 2;
  for (Index i = 0; i < got.size(); ++i) {
    const double steps = static_cast<double>(2 * exact[i].roundings() + more_roundings) * unit;
    const double bound = steps / (1 - steps) * exact[i].magnitude();
    ASSERT_LE(std::fabs(static_cast<double>(got[i]) - static_cast<double>(other[i])), bound) << i;
  }
}

constexpr auto kNormalised = [](const auto& x,
                                const auto& w,
                                const auto& mean,
                                const auto& var,
                                const auto& gamma,
                                const auto& beta) {
  return relu(batch_norm_inference(conv(x, w, {.padding = 1}), mean, var, gamma, beta));
};

struct Normalisation {
  Tensor<float> x = sample_tensor<float>({2, 3, 6, 6}, 1);
  Tensor<float> w = sample_tensor<float>({4, 3, 3, 3}, 2);
  Tensor<float> mean = sample_tensor<float>({4}, 3);
  Tensor<float> var = sample_tensor<float>({4}, 4).map([](float v) { return v * v + 0.5f; });
  Tensor<float> gamma = sample_tensor<float>({4}, 5);
  Tensor<float> beta = sample_tensor<float>({4}, 6);
};

TEST(Fold, ANormalisationOfInferenceBecomesPartOfTheConvolution) {
  const Normalisation n;
  const Graph graph = trace<float>(
      [&](const auto& x) { return kNormalised(x, n.w, n.mean, n.var, n.gamma, n.beta); },
      n.x.shape());
  EXPECT_EQ(
      to_string(simplify(graph)),
      "%0 = input \"x0\" : f32 (2, 3, 6, 6)\n"
      "%1 = constant : f32 (4, 3, 3, 3)\n"
      "%2 = conv(%0, %1) {x=2x3x6x6 w=4x3x3x3 stride=1,1 padding=1,1 "
      "dilation=1,1 groups=1} : f32 (2, 4, 6, 6)\n"
      "%3 = reshape(%2) : f32 (2, 4, 36)\n"
      "%4 = constant : f32 (1, 4, 1)\n"
      "%5 = constant : f32 (1, 4, 1)\n"
      "%6 = constant : f32 (1, 4, 1)\n"
      "%7 = constant : f32 (1, 4, 1)\n"
      "%8 = normalise(%3, %4, %5, %6, %7) {stat (1, 4, 1) eps=1e-05 inference} : f32 (2, 4, 36)\n"
      "%9 = reshape(%8) : f32 (2, 4, 6, 6)\n"
      "%10 = relu(%9) : f32 (2, 4, 6, 6)\n"
      "output \"y\" = %10\n");
  EXPECT_EQ(to_string(simplify(fold_scales(simplify(graph)))),
            "%0 = input \"x0\" : f32 (2, 3, 6, 6)\n"
            "%1 = constant : f32 (4,)\n"
            "%2 = constant : f32 (4, 3, 3, 3)\n"
            "%3 = conv(%0, %2, %1) {x=2x3x6x6 w=4x3x3x3 stride=1,1 padding=1,1 "
            "dilation=1,1 groups=1} : f32 (2, 4, 6, 6)\n"
            "%4 = relu(%3) : f32 (2, 4, 6, 6)\n"
            "output \"y\" = %4\n");
}

TEST(Fold, ValuesStayWithinTheRoundingBound) {
  const Normalisation n;
  const auto folded = compile<float>(kNormalised,
                                     n.x.shape(),
                                     n.w.shape(),
                                     n.mean.shape(),
                                     n.var.shape(),
                                     n.gamma.shape(),
                                     n.beta.shape());
  Context<float> context(folded);
  EXPECT_EQ(count_named(folded.plan().graph(), "normalise"), 0u);
  const Tensor<float> eager = kNormalised(n.x, n.w, n.mean, n.var, n.gamma, n.beta);
  const Tensor<Rounded> exact = kNormalised(rounded(n.x),
                                            rounded(n.w),
                                            rounded(n.mean),
                                            rounded(n.var),
                                            rounded(n.gamma),
                                            rounded(n.beta));
  // Folded, a term meets the same operations in another order, and one product more.
  expect_within_bound(
      folded.run(context, n.x, n.w, n.mean, n.var, n.gamma, n.beta)[0], eager, exact, 2);
}

TEST(Fold, KeepsANormalisationWhoseInputSomebodyElseReads) {
  const Normalisation n;
  const Graph graph = trace<float>(
      [&](const auto& x) {
        const auto y = conv(x, n.w, {.padding = 1});
        return add(y, batch_norm_inference(y, n.mean, n.var, n.gamma, n.beta));
      },
      n.x.shape());
  EXPECT_EQ(count_named(simplify(fold_scales(simplify(graph))), "normalise"), 1u);
}

TEST(Fold, KeepsBitsWhenTold) {
  const Normalisation n;
  const auto program = compile<float>(kNormalised,
                                      n.x.shape(),
                                      n.w.shape(),
                                      n.mean.shape(),
                                      n.var.shape(),
                                      n.gamma.shape(),
                                      n.beta.shape(),
                                      CompileOptions{.fold = false});
  Context<float> context(program);
  EXPECT_EQ(program.run(context, n.x, n.w, n.mean, n.var, n.gamma, n.beta)[0],
            kNormalised(n.x, n.w, n.mean, n.var, n.gamma, n.beta));
}

}  // namespace
}  // namespace fenestra::graph

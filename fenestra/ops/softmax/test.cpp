// Softmax and its like beyond their laws: extremes, errors, second derivatives, the compiled lines.
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/ops/reduce/reduce.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/ops/softmax/op.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

namespace fenestra {
namespace {

using D = Tensor<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("fix: "), std::string::npos) << error.what();
    return error.code();
  }
  return ErrorCode::none;
}

TEST(Softmax, LargeLogitsDoNotOverflow) {
  const D x(Shape{2}, {1e4, 1e4 + 1});
  EXPECT_EQ(softmax(x), softmax(D(Shape{2}, {0.0, 1.0})));
  EXPECT_EQ(log_softmax(x), log_softmax(D(Shape{2}, {0.0, 1.0})));
  // One rounding of the sum at the size of 1e4.
  EXPECT_NEAR(logsumexp(x)[0], 10001.313261687518, 1e4 * std::numeric_limits<double>::epsilon());
}

TEST(Softmax, MinusInfinityHasNoWeightAndNoGradient) {
  Tape<double> tape;
  const auto x = tape.parameter(D(Shape{3}, {-kInf, 0.0, 0.0}));
  EXPECT_EQ(softmax(x).tensor(), D(Shape{3}, {0.0, 0.5, 0.5}));
  EXPECT_EQ(log_softmax(x)[0], -kInf);
  EXPECT_EQ(tape.backward(logsumexp(x))[x], D(Shape{3}, {0.0, 0.5, 0.5}));
}

TEST(Softmax, LogsumexpOfMinusInfinityAloneIsMinusInfinityWithZeroGradient) {
  Tape<double> tape;
  const auto x = tape.parameter(D(Shape{2, 2}, {-kInf, -kInf, 0.0, -kInf}));
  const auto y = logsumexp(x);
  EXPECT_EQ(y.tensor(), D(Shape{2}, {-kInf, 0.0}));
  EXPECT_EQ(tape.backward(y)[x], D(Shape{2, 2}, {0.0, 0.0, 1.0, 0.0}));
}

TEST(Softmax, PlusInfinityWinsLogsumexpAndNanPropagates) {
  EXPECT_EQ(logsumexp(D(Shape{2}, {kInf, 1.0}))[0], kInf);
  for (const D& x : {D(Shape{2}, {kNan, 1.0}), D(Shape{2}, {1.0, kNan})}) {
    EXPECT_TRUE(std::isnan(logsumexp(x)[0]));
    EXPECT_TRUE(std::isnan(softmax(x)[0]) && std::isnan(softmax(x)[1]));
  }
}

TEST(Softmax, RefusesMissingAndEmptyAxesAndScalarsWithoutExponentials) {
  EXPECT_EQ(code_of([] { softmax(D(Shape{2}), 1); }), ErrorCode::rank_mismatch);
  EXPECT_EQ(code_of([] { log_softmax(D(Shape{})); }), ErrorCode::rank_mismatch);
  EXPECT_EQ(code_of([] { logsumexp(D(Shape{2, 0})); }), ErrorCode::invalid_extent);
  EXPECT_EQ(code_of([] { softmax(Tensor<Rational>(Shape{2})); }), ErrorCode::dtype_mismatch);
  EXPECT_EQ(softmax(D(Shape{2, 0})).shape(), (Shape{2, 0}));
}

TEST(Softmax, CompiledLinesAgreeWithTheSpecificationAndDoNotDependOnThreads) {
  const int before = threads();
  Random random(3);
  for (const Shape& shape : {Shape{3, 70, 67}, Shape{130, 11}, Shape{1, 5, 1}, Shape{2, 3, 129}}) {
    D x(shape);
    for (double& value : x.mutable_values()) {
      value = 8 * random.real();
    }
    const AxisView view = axis_view(shape, 1);
    for (const SoftmaxFunction f :
         {SoftmaxFunction::softmax, SoftmaxFunction::log_softmax, SoftmaxFunction::logsumexp}) {
      D needed = f == SoftmaxFunction::logsumexp ? D(Shape{view.outer * view.inner}) : D(shape);
      for (Index line = 0; line < view.outer * view.inner; ++line) {
        const Index at = line / view.inner * view.extent * view.inner + line % view.inner;
        spec::softmax_line(f,
                           x.data() + at,
                           view.extent,
                           view.inner,
                           needed.mutable_data() + (f == SoftmaxFunction::logsumexp ? line : at));
      }
      set_threads(1);
      const D got = apply_softmax(f, x, 1).reshaped(needed.shape());
      // Each sum is off by its terms and their exponentials, which are relative errors of
      // probabilities and absolute ones of logarithms.
      const double relative =
          2 * static_cast<double>(view.extent + 4) * std::numeric_limits<double>::epsilon();
      for (Index i = 0; i < needed.size(); ++i) {
        const double size =
            f == SoftmaxFunction::softmax ? needed[i] : 1 + std::fabs(needed[i]) + 8;
        EXPECT_LE(std::fabs(got[i] - needed[i]), relative * size);
      }
      for (const int count : {2, 7}) {
        set_threads(count);
        EXPECT_EQ(apply_softmax(f, x, 1).reshaped(needed.shape()), got);
      }
    }
  }
  set_threads(before);
}

TEST(Softmax, TheHessianOfLogsumexpIsTheJacobianOfSoftmax) {
  const D x(Shape{3}, {0.5, -1.0, 2.0});
  const D v(Shape{3}, {1.0, 2.0, -1.0});
  Tape<double> tape;
  const auto variable = tape.parameter(x);
  const auto largest = [](const auto& at) { return logsumexp(at); };
  const auto slope = jvp(largest, primals(variable), tangents(v)).second;
  const D hessian_v = tape.backward(slope)[variable];
  const auto weights = [](const auto& at) { return softmax(at); };
  const D jacobian_v = jvp(weights, primals(x), tangents(v)).second;
  for (Index i = 0; i < 3; ++i) {
    // Ten operations on values below 4.
    EXPECT_NEAR(hessian_v[i], jacobian_v[i], 40 * std::numeric_limits<double>::epsilon());
  }
}

}  // namespace
}  // namespace fenestra

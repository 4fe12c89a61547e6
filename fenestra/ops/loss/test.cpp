// Losses beyond their laws: refusals, exact gradients, the fused gradient against the composition,
// second derivatives.
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/ops/loss/op.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/spec/interval.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace fenestra {
namespace {

using D = Tensor<double>;
using Exact = Tensor<Rational>;
using Labels = Tensor<Index>;

template <class Call>
Fault fault_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("fix: "), std::string::npos) << error.what();
    return error.fault();
  }
  return {};
}

TEST(Loss, UnequalShapesAreRefusedNotBroadcast) {
  EXPECT_EQ(fault_of([] {
              mse_loss(D(Shape{4, 1}), D(Shape{4}));
            }).code,
            ErrorCode::shape_mismatch);
  EXPECT_EQ(fault_of([] { bce_with_logits(D(Shape{4}), D(Shape{1})); }).code,
            ErrorCode::shape_mismatch);
  EXPECT_EQ(fault_of([] {
              cross_entropy(D(Shape{4, 3}), Labels(Shape{4, 1}));
            }).code,
            ErrorCode::shape_mismatch);
}

TEST(Loss, LabelsOutsideTheClassesAreRefusedByValue) {
  for (const Index label : {Index{-1}, Index{3}}) {
    const Fault fault = fault_of([&] {
      cross_entropy(D(Shape{2, 3}), Labels(Shape{2}, {0, label}));
    });
    EXPECT_EQ(fault.code, ErrorCode::invalid_index);
    EXPECT_EQ(fault.got, label);
    EXPECT_EQ(fault.needed, 3);
  }
  EXPECT_EQ(fault_of([] {
              cross_entropy(D(Shape{2, 0}), Labels(Shape{2}));
            }).code,
            ErrorCode::rank_mismatch);
}

TEST(Loss, OneSampleNeedsNoBatchAxis) {
  EXPECT_EQ(cross_entropy(D(Shape{2}, 0.0), Labels(Shape{}, Index{1}))[0], std::log(2.0));
}

TEST(Loss, ConfidentLogitsGiveFiniteLossesAndGradients) {
  Tape<double> tape;
  const auto x = tape.parameter(D(Shape{1, 2}, {1000.0, 0.0}));
  const auto loss = cross_entropy(x, Labels(Shape{1}, Index{1}));
  EXPECT_EQ(loss[0], 1000.0);
  EXPECT_EQ(tape.backward(loss)[x], D(Shape{1, 2}, {1.0, -1.0}));
  const auto z = tape.parameter(D(Shape{2}, {1000.0, -1000.0}));
  const auto bce = bce_with_logits(z, D(Shape{2}, {0.0, 1.0}), {Reduction::none});
  EXPECT_EQ(bce.tensor(), D(Shape{2}, {1000.0, 1000.0}));
  EXPECT_EQ(tape.backward(bce)[z], D(Shape{2}, {1.0, -1.0}));
}

TEST(Loss, TheGradientAndHessianOfTheSquaredErrorAreExact) {
  Tape<Rational> inner;
  Tape<Rational> outer;
  const auto x = inner.parameter(Exact(Shape{3}, {1, 2, 6}));
  const auto xx = outer.parameter(x);
  const auto slope = outer.backward(mse_loss(xx, Exact(Shape{3}, {0, 4, 3})))[xx];
  EXPECT_EQ(slope.tensor(), Exact(Shape{3}, {Rational(2, 3), Rational(-4, 3), Rational(2)}));
  EXPECT_EQ(inner.backward(slope)[x], Exact(Shape{3}, Rational(2, 3)));
}

TEST(Loss, TheFusedCrossEntropyLiesBesideItsCompositionAndDoesNotDependOnThreads) {
  // Both are computed in double; an enclosure of the exact value decides, one width around it.
  using I = Interval<double>;
  const int before = threads();
  const Shape shape{3, 7, 100};
  Random random(11);
  D x(shape);
  for (double& value : x.mutable_values()) {
    value = 4 * random.real();
  }
  Labels labels(Shape{3, 100});
  for (Index& label : labels.mutable_values()) {
    label = random.between(0, 6);
  }
  const auto run = [&]<class T>(const Tensor<T>& logits) {
    Tape<T> tape;
    const auto variable = tape.parameter(logits);
    const auto loss = cross_entropy(variable, labels, {Reduction::none});
    return std::pair<Tensor<T>, Tensor<T>>(loss.tensor(), tape.backward(loss)[variable]);
  };
  const auto [enclosed, enclosed_bar] = run(x.map([](double v) { return I(v); }));
  set_threads(1);
  const auto [loss, x_bar] = run(x);
  for (Index i = 0; i < loss.size(); ++i) {
    EXPECT_GE(loss[i], enclosed[i].lo() - enclosed[i].width());
    EXPECT_LE(loss[i], enclosed[i].hi() + enclosed[i].width());
  }
  for (Index i = 0; i < x_bar.size(); ++i) {
    EXPECT_GE(x_bar[i], enclosed_bar[i].lo() - enclosed_bar[i].width());
    EXPECT_LE(x_bar[i], enclosed_bar[i].hi() + enclosed_bar[i].width());
  }
  for (const int count : {2, 7}) {
    set_threads(count);
    EXPECT_EQ(run(x), std::pair(loss, x_bar));
  }
  set_threads(before);
}

TEST(Loss, TheHessianOfCrossEntropyIsThatOfLogsumexpInEveryNesting) {
  const D x(Shape{1, 3}, {0.5, -1.0, 2.0});
  const D v(Shape{1, 3}, {1.0, 2.0, -1.0});
  const Labels label(Shape{1}, Index{2});
  const auto probabilities = [](const auto& at) { return softmax(at, 1); };
  const D needed = jvp(probabilities, primals(x), tangents(v)).second;
  const auto loss = [&](const auto& at) { return cross_entropy(at, label); };

  Tape<double> tape;
  const auto variable = tape.parameter(x);
  const auto [y, y_dot] = jvp(loss, primals(variable), tangents(v));
  const D forward_then_reverse = tape.backward(y_dot)[variable];

  const D reverse_then_forward = hvp(loss, primals(x), tangents(v));

  Tape<double> inner;
  Tape<double> outer;
  const auto at = inner.parameter(x);
  const auto nested = outer.parameter(at);
  const auto slope = outer.backward(loss(nested))[nested];
  const D reverse_twice = inner.backward(Seed<double>{slope, v})[at];

  // Ten operations on values below 4.
  const double bound = 40 * std::numeric_limits<double>::epsilon();
  for (Index i = 0; i < 3; ++i) {
    EXPECT_NEAR(forward_then_reverse[i], needed[i], bound);
    EXPECT_NEAR(reverse_then_forward[i], needed[i], bound);
    EXPECT_NEAR(reverse_twice[i], needed[i], bound);
  }
}

TEST(Loss, ADerivativeTakenInANoGradScopeIsStillADerivative) {
  const D x(Shape{1, 2}, {0.0, 1.0});
  Tape<double> inner;
  Tape<double> outer;
  const auto at = inner.parameter(x);
  const auto nested = outer.parameter(at);
  const auto slope = outer.backward(cross_entropy(nested, Labels(Shape{1})))[nested];
  const D plain = inner.backward(slope, {.retain = true})[at];
  const NoGrad scope;
  EXPECT_EQ(inner.backward(slope)[at], plain);
}

}  // namespace
}  // namespace fenestra

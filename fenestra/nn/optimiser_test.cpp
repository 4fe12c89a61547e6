// Optimisers: known steps, the published recurrences in long double, state, trees, errors.
#include <fenestra/base/key.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/nn/any_optimiser.hpp>
#include <fenestra/nn/initialise_model.hpp>
#include <fenestra/nn/layers.hpp>
#include <fenestra/nn/optimiser.hpp>
#include <fenestra/nn/schedule.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/loss/loss.hpp>
#include <fenestra/ops/reduce/reduce.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

namespace fenestra::nn {
namespace {

using D = Tensor<double>;

template <class F>
ErrorCode code_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("fix: "), std::string::npos);
    return error.code();
  }
  return ErrorCode::none;
}

// Dyadic numbers: every operation below is exact, so results are compared with ==.

TEST(Sgd, WithoutMomentumGoesDownTheGradient) {
  Sgd<double> sgd({.rate = 0.5, .weight_decay = 0.25});
  D w(Shape{2}, {1.0, -2.0});
  sgd.step(w, D(Shape{2}, {1.0, 0.0}));
  EXPECT_EQ(w, D(Shape{2}, {1 - 0.5 * (1 + 0.25), -2 + 0.5 * 0.5}));
  EXPECT_TRUE(sgd.state().velocity.empty());
}

TEST(Sgd, MomentumAddsHalfOfTheLastVelocity) {
  Sgd<float> sgd({.rate = 0.5, .momentum = 0.5});
  std::vector<Tensor<float>> w{Tensor<float>(Shape{1}, {1.0f})};
  const std::vector<Tensor<float>> g{Tensor<float>(Shape{1}, {1.0f})};
  sgd.step(w, g);  // v = 1
  EXPECT_EQ(w[0][0], 0.5f);
  sgd.step(w, g);  // v = 1.5
  EXPECT_EQ(w[0][0], -0.25f);
  EXPECT_EQ(sgd.state().velocity[0][0], 1.5f);
}

TEST(Sgd, NesterovLooksAhead) {
  Sgd<double> sgd({.rate = 0.5, .momentum = 0.5, .nesterov = true});
  D w(Shape{1}, {1.0});
  const D g(Shape{1}, {1.0});
  sgd.step(w, g);  // v = 1, w -= (1 + 0.5)/2
  EXPECT_EQ(w[0], 0.25);
  sgd.step(w, g);  // v = 1.5, w -= (1 + 0.75)/2
  EXPECT_EQ(w[0], -0.625);
}

/// The recurrences of Adam and AdamW as published, in long double.
struct PlainAdam {
  AdamOptions o;
  long double w, m = 0, v = 0;
  int t = 0;

  void step(long double g) {
    ++t;
    if (o.decoupled) {
      w -= static_cast<long double>(o.rate) * o.weight_decay * w;
    } else {
      g += o.weight_decay * w;
    }
    m = o.beta1 * m + (1 - static_cast<long double>(o.beta1)) * g;
    v = o.beta2 * v + (1 - static_cast<long double>(o.beta2)) * g * g;
    const long double mean =
        m / (1 - std::pow(static_cast<long double>(o.beta1), static_cast<long double>(t)));
    const long double square =
        v / (1 - std::pow(static_cast<long double>(o.beta2), static_cast<long double>(t)));
    w -= o.rate * mean / (std::sqrt(square) + o.epsilon);
  }
};

/// Positive gradients: nothing cancels but 1 - beta (and its power), whose relative error is u/(1 -
/// beta). A step then multiplies m, v and the update by at most 16 factors (1 + u), which add up
/// over the steps, once in m and v and once in w, whose magnitude stays below |start| and twice the
/// rate per step.
template <class T>
void check_adam(const AdamOptions& options) {
  const int steps = 5;
  const std::vector<T> start{T(1), T(3), T(0.25)};
  const std::vector<T> gradient{T(0.5), T(0.125), T(2)};
  Adam<T> adam(options);
  Tensor<T> w(Shape{3}, start);
  std::vector<PlainAdam> plain;
  for (const T value : start) {
    plain.push_back({options, value});
  }
  for (int t = 0; t < steps; ++t) {
    const Tensor<T> g = Tensor<T>(Shape{3}, gradient).map([&](T v) { return v * T(t + 1); });
    adam.step(w, g);
    for (std::size_t i = 0; i < 3; ++i) {
      plain[i].step(g[static_cast<Index>(i)]);
    }
  }
  const long double u = std::numeric_limits<T>::epsilon() / 2.0L;
  const long double u_double = std::numeric_limits<double>::epsilon() / 2.0L;
  const long double corrections =
      2 * u_double / (1 - options.beta1) + 2 * u_double / (1 - options.beta2);
  const long double per_step = 16 * u + corrections;
  for (std::size_t i = 0; i < 3; ++i) {
    const long double magnitude =
        std::fabs(static_cast<long double>(start[i])) + steps * 2 * options.rate;
    const long double bound = steps * steps * per_step * magnitude;
    EXPECT_LE(std::fabs(static_cast<long double>(w[static_cast<Index>(i)]) - plain[i].w), bound);
  }
  EXPECT_EQ(adam.state().steps, steps);
}

TEST(Adam, FollowsThePublishedRecurrence) {
  check_adam<double>({.rate = 0.125});
  check_adam<float>({.rate = 0.125});
  check_adam<double>({.rate = 0.125, .weight_decay = 0.0625});
}

TEST(AdamW, ShrinksTheWeightsApartFromTheGradient) {
  check_adam<double>({.rate = 0.125, .weight_decay = 0.0625, .decoupled = true});
  check_adam<float>({.rate = 0.125, .weight_decay = 0.0625, .decoupled = true});
  EXPECT_TRUE(adamw<double>().options().decoupled);
  EXPECT_EQ(adamw<double>().options().weight_decay, 0.01);
}

TEST(Adam, ItsFirstStepHasTheLengthOfTheRate) {
  Adam<double> adam({.rate = 0.5, .epsilon = std::numeric_limits<double>::denorm_min()});
  D w(Shape{2}, {0.0, 0.0});
  adam.step(w, D(Shape{2}, {1e-3, -1e3}));
  // rate * m/sqrt(v) with both corrected: ten roundings, and 1 - beta may carry u/(1 - beta),
  // halved under the root.
  const double u = std::numeric_limits<double>::epsilon() / 2;
  const double bound =
      0.5 * u * (10 + 1 / (1 - adam.options().beta1) + 0.5 / (1 - adam.options().beta2));
  EXPECT_LE(std::fabs(w[0] + 0.5), bound);
  EXPECT_LE(std::fabs(w[1] - 0.5), bound);
}

template <class V>
struct Net {
  V w;
  std::vector<V> biases;
  static constexpr auto fields = std::tuple{&Net::w, &Net::biases};
};

TEST(Optimiser, AStructOfTensorsIsAParameterSet) {
  Net<D> net{D(Shape{2}, {1.0, 2.0}), {D(Shape{}, 3.0)}};
  const Net<D> grads{D(Shape{2}, {1.0, 1.0}), {D(Shape{}, 2.0)}};
  Sgd<double> sgd({.rate = 0.5});
  sgd.step(net, grads);
  EXPECT_EQ(net.w, D(Shape{2}, {0.5, 1.5}));
  EXPECT_EQ(net.biases[0][0], 2.0);
}

TEST(Optimiser, AStepChangesNoTensorThatSharesTheStorage) {
  D w(Shape{1}, {1.0});
  const D before = w;
  Sgd<double>({.rate = 0.5}).step(w, D(Shape{1}, {1.0}));
  EXPECT_EQ(before[0], 1.0);
  EXPECT_EQ(w[0], 0.5);
}

TEST(Optimiser, AStepWithStorageOfItsOwnWritesInPlace) {
  D w(Shape{1}, {1.0});
  const double* storage = w.data();
  Adam<double>().step(w, D(Shape{1}, {1.0}));
  EXPECT_EQ(w.data(), storage);
}

TEST(Optimiser, RestoredStateContinuesAsIfNothingHappened) {
  const D g(Shape{1}, {0.5});
  D w(Shape{1}, {1.0});
  Adam<double> adam({.rate = 0.125});
  adam.step(w, g);
  D w_again = w;
  Adam<double> again({.rate = 0.125});
  again.restore(adam.state());
  adam.step(w, g);
  again.step(w_again, g);
  EXPECT_EQ(w, w_again);
}

TEST(Optimiser, ResultsDoNotDependOnThreads) {
  const Index n = 50001;
  const D g(Shape{n}, 0.3);
  const int before = threads();
  std::vector<D> results;
  for (const int count : {1, 7}) {
    set_threads(count);
    D w(Shape{n}, 1.1);
    Adam<double> adam;
    adam.step(w, g);
    adam.step(w, g);
    results.push_back(w);
  }
  set_threads(before);
  EXPECT_EQ(results[0], results[1]);
}

TEST(Optimiser, GradientsAndStateThatDoNotFitAreRefused) {
  std::vector<D> w{D(Shape{2}), D(Shape{3})};
  Adam<double> adam;
  EXPECT_EQ(code_of([&] { adam.step(w, std::vector{D(Shape{2})}); }), ErrorCode::shape_mismatch);
  EXPECT_EQ(code_of([&] {
              adam.step(w, std::vector{D(Shape{3}), D(Shape{2})});
            }),
            ErrorCode::shape_mismatch);
  EXPECT_EQ(adam.state().steps, 0);
  adam.step(w, w);
  std::vector<D> other{D(Shape{2})};
  EXPECT_EQ(code_of([&] { adam.step(other, other); }), ErrorCode::shape_mismatch);
  std::vector<D> reversed{w[1], w[0]};
  EXPECT_EQ(code_of([&] { adam.step(reversed, reversed); }), ErrorCode::shape_mismatch);
}

/// A model as users write it: layers, buffers among them.
struct LayersNet {
  BasicConv<double> conv{1, 2, {.kernel = 3}};
  BasicBatchNorm<double> norm{2};
  std::vector<Layer<double>> head{BasicFlatten<double>(), BasicLinear<double>(8, 3)};

  Value<double> operator()(const Value<double>& x, Pass<double>& pass) const {
    return head[1](head[0](relu(norm(conv(x), pass)), pass), pass);
  }
};

TEST(Optimiser, StepsAModelMadeOfLayersByItsGradients) {
  LayersNet net;
  initialise(net, Key(1));
  D x(Shape{5, 1, 4, 4});
  double next = 0;
  for (double& value : x.mutable_values()) {
    value = std::sin(next += 1);
  }
  const Tensor<Index> labels(Shape{5}, {0, 1, 2, 1, 0});
  Pass<double> pass = Pass<double>::training(Key(2));
  const auto [loss, gradients] = value_and_grad(
      [&](const LayersNet& model) { return cross_entropy(model(x, pass), labels); }, net);

  // The same numbers in plain vectors.
  LayersNet bars = gradients;
  std::vector<D> weights, plain_bars, buffers;
  for (const Slot<double>& slot : slots<double>(net)) {
    (slot.trained ? weights : buffers).push_back(slot.value->tensor());
  }
  for (const Slot<double>& slot : slots<double>(bars)) {
    if (slot.trained) {
      plain_bars.push_back(slot.value->tensor());
    }
  }
  ASSERT_EQ(weights.size(), 6);
  ASSERT_EQ(buffers.size(), 2);
  Adam<double> adam({.rate = 0.1});
  auto any = Optimiser<double>::make("adam rate=0.1");
  LayersNet other = net;
  Adam<double> plain_adam({.rate = 0.1});
  for (int i = 0; i < 2; ++i) {
    adam.step(net, gradients);
    any.step(other, gradients);
    plain_adam.step(weights, plain_bars);
  }
  for (LayersNet* stepped : {&net, &other}) {
    std::size_t weight = 0, buffer = 0;
    for (const Slot<double>& slot : slots<double>(*stepped)) {
      EXPECT_EQ(slot.value->tensor(), slot.trained ? weights[weight++] : buffers[buffer++])
          << slot.name;
    }
  }
  EXPECT_EQ(adam.state().mean.size(), weights.size());
}

TEST(Optimiser, AModelInsideOfATransformIsNotStepped) {
  BasicLinear<double> net(2, 2);
  Sgd<double> sgd;
  const D x(Shape{1, 2}, 1.0);
  const auto steps_inside = [&] {
    grad(
        [&](const BasicLinear<double>& model) {
          BasicLinear<double> copy = model;
          sgd.step(copy, net);
          return sum(model(x));
        },
        net);
  };
  EXPECT_EQ(code_of(steps_inside), ErrorCode::foreign_variable);
  EXPECT_EQ(code_of([&] { sgd.step(net, BasicLinear<double>(2, 3)); }), ErrorCode::shape_mismatch);
}

TEST(Optimiser, OptionsOutsideTheirRangeAreRefused) {
  EXPECT_EQ(code_of([] { Sgd<double>({.rate = -1}); }), ErrorCode::invalid_option);
  EXPECT_EQ(code_of([] { Sgd<double>({.momentum = 1}); }), ErrorCode::invalid_option);
  EXPECT_EQ(code_of([] { Sgd<double>({.nesterov = true}); }), ErrorCode::invalid_option);
  EXPECT_EQ(code_of([] { Adam<double>({.beta2 = 1}); }), ErrorCode::invalid_option);
  EXPECT_EQ(code_of([] { Adam<double>({.epsilon = 0}); }), ErrorCode::invalid_option);
  EXPECT_EQ(code_of([] { Adam<double>({.weight_decay = -0.1}); }), ErrorCode::invalid_option);
  Sgd<double> sgd;
  EXPECT_EQ(code_of([&] { sgd.set_rate(std::numeric_limits<double>::infinity()); }),
            ErrorCode::invalid_option);
}

TEST(Schedule, RatesAreWhatTheirFormulasSay) {
  EXPECT_EQ(ConstantRate{0.5}(1000), 0.5);
  const StepRate halves{.rate = 1, .every = 10, .factor = 0.5};
  EXPECT_EQ(halves(9), 1);
  EXPECT_EQ(halves(10), 0.5);
  EXPECT_EQ(halves(25), 0.25);
  const CosineRate cosine{.rate = 2, .steps = 100, .least = 1};
  EXPECT_EQ(cosine(0), 2);
  EXPECT_EQ(cosine(50), 1.5);  // the cosine of pi/2 is below half an ulp of 1
  EXPECT_EQ(cosine(100), 1);
  EXPECT_EQ(cosine(1000), 1);
}

TEST(Schedule, WarmupRisesInEqualPartsToTheFullRate) {
  const CosineRate rate{.rate = 1, .steps = 11, .least = 0, .warmup = 3};
  EXPECT_EQ(rate(0), 0.25);
  EXPECT_EQ(rate(2), 0.75);
  EXPECT_EQ(rate(3), 1);
}

TEST(Schedule, PeriodsThatMakeNoSenseAreRefused) {
  EXPECT_EQ(code_of([] { StepRate{.every = 0}(1); }), ErrorCode::invalid_option);
  EXPECT_EQ(code_of([] { CosineRate{.steps = 3, .warmup = 3}(1); }), ErrorCode::invalid_option);
}

}  // namespace
}  // namespace fenestra::nn

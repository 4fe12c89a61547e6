// Adam as part of a program, beside the optimiser of nn.
#include <fenestra/engine/transforms.hpp>
#include <fenestra/graph/plan.hpp>
#include <fenestra/graph/testing_test.hpp>
#include <fenestra/nn/compile_step.hpp>
#include <fenestra/nn/models/functional.hpp>
#include <fenestra/nn/optimiser.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fenestra::graph {
namespace {

template <class T>
double gamma(double operations) {
  const double u = std::numeric_limits<T>::epsilon() / 2;
  return operations * u / (1 - operations * u);
}

/// How far, relative to 1 - beta^steps, its two ways of being computed may lie apart. The program
/// adds `steps` positive terms, each rounded at most twice per step and once when 1 - beta was; the
/// optimiser subtracts a power, known to a unit in the last place, from 1 in double.
template <class T>
double correction_error(double beta, Index steps) {
  const double power = std::pow(beta, static_cast<double>(steps));
  return gamma<T>(2 * static_cast<double>(steps) + 1) + gamma<double>(2) * power / (1 - power) +
         gamma<double>(1);
}

/// A program with the state it keeps, beside an optimiser that starts every step from the same.
template <class T>
class AdamPair {
 public:
  AdamPair(const AdamUpdate& update, double rate, std::vector<Tensor<T>> parameters)
      : update_(update), rate_(rate), parameters_(std::move(parameters)) {
    for (const Tensor<T>& w : parameters_) {
      mean_.emplace_back(w.shape());
      square_.emplace_back(w.shape());
    }
  }

  const std::vector<Tensor<T>>& parameters() const { return parameters_; }
  /// The program is given the parameters, then `data`; `bars` are the gradients there.
  void step(const Program<T>& program,
            Context<T>& context,
            const std::vector<RunArgument>& data,
            const std::vector<Tensor<T>>& bars) {
    ++steps_;
    nn::Adam<T> adam({.rate = rate_,
                      .beta1 = update_.beta1,
                      .beta2 = update_.beta2,
                      .epsilon = update_.epsilon,
                      .weight_decay = update_.weight_decay,
                      .decoupled = update_.decoupled});
    adam.restore({.steps = steps_ - 1, .mean = mean_, .square = square_});
    const std::vector<Tensor<T>> before = parameters_;
    std::vector<Tensor<T>> needed = parameters_;
    adam.step(needed, bars);

    const Tensor<T> rate(Shape{}, static_cast<T>(rate_));
    std::vector<RunArgument> arguments(parameters_.begin(), parameters_.end());
    arguments.insert(arguments.end(), data.begin(), data.end());
    arguments.push_back(rate);
    arguments.push_back(corrections_[0]);
    arguments.push_back(corrections_[1]);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      arguments.push_back(mean_[i]);
      arguments.push_back(square_[i]);
    }
    program.execute_new(ProgramForm::run, context, arguments);
    EXPECT_EQ(mean_, adam.state().mean) << "step " << steps_;
    EXPECT_EQ(square_, adam.state().square) << "step " << steps_;
    compare(before, needed);
  }

 private:
  void compare(const std::vector<Tensor<T>>& before, const std::vector<Tensor<T>>& needed) const {
    // Beside the corrections: the rate, two roots and a division, the product with the mean, the
    // denominator's product and sum, the quotient, on either side; what is kept of w, and the
    // difference.
    const double relative = gamma<T>(16) + correction_error<T>(update_.beta1, steps_) +
                            correction_error<T>(update_.beta2, steps_);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      for (Index j = 0; j < parameters_[i].size(); ++j) {
        const double w = static_cast<double>(before[i][j]);
        const double y = static_cast<double>(needed[i][j]);
        const double moved = std::abs(y - w) + rate_ * update_.weight_decay * std::abs(w);
        const double bound = relative * moved + gamma<T>(8) * (std::abs(w) + std::abs(y));
        ASSERT_LE(std::abs(static_cast<double>(parameters_[i][j]) - y), bound)
            << "step " << steps_ << ", parameter " << i << ", element " << j;
      }
    }
  }

  AdamUpdate update_;
  double rate_;
  std::vector<Tensor<T>> parameters_;
  Index steps_ = 0;
  Tensor<T> corrections_[2] = {Tensor<T>(Shape{}), Tensor<T>(Shape{})};
  std::vector<Tensor<T>> mean_;
  std::vector<Tensor<T>> square_;
};

TEST(AdamUpdate, TrainsALeNetAsTheOptimiserDoes) {
  using T = Tensor<double>;
  const T x = sample_tensor<double>({4, 1, 28, 28});
  const Tensor<Index> labels({4}, {0, 9, 3, 3});
  const auto loss = [](const auto& p, const auto& in, const auto& targets) {
    using V = std::remove_cvref_t<decltype(in)>;
    return cross_entropy(nn::LeNet5::forward<V>(std::span<const V>(p), in), targets);
  };
  Random random(1);
  const AdamUpdate update;
  AdamPair<double> pair(update, 0.001, nn::LeNet5::initial<double>(random));
  const auto program =
      compile_step<double>(update, loss, pair.parameters(), x.shape(), DataShape{{4}});
  EXPECT_TRUE(program.plan().copies().empty()) << "parameters are written where they lie";
  Context<double> context(program);
  const std::vector<T> first = pair.parameters();
  for (int i = 0; i < 10; ++i) {
    const auto bars = grad(
        [&](const auto& p) {
          using V = std::remove_cvref_t<decltype(p[0])>;
          return loss(p, V(x), Selection(labels));
        },
        pair.parameters());
    pair.step(program, context, {x, labels}, bars);
  }
  EXPECT_NE(pair.parameters(), first);
}

/// A gradient that does not depend on the parameter: the product with what is given.
template <class T>
void follow_the_optimiser(const AdamUpdate& update, double rate, int steps) {
  const Shape shape{7};
  const auto loss = [](const auto& w, const auto& g) { return sum(mul(w[0], g)); };
  AdamPair<T> pair(update, rate, {sample_tensor<T>(shape, 1)});
  const auto program = compile_step<T>(update, loss, pair.parameters(), shape);
  Context<T> context(program);
  for (int i = 0; i < steps; ++i) {
    const Tensor<T> g = sample_tensor<T>(shape, i + 2);
    pair.step(program, context, {g}, {g});
  }
}

TEST(AdamUpdate, FollowsTheOptimiserInBothPrecisions) {
  follow_the_optimiser<double>({}, 0.01, 50);
  follow_the_optimiser<float>({}, 0.01, 50);
  follow_the_optimiser<float>({.beta1 = 0, .beta2 = 0.5}, 0.01, 20);
}

TEST(AdamUpdate, DecaysWeightsInBothWays) {
  for (const bool decoupled : {false, true}) {
    follow_the_optimiser<double>({.weight_decay = 0.1, .decoupled = decoupled}, 0.01, 20);
    follow_the_optimiser<float>({.weight_decay = 0.1, .decoupled = decoupled}, 0.01, 20);
  }
}

TEST(AdamUpdate, RefusesWhatTheOptimiserRefuses) {
  const auto error_of = [](const auto& body) {
    try {
      body();
    } catch (const Error& error) {
      return std::string(code_name(error.code())) + ": " + error.what();
    }
    return std::string("none");
  };
  const AdamUpdate bad[] = {{.beta1 = -0.1},
                            {.beta2 = 1},
                            {.beta2 = NAN},
                            {.epsilon = 0},
                            {.epsilon = INFINITY},
                            {.weight_decay = -1}};
  for (const AdamUpdate& update : bad) {
    const std::string text = error_of([&] {
      compile_step<float>(
          update, [](const auto& w) { return sum(w); }, Tensor<float>({2}));
    });
    EXPECT_NE(text, "none");
    EXPECT_EQ(text, error_of([&] {
                nn::Adam<float>({.beta1 = update.beta1,
                                 .beta2 = update.beta2,
                                 .epsilon = update.epsilon,
                                 .weight_decay = update.weight_decay});
              }));
  }
}

TEST(AdamUpdate, UsesGradientsUpAsItGoes) {
  constexpr int kLayers = 8;
  const Shape shape{16, 16};
  const std::vector<Tensor<double>> parameters(kLayers, Tensor<double>(shape));
  const auto loss = [](const auto& p, auto y) {
    for (const auto& w : p) {
      y = matmul(y, w);
    }
    return sum(y);
  };
  const std::size_t one = 16 * 16 * sizeof(double);
  const auto bytes = [&](const auto& update) {
    return compile_step<double>(update, loss, parameters, shape).plan().arena_bytes();
  };
  // Seven values between layers wait for the backward pass; beside them there is what one layer
  // needs, never the gradients of all eight.
  EXPECT_LE(bytes(SgdUpdate{}), (kLayers - 1 + 3) * one);
  EXPECT_LE(bytes(SgdUpdate{.momentum = 0.5}), (kLayers - 1 + 3) * one);
  EXPECT_LE(bytes(AdamUpdate{}), (kLayers - 1 + 4) * one);
}

}  // namespace
}  // namespace fenestra::graph

// Losses: the formulas in long double one number at a time, scores that would overflow, gradients
// by difference quotients, labels that do not fit.
#include <fenestra/base/key.hpp>
#include <fenestra/engine/gradcheck.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/nn/losses.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace fenestra::nn {
namespace {

using D = Tensor<double>;
using V = Value<double>;

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

D random(const Shape& shape, std::uint64_t seed, double scale = 1) {
  D x(shape);
  std::uint64_t i = 0;
  for (double& value : x.mutable_values()) {
    value = scale * Key(seed).normal(i++);
  }
  return x;
}

// (N, C, K) scores and (N, K) labels.
constexpr Index kN = 2, kC = 4, kK = 3;
const D kScores = random(Shape{kN, kC, kK}, 1, 2);
const Tensor<Index> kLabels(Shape{kN, kK}, {0, 3, 1, 2, 2, 0});

long double score(Index n, Index c, Index k) { return kScores[(n * kC + c) * kK + k]; }
long double probability(Index n, Index c, Index k) {
  long double total = 0;
  for (Index other = 0; other < kC; ++other) {
    total += std::exp(score(n, other, k));
  }
  return std::exp(score(n, c, k)) / total;
}

/// Mean over the labels of f(n, k, label).
template <class F>
double mean_over_labels(const F& f) {
  long double total = 0;
  for (Index n = 0; n < kN; ++n) {
    for (Index k = 0; k < kK; ++k) {
      total += f(n, k, kLabels[n * kK + k]);
    }
  }
  return static_cast<double>(total / (kN * kK));
}

// Exponentials and logarithms of numbers below 4, and means over classes and labels: fewer than 32
// roundings. The expected numbers are of long double.
constexpr double kBound = 32 * 0x1p-53 * 4;

TEST(Losses, SmoothedLabelsAreSpreadOverAllClasses) {
  const double s = 0.1;
  const double expected = mean_over_labels([&](Index n, Index k, Index label) {
    long double total = 0;
    for (Index c = 0; c < kC; ++c) {
      const long double target = (c == label ? 1 - s : 0.0L) + s / kC;
      total -= target * std::log(probability(n, c, k));
    }
    return total;
  });
  const Value<double> got = smoothed_cross_entropy(V(kScores), kLabels, s);
  EXPECT_NEAR(got.tensor()[0], expected, kBound);
  EXPECT_EQ(smoothed_cross_entropy(V(kScores), kLabels, 0).tensor()[0],
            cross_entropy(V(kScores), kLabels).tensor()[0]);
}

TEST(Losses, FocalWeighsBySurprise) {
  for (const double gamma : {0.0, 0.5, 2.0}) {
    const double expected = mean_over_labels([&](Index n, Index k, Index label) {
      const long double p = probability(n, label, k);
      return -std::pow(1 - p, static_cast<long double>(gamma)) * std::log(p);
    });
    EXPECT_NEAR(focal_loss(V(kScores), Indices(kLabels), gamma).tensor()[0], expected, kBound);
  }
  const D x = random(Shape{5}, 3);
  const D t(Shape{5}, {0.0, 1.0, 1.0, 0.0, 0.25});
  long double expected = 0;
  for (Index i = 0; i < 5; ++i) {
    const long double p = 1 / (1 + std::exp(-static_cast<long double>(x[i])));
    expected -= t[i] * (1 - p) * (1 - p) * std::log(p) + (1 - t[i]) * p * p * std::log(1 - p);
  }
  EXPECT_NEAR(focal_loss(V(x), V(t), 2).tensor()[0], static_cast<double>(expected / 5), kBound);
}

TEST(Losses, DiceComparesAreas) {
  long double total = 0;
  for (Index n = 0; n < kN; ++n) {
    for (Index c = 0; c < kC; ++c) {
      long double both = 0, all = 0;
      for (Index k = 0; k < kK; ++k) {
        const long double t = kLabels[n * kK + k] == c ? 1 : 0;
        both += probability(n, c, k) * t;
        all += probability(n, c, k) + t;
      }
      total += 1 - (2 * both + 1) / (all + 1);
    }
  }
  EXPECT_NEAR(dice_loss(V(kScores), Indices(kLabels)).tensor()[0],
              static_cast<double>(total / (kN * kC)),
              kBound);
  // Scores so sure that probabilities are 0 or 1: a loss of 0 where all is right.
  const D sure(Shape{1, 1, 2}, {1000.0, -1000.0});
  EXPECT_EQ(dice_loss(V(sure), V(D(Shape{1, 1, 2}, {1.0, 0.0}))).tensor()[0], 0.0);
}

TEST(Losses, HuberAndL1FollowTheirFormulas) {
  const D x(Shape{4}, {0.0, 0.5, -3.0, 7.0});
  const D t(Shape{4}, {0.25, 0.5, 1.0, 3.0});
  EXPECT_EQ(l1_loss(V(x), V(t)).tensor()[0], (0.25 + 0 + 4 + 4) / 4);
  EXPECT_EQ(huber_loss(V(x), V(t), 0.5).tensor()[0], (0.03125 + 0 + 2 * 0.5 * (4 - 0.25)) / 4);
}

TEST(Losses, HugeScoresGiveFiniteLossesAndGradients) {
  const Tensor<float> x(Shape{2, 3}, {1e4f, -1e4f, 0.0f, -1e4f, 1e4f, 3e4f});
  const Tensor<Index> labels(Shape{2}, {0, 0});
  for (const char* name : {"cross-entropy smoothing=0.1", "focal", "dice"}) {
    const auto loss = Loss<float>::make(name);
    const auto [value, bar] = value_and_grad(
        [&](const Value<float>& scores) { return loss(scores, {.labels = Indices(labels)}); }, x);
    EXPECT_TRUE(std::isfinite(value[0])) << name;
    for (Index i = 0; i < bar.size(); ++i) {
      EXPECT_TRUE(std::isfinite(bar[i])) << name << " at " << i;
    }
  }
}

TEST(Losses, GradientsAreThoseOfDifferenceQuotients) {
  const D target = random(kScores.shape(), 5).map([](double v) { return v > 0 ? 1.0 : 0.0; });
  for (const std::string name : {"cross-entropy smoothing=0.2",
                                 "focal gamma=1.5",
                                 "dice",
                                 "bce",
                                 "mse",
                                 "l1",
                                 "huber delta=0.5"}) {
    const auto loss = Loss<double>::make(name);
    Target<double> what;
    if (loss.takes_labels()) {
      what.labels = Indices(kLabels);
    } else {
      what.values = V(target);
    }
    const auto f = [&](const V& x) { return loss(x, what); };
    const GradcheckReport report = gradcheck(f, kScores);
    EXPECT_TRUE(report.ok) << name << ": " << report.text();
    EXPECT_EQ(report.checked, kScores.size());
  }
}

TEST(Losses, NamesAndTextsAgree) {
  for (const std::string& name : loss_names()) {
    EXPECT_EQ(Loss<float>::make(name).name(), name);
    const std::string text = Loss<float>::make(name).text();
    EXPECT_EQ(Loss<float>::make(text).text(), text);
  }
  EXPECT_EQ(Loss<float>::make("huber delta=0.5").text(), "huber delta=0.5");
}

TEST(Losses, WhatDoesNotFitIsRefused) {
  const auto make = [](const char* text) { return [=] { Loss<float>::make(text); }; };
  EXPECT_EQ(code_of(make("entropy")), ErrorCode::unknown_choice);
  EXPECT_EQ(code_of(make("mse delta=1")), ErrorCode::unknown_choice);
  EXPECT_EQ(code_of(make("huber delta=0")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(make("focal gamma=-1")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(make("cross-entropy smoothing=1.5")), ErrorCode::invalid_option);
  const V x(kScores);
  const auto with = [&](const char* name, Target<double> target) {
    return [=] { Loss<double>::make(name)(x, target); };
  };
  EXPECT_EQ(code_of(with("mse", {.labels = Indices(kLabels)})), ErrorCode::dtype_mismatch);
  EXPECT_EQ(code_of(with("cross-entropy", {.values = x})), ErrorCode::dtype_mismatch);
  EXPECT_EQ(code_of(with("cross-entropy", {})), ErrorCode::dtype_mismatch);
  EXPECT_EQ(code_of(with("l1", {.values = V(D(Shape{2}))})), ErrorCode::shape_mismatch);
  const Tensor<Index> wrong(Shape{kN, kK}, Index{9});
  EXPECT_EQ(code_of(with("focal", {.labels = Indices(wrong)})), ErrorCode::invalid_index);
  EXPECT_EQ(code_of(with("dice", {.labels = Indices(wrong)})), ErrorCode::invalid_index);
}

}  // namespace
}  // namespace fenestra::nn

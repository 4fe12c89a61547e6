// Optimisers by name against their published recurrences, written here in double for one number at
// a time; clipping, averages, names and state.
#include <fenestra/base/key.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/nn/any_optimiser.hpp>
#include <fenestra/nn/gradients.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace fenestra::nn {
namespace {

using D = Tensor<double>;
using Vector = std::vector<long double>;

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

/// A rule of one tensor: step t (from 1) moves w by the gradient g.
using Rule = std::function<void(int t, Vector& w, const Vector& g)>;

double draw(int step, std::size_t i) {
  return Key(7).fold(static_cast<std::uint64_t>(step)).normal(i);
}

/// 50 steps in both. A step makes at most 24 roundings of numbers below `size` (weights of about 1,
/// directions of at most a few units): their errors add up over the steps. The oracle's own are
/// 2000 times smaller.
void compare(const std::string& text, const Rule& rule, double size = 8) {
  constexpr std::size_t kCount = 37;
  constexpr int kSteps = 50;
  auto optimiser = Optimiser<double>::make(text);
  D w(Shape{static_cast<Index>(kCount)});
  Vector expected(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    w.mutable_data()[i] = draw(0, i);
    expected[i] = static_cast<long double>(w.data()[i]);
  }
  for (int t = 1; t <= kSteps; ++t) {
    D g(w.shape());
    Vector g_exact(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      g.mutable_data()[i] = draw(t, i);
      g_exact[i] = static_cast<long double>(g.data()[i]);
    }
    optimiser.step(w, g);
    rule(t, expected, g_exact);
  }
  const double u = std::numeric_limits<double>::epsilon() / 2;
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_NEAR(w.data()[i], static_cast<double>(expected[i]), 24 * kSteps * u * size)
        << text << ", element " << i;
  }
}

// Options as doubles, as the optimiser is given them.
constexpr double kRate = 0.1;

TEST(AnyOptimiser, SgdFollowsItsFormula) {
  Vector v;
  compare("sgd rate=0.1 momentum=0.9 weight_decay=0.01", [&](int t, Vector& w, const Vector& g) {
    v.resize(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      const long double d = g[i] + 0.01 * w[i];
      v[i] = t == 1 ? d : 0.9 * v[i] + d;
      w[i] -= kRate * v[i];
    }
  });
  Vector n;
  compare("sgd rate=0.1 momentum=0.9 nesterov=true", [&](int, Vector& w, const Vector& g) {
    n.resize(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      n[i] = 0.9 * n[i] + g[i];
      w[i] -= kRate * (g[i] + 0.9 * n[i]);
    }
  });
}

Rule adam_rule(bool decoupled, double decay, Vector& m, Vector& s) {
  return [=, &m, &s](int t, Vector& w, const Vector& g) {
    m.resize(w.size());
    s.resize(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      const long double d = decoupled ? g[i] : g[i] + decay * w[i];
      m[i] = 0.9 * m[i] + (1 - 0.9) * d;
      s[i] = 0.999 * s[i] + (1 - 0.999) * d * d;
      const long double mean = m[i] / (1 - std::pow(0.9L, t));
      const long double square = s[i] / (1 - std::pow(0.999L, t));
      if (decoupled) {
        w[i] -= kRate * decay * w[i];
      }
      w[i] -= kRate * mean / (std::sqrt(square) + 1e-8);
    }
  };
}

// 1 - 0.999 and 1 - 0.999^t carry up to 1000 roundings, halved under the root.
TEST(AnyOptimiser, AdamAndAdamWFollowTheirFormulas) {
  Vector m, s, m_w, s_w;
  compare("adam rate=0.1 weight_decay=0.01", adam_rule(false, 0.01, m, s), 1000);
  compare("adamw rate=0.1 weight_decay=0.05", adam_rule(true, 0.05, m_w, s_w), 1000);
}

TEST(AnyOptimiser, RmsPropFollowsItsFormula) {
  Vector s;
  compare("rmsprop rate=0.1 smoothing=0.9", [&](int, Vector& w, const Vector& g) {
    s.resize(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      s[i] = 0.9 * s[i] + (1 - 0.9) * g[i] * g[i];
      w[i] -= kRate * g[i] / (std::sqrt(s[i]) + 1e-8);
    }
  });
  Vector square, mean, v;
  // The variance cancels; it stays above 1/100 of the square here.
  compare(
      "rmsprop rate=0.01 smoothing=0.9 momentum=0.5 centred=1 epsilon=0.01 weight_decay=0.1",
      [&](int, Vector& w, const Vector& g) {
        square.resize(w.size());
        mean.resize(w.size());
        v.resize(w.size());
        for (std::size_t i = 0; i < w.size(); ++i) {
          const long double d = g[i] + 0.1 * w[i];
          square[i] = 0.9 * square[i] + (1 - 0.9) * d * d;
          mean[i] = 0.9 * mean[i] + (1 - 0.9) * d;
          v[i] = 0.5 * v[i] + d / (std::sqrt(square[i] - mean[i] * mean[i]) + 0.01);
          w[i] -= 0.01 * v[i];
        }
      },
      800);
}

TEST(AnyOptimiser, LionFollowsItsFormula) {
  Vector m;
  compare("lion rate=0.1 weight_decay=0.1", [&](int, Vector& w, const Vector& g) {
    m.resize(w.size());
    for (std::size_t i = 0; i < w.size(); ++i) {
      const long double d = 0.9 * m[i] + (1 - 0.9) * g[i];
      w[i] -= kRate * ((d > 0) - (d < 0) + 0.1 * w[i]);
      m[i] = 0.99 * m[i] + (1 - 0.99) * g[i];
    }
  });
}

TEST(AnyOptimiser, LambFollowsItsFormula) {
  Vector m, s;
  compare(
      "lamb rate=0.1 weight_decay=0.1",
      [&](int t, Vector& w, const Vector& g) {
        m.resize(w.size());
        s.resize(w.size());
        Vector d(w.size());
        long double w_length = 0, d_length = 0;
        for (std::size_t i = 0; i < w.size(); ++i) {
          m[i] = 0.9 * m[i] + (1 - 0.9) * g[i];
          s[i] = 0.999 * s[i] + (1 - 0.999) * g[i] * g[i];
          d[i] = m[i] / (1 - std::pow(0.9L, t)) /
                     (std::sqrt(s[i] / (1 - std::pow(0.999L, t))) + 1e-6) +
                 0.1 * w[i];
          w_length += w[i] * w[i];
          d_length += d[i] * d[i];
        }
        for (std::size_t i = 0; i < w.size(); ++i) {
          w[i] -= kRate * std::sqrt(w_length / d_length) * d[i];
        }
      },
      1000);
  // No length, no trust: as without it.
  auto lamb = Optimiser<double>::make("lamb rate=0.5 weight_decay=0");
  D w(Shape{2});
  lamb.step(w, D(Shape{2}, {1.0, 0.0}));
  // Corrected moments are 1 each, in front of an epsilon of 1e-6; a dozen roundings.
  EXPECT_NEAR(w[0], -0.5 / (1 + 1e-6), 12 * 0x1p-53);
  EXPECT_EQ(w[1], 0.0);
}

TEST(AnyOptimiser, NamesOptionsAndTextsAgree) {
  for (const std::string& name : optimiser_names()) {
    const auto optimiser = Optimiser<float>::make(name);
    EXPECT_EQ(optimiser.name(), name);
    EXPECT_EQ(Optimiser<float>::make(optimiser.text()).text(), optimiser.text());
  }
  EXPECT_EQ(Optimiser<float>::make("adamw", {.rate = 0.1, .weight_decay = 0.3}).text(),
            "adamw rate=0.1 beta1=0.9 beta2=0.999 epsilon=1e-08 weight_decay=0.3");
  EXPECT_EQ(Optimiser<float>::make("sgd momentum=0.5", {.nesterov = true}).text(),
            "sgd rate=0.01 momentum=0.5 nesterov=1 weight_decay=0");
}

TEST(AnyOptimiser, WhatIsNotKnownIsRefused) {
  const auto make = [](const char* text) { return [=] { Optimiser<float>::make(text); }; };
  EXPECT_EQ(code_of(make("")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(make("adagrad")), ErrorCode::unknown_choice);
  EXPECT_EQ(code_of(make("adam momentum=0.9")), ErrorCode::unknown_choice);
  EXPECT_EQ(code_of(make("adam rate")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(make("adam rate=fast")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(make("adam rate=1 rate=2")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(make("sgd nesterov=yes")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(make("lion beta2=1")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(make("rmsprop smoothing=-0.1")), ErrorCode::invalid_option);
  EXPECT_EQ(code_of(make("lamb rate=nan")), ErrorCode::invalid_option);
}

TEST(AnyOptimiser, StateUnderNamesContinuesToTheLastBit) {
  const std::vector<std::string> names{"conv.weight", "conv.bias"};
  const std::vector<Shape> shapes{Shape{3, 2}, Shape{3}};
  for (const char* text :
       {"sgd momentum=0.9", "adam", "adamw", "rmsprop momentum=0.5 centred=1", "lion", "lamb"}) {
    auto one = Optimiser<double>::make(text);
    std::vector<D> w{D(shapes[0], 1.0), D(shapes[1], 2.0)};
    const std::vector<D> g{D(shapes[0], 0.3), D(shapes[1], -0.7)};
    one.step(w, g);
    auto two = Optimiser<double>::make(one.text());
    two.set_state(names, shapes, one.state(names));
    EXPECT_EQ(two.state(names).size(), one.state(names).size());
    std::vector<D> w_two = w;
    one.step(w, g);
    two.step(w_two, g);
    EXPECT_EQ(w, w_two) << text;
  }
  auto adam = Optimiser<double>::make("adam");
  std::vector<D> w{D(shapes[0]), D(shapes[1])};
  adam.step(w, w);
  const io::TensorMap state = adam.state(names);
  EXPECT_TRUE(state.contains("mean.conv.weight"));
  EXPECT_TRUE(state.contains("square.conv.bias"));
  EXPECT_EQ(std::get<Tensor<Index>>(state.at("steps"))[0], 1);
}

TEST(AnyOptimiser, StateThatDoesNotFitIsRefusedAndChangesNothing) {
  const std::vector<std::string> names{"w"};
  const std::vector<Shape> shapes{Shape{2}};
  auto adam = Optimiser<double>::make("adam");
  D w(Shape{2}, 1.0);
  adam.step(w, w);
  const io::TensorMap good = adam.state(names);
  const auto refused = [&](auto change) {
    io::TensorMap state = good;
    change(state);
    const ErrorCode code = code_of([&] { adam.set_state(names, shapes, state); });
    EXPECT_EQ(std::get<D>(adam.state(names).at("mean.w")), std::get<D>(good.at("mean.w")));
    return code;
  };
  EXPECT_EQ(refused([](auto& s) { s.erase("steps"); }), ErrorCode::bad_file);
  EXPECT_EQ(refused([](auto& s) { s["steps"] = Tensor<Index>(Shape{}, -1); }), ErrorCode::bad_file);
  EXPECT_EQ(refused([](auto& s) { s["mean.w"] = D(Shape{3}); }), ErrorCode::bad_file);
  EXPECT_EQ(refused([](auto& s) { s["mean.w"] = Tensor<float>(Shape{2}); }), ErrorCode::bad_file);
  EXPECT_EQ(refused([](auto& s) { s["mean.other"] = D(Shape{2}); }), ErrorCode::bad_file);
}

TEST(AnyOptimiser, BitsDoNotDependOnThreads) {
  const Index n = 50001;
  D g(Shape{n});
  for (Index i = 0; i < n; ++i) {
    g.mutable_data()[i] = draw(1, static_cast<std::size_t>(i));
  }
  const int before = threads();
  for (const std::string& name : optimiser_names()) {
    std::vector<D> results;
    for (const int count : {1, 5}) {
      set_threads(count);
      auto optimiser = Optimiser<double>::make(name, {.rate = 0.1});
      D w(Shape{n}, 1.1);
      optimiser.step(w, g);
      optimiser.step(w, g);
      std::vector<D> clipped{w};
      clip_by_norm<double>(clipped, 1.0);
      results.push_back(clipped[0]);
    }
    EXPECT_EQ(results[0], results[1]) << name;
  }
  set_threads(before);
}

TEST(AnyOptimiser, PiecesMoveAsTheWhole) {
  const Index n = 1009;
  D g(Shape{n});
  for (Index i = 0; i < n; ++i) {
    g.mutable_data()[i] = draw(1, static_cast<std::size_t>(i));
  }
  for (const std::string& name : optimiser_names()) {
    if (name == "lamb") {
      continue;  // scales by norms of tensors
    }
    const auto seen = [&](Index begin, Index end) {
      return D::view(g.data() + begin, Shape{end - begin});
    };
    D whole(Shape{n}, 1.1);
    D w = whole;
    const D shared = w;
    auto of_whole = Optimiser<double>::make(name, {.rate = 0.1});
    auto of_pieces = Optimiser<double>::make(name, {.rate = 0.1});
    for (int step = 0; step < 2; ++step) {
      of_whole.step(whole, g);
      of_pieces.step({{w, 0, 7}, {w, 7, 500}}, std::vector<D>{seen(0, 7), seen(7, 507)});
    }
    EXPECT_TRUE(std::equal(w.data(), w.data() + 507, whole.data())) << name;
    EXPECT_EQ(D(Shape{502}, std::span<const double>(w.data() + 507, 502)), D(Shape{502}, 1.1));
    EXPECT_EQ(shared, D(Shape{n}, 1.1)) << name;
  }
}

TEST(Clip, TheNormIsThatOfAllGradientsTogether) {
  std::vector<D> g{D(Shape{2}, {3.0, 0.0}), D(Shape{1}, {4.0})};
  EXPECT_EQ(global_norm<double>(g), 5.0);
  EXPECT_EQ(clip_by_norm<double>(g, 10.0), 5.0);
  EXPECT_EQ(g[0][0], 3.0);
  EXPECT_EQ(clip_by_norm<double>(g, 2.5), 5.0);
  EXPECT_EQ(g[0][0], 1.5);
  EXPECT_EQ(g[1][0], 2.0);
  clip_by_value<double>(g, 1.75);
  EXPECT_EQ(g[0][0], 1.5);
  EXPECT_EQ(g[1][0], 1.75);
  EXPECT_EQ(code_of([&] { clip_by_norm<double>(g, 0); }), ErrorCode::invalid_option);
  EXPECT_EQ(code_of([&] { clip_by_value<double>(g, -1); }), ErrorCode::invalid_option);
}

TEST(Clip, GradientsThatAreNoNumbersStayVisible) {
  std::vector<Tensor<float>> g{
      Tensor<float>(Shape{2}, {std::numeric_limits<float>::infinity(), 1.0f})};
  EXPECT_TRUE(std::isinf(clip_by_norm<float>(g, 1)));
  EXPECT_EQ(g[0][1], 1.0f);
  // Squares beyond float do not overflow.
  std::vector<Tensor<float>> large{Tensor<float>(Shape{1}, {1e30f})};
  EXPECT_FLOAT_EQ(static_cast<float>(clip_by_norm<float>(large, 1)), 1e30f);
  EXPECT_FLOAT_EQ(large[0][0], 1.0f);
}

TEST(Average, FollowsItsFormula) {
  WeightAverage<double> average(0.5);
  D w(Shape{1}, {8.0});
  std::vector<D*> weights{&w};
  average.add(weights);
  EXPECT_EQ(average.values()[0][0], 8.0);
  double expected = 8;
  for (int n = 1; n < 20; ++n) {
    w = D(Shape{1}, {1.0 * n});
    average.add(weights);
    const double d = std::min(0.5, (1.0 + n) / (10.0 + n));
    expected = d * expected + (1 - d) * n;
    EXPECT_DOUBLE_EQ(average.values()[0][0], expected);
  }
  EXPECT_EQ(code_of([] { WeightAverage<double>(1.0); }), ErrorCode::invalid_option);
  D other(Shape{2});
  weights[0] = &other;
  EXPECT_EQ(code_of([&] { average.add(weights); }), ErrorCode::shape_mismatch);
}

}  // namespace
}  // namespace fenestra::nn

// Smooth max pooling: the contract's answers, within bounds that are derived; infinities, NaN, both
// signs of beta, both forms, padded zeros; the gradients to x and to beta.
#include <fenestra/check/examples.hpp>
#include <fenestra/engine/tape.hpp>
#include <fenestra/ops/pool/smooth_max/op.hpp>
#include <fenestra/spec/random.hpp>
#include <fenestra/tensor/transform.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace fenestra {
namespace {

using check::counting;
using check::cube;
using check::for_each_transcendental_scalar;
using check::line;
using check::tensor;
using Real = Interval<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
Tensor<T> rank0(double value) {
  return tensor<T>({}, {value});
}

/// The pool of one window over all of `values`, and everything about it.
template <class T>
struct OneWindow {
  OneWindow(std::initializer_list<double> values, double sharpness, bool normalised = false)
      : x(line<T>(values)),
        beta(rank0<T>(sharpness)),
        g(smooth_max_pool_geometry(
            x.shape(), {.kernel = x.size(), .beta = sharpness, .normalised = normalised})) {}

  T value() const { return spec::smooth_max_pool(x, beta, g)[0]; }
  spec::SmoothMaxPoolGrads<T> grads() const {
    return spec::smooth_max_pool_vjp(x, beta, tensor<T>({1, 1, 1}, {1}), g);
  }
  T jvp(std::initializer_list<double> x_dot, double beta_dot) const {
    return spec::smooth_max_pool_jvp(x, beta, line<T>(x_dot), rank0<T>(beta_dot), g)[0];
  }

  Tensor<T> x, beta;
  SmoothMaxPoolGeometry g;
};

using Wide = Interval<long double>;

/// Checks a number printed with `digits` decimals: a rigorous enclosure of the exact value meets
/// the numbers that round to it (half a unit of the last printed digit to either side).
void expect_printed(const Wide& enclosure, long double printed, int digits) {
  const long double half_unit = 0.5L * std::pow(10.0L, -static_cast<long double>(digits));
  EXPECT_LE(enclosure.lo(), printed + half_unit);
  EXPECT_GE(enclosure.hi(), printed - half_unit);
  EXPECT_LT(enclosure.width(), half_unit) << "the enclosure is too wide to tell";
}

/// The value in double lies within the operator's own bound of the exact one.
void expect_within_bound(std::initializer_list<double> values, double beta) {
  const OneWindow<double> d(values, beta);
  const Real exact = OneWindow<Real>(values, beta).value();
  const auto bound =
      static_cast<double>(SmoothMaxPool::error_bound<double>(d.g, {{d.x, d.beta}, {}})[0]);
  EXPECT_GE(d.value(), exact.lo() - bound);
  EXPECT_LE(d.value(), exact.hi() + bound);
}

TEST(SmoothMaxPool, KnownValuesOfTheContract) {
  expect_printed(OneWindow<Wide>({1, 2, 3, 4}, 1).value(), 4.4401897L, 7);
  expect_printed(OneWindow<Wide>({0, 0, 0, 0}, 10).value(), 0.1386294L, 7);
  expect_printed(OneWindow<Wide>({1e4, 1e4 + 1}, 1).value(), 10001.313262L, 6);
  expect_printed(OneWindow<Wide>({1, 2}, -1).value(), 0.6867383124817772L, 16);
  expect_within_bound({1, 2, 3, 4}, 1);
  expect_within_bound({0, 0, 0, 0}, 10);
  expect_within_bound({1e4, 1e4 + 1}, 1);
  expect_within_bound({1, 2}, -1);
}

TEST(SmoothMaxPool, KnownGradientOfTheContract) {
  const auto p = OneWindow<Wide>({1, 2, 3, 4}, 1).grads().x_bar;
  expect_printed(p[0], 0.0320586L, 7);
  expect_printed(p[1], 0.0871443L, 7);
  expect_printed(p[2], 0.2368828L, 7);
  expect_printed(p[3], 0.6439143L, 7);
}

TEST(SmoothMaxPool, PaddedZerosCountOnRequest) {
  const SmoothMaxPoolOptions zeros{
      .kernel = 2, .stride = 1, .padding = 1, .pad_cells = PadCells::zero};
  const auto y = spec::smooth_max_pool(line<Real>({-3}), zeros);
  ASSERT_EQ(y.shape(), (Shape{1, 1, 2}));
  for (const Index i : {0, 1}) {
    // Printed as 0.0485873515...: ten digits and more to follow.
    EXPECT_LE(0.0485873515, y[i].hi());
    EXPECT_GE(0.0485873516, y[i].lo());
  }
  const SmoothMaxPoolOptions ignored{.kernel = 2, .stride = 1, .padding = 1};
  EXPECT_EQ(spec::smooth_max_pool(line<double>({-3}), ignored), line<double>({-3, -3}));
  const auto g = smooth_max_pool_geometry({1, 1, 1}, zeros);
  const auto grads =
      spec::smooth_max_pool_vjp(line<double>({0}), rank0<double>(1), line<double>({1, 10}), g);
  EXPECT_EQ(grads.x_bar, line<double>({5.5}))
      << "a padded zero takes its share of the weight and keeps it";
}

TEST(SmoothMaxPool, OneCellIsItselfOnEveryScalar) {
  for_each_transcendental_scalar([]<class T>() {
    EXPECT_EQ(spec::smooth_max_pool(line<T>({3, -1, 0.5}), {.kernel = 1, .beta = 2}),
              line<T>({3, -1, 0.5}));
    EXPECT_EQ(
        spec::smooth_max_pool(line<T>({3, -1, 0.5}), {.kernel = 1, .beta = -8, .normalised = true}),
        line<T>({3, -1, 0.5}));
    EXPECT_EQ(
        spec::smooth_max_pool(line<T>({3, -1, 4}), {.kernel = 1, .stride = 2, .ceil_mode = true}),
        line<T>({3, 4}));
  });
}

TEST(SmoothMaxPool, EqualCellsShareTheGradientOnEveryScalar) {
  for_each_transcendental_scalar([]<class T>() {
    const OneWindow<T> window({5, 5, 5, 5}, 2);
    EXPECT_EQ(window.grads().x_bar, line<T>({0.25, 0.25, 0.25, 0.25}));
    EXPECT_EQ(window.jvp({1, 2, 3, 6}, 0), T(3));
  });
}

TEST(SmoothMaxPool, LiesBetweenTheMaximumAndLogOfTheCountOverBetaAboveIt) {
  Random random(7);
  for (int i = 0; i < 300; ++i) {
    const auto cells = static_cast<std::size_t>(random.between(1, 9));
    std::vector<double> values(cells);
    for (double& v : values) {
      v = 20 * random.real();
    }
    const double magnitude = static_cast<double>(random.between(1, 40)) / 4;
    for (const double beta : {magnitude, -magnitude}) {
      const Tensor<double> x(Shape{1, 1, static_cast<Index>(cells)}, values);
      const auto y = spec::smooth_max_pool(x.map([](double v) { return Real(v); }),
                                           {.kernel = x.size(), .beta = beta})[0];
      const Real slack = scalar_log(from_index<Real>(x.size())) / Real(magnitude);
      if (beta > 0) {
        const double max = *std::max_element(values.begin(), values.end());
        EXPECT_GE(y.hi(), max);
        EXPECT_LE(y.lo(), (Real(max) + slack).hi());
      } else {
        const double min = *std::min_element(values.begin(), values.end());
        EXPECT_LE(y.lo(), min);
        EXPECT_GE(y.hi(), (Real(min) - slack).lo());
      }
    }
  }
}

TEST(SmoothMaxPool, NormalisedSubtractsTheLogOfTheCellsCounted) {
  EXPECT_EQ(OneWindow<double>({0, 0, 0, 0}, 10, true).value(), 0.0);
  EXPECT_EQ(OneWindow<double>({7, 7, 7}, -3, true).value(), 7.0)
      << "a window of one value is that value";
  const Real plain = OneWindow<Real>({1, 2, 3, 4}, 2).value();
  const Real normalised = OneWindow<Real>({1, 2, 3, 4}, 2, true).value();
  EXPECT_TRUE(intersects(normalised, plain - scalar_log(Real(4)) / Real(2)));
  // At the border only real cells are counted, with padded zeros all declared ones.
  SmoothMaxPoolOptions options{.kernel = 3, .padding = 1, .normalised = true};
  EXPECT_EQ(spec::smooth_max_pool(line<double>({0, 0}), options), line<double>({0}));
  options.pad_cells = PadCells::zero;
  EXPECT_EQ(spec::smooth_max_pool(line<double>({0, 0}), options), line<double>({0}));
}

TEST(SmoothMaxPool, NothingOverflowsThatNeedNot) {
  const double huge = 1.5e308;
  EXPECT_EQ(OneWindow<double>({huge, -huge}, 1).value(), huge);
  EXPECT_EQ(OneWindow<double>({huge, -huge}, -1).value(), -huge);
  EXPECT_EQ(OneWindow<double>({huge, -huge}, 1000).value(), huge) << "beta * x would be infinite";
  EXPECT_EQ(OneWindow<double>({huge, 0}, 1e300).grads().x_bar, line<double>({1, 0}));
  EXPECT_EQ(OneWindow<double>({-1e4, -1e4 - 800}, 1).value(), -1e4) << "exp(-1e4) alone would be 0";
}

TEST(SmoothMaxPool, InfinitiesAreThoseOfLogSumExp) {
  EXPECT_EQ(OneWindow<double>({1, kInf, 2}, 1).value(), kInf);
  EXPECT_EQ(OneWindow<double>({1, -kInf, 2}, -1).value(), -kInf);
  EXPECT_EQ(OneWindow<double>({-kInf, -kInf}, 1).value(), -kInf);
  EXPECT_EQ(OneWindow<double>({kInf, kInf}, -1).value(), kInf);
  EXPECT_EQ(OneWindow<double>({-kInf, 3}, 1).value(), 3.0) << "one cell of weight 0";
  EXPECT_EQ(OneWindow<double>({kInf, 3}, -1).value(), 3.0);
  EXPECT_EQ(OneWindow<double>({kInf, -kInf}, 1).value(), kInf);
}

TEST(SmoothMaxPool, TheFarInfinityHasNoGradient) {
  for (const double beta : {1.0, -1.0}) {
    const double far = beta > 0 ? -kInf : kInf;
    const auto all = OneWindow<double>({far, far}, beta);
    EXPECT_EQ(all.grads().x_bar, line<double>({0, 0}));
    EXPECT_EQ(all.grads().beta_bar, rank0<double>(0));
    EXPECT_EQ(all.jvp({1, 1}, 1), 0.0);
    const auto one = OneWindow<double>({far, 3}, beta);
    EXPECT_EQ(one.grads().x_bar, line<double>({0, 1}));
    EXPECT_EQ(one.grads().beta_bar, rank0<double>(0)) << "(3 - 3)/beta";
    EXPECT_EQ(one.jvp({100, 7}, 5), 7.0);
    // Forward mode through the definition says the same.
    using D = Dual<double>;
    const Tensor<D> beta_dual(Shape{}, D(beta, 5));
    const auto tangent = [&](const Tensor<D>& x) {
      const auto g = smooth_max_pool_geometry(x.shape(), {.kernel = 2, .beta = beta});
      return spec::smooth_max_pool(x, beta_dual, g)[0].tangent;
    };
    EXPECT_EQ(tangent(Tensor<D>(Shape{1, 1, 2}, {D(far, 1), D(far, 1)})), 0.0);
    EXPECT_EQ(tangent(Tensor<D>(Shape{1, 1, 2}, {D(far, 100), D(3, 7)})), 7.0);
  }
}

TEST(SmoothMaxPool, NanPropagates) {
  for (const double beta : {1.0, -1.0}) {
    for (const auto& values : {line<double>({kNan, 1}),
                               line<double>({1, kNan}),
                               line<double>({kInf, kNan}),
                               line<double>({-kInf, kNan})}) {
      EXPECT_TRUE(std::isnan(spec::smooth_max_pool(values, {.kernel = 2, .beta = beta})[0]));
    }
  }
  const auto y = spec::smooth_max_pool(line<double>({kNan, 1, 2, 2}), {.kernel = 2});
  EXPECT_FALSE(std::isnan(y[1])) << "into its own window only";
}

TEST(SmoothMaxPool, AWindowWithoutACellIsZeroWithoutGradient) {
  for_each_transcendental_scalar([]<class T>() {
    const auto g = smooth_max_pool_geometry({1, 1, 1}, {.kernel = 1, .padding = 1});
    EXPECT_EQ(spec::smooth_max_pool(line<T>({5}), rank0<T>(1), g), line<T>({0, 5, 0}));
    const auto grads = spec::smooth_max_pool_vjp(line<T>({5}), rank0<T>(1), line<T>({1, 2, 4}), g);
    EXPECT_EQ(grads.x_bar, line<T>({2}));
    EXPECT_EQ(spec::smooth_max_pool_jvp(line<T>({5}), rank0<T>(1), line<T>({3}), rank0<T>(7), g),
              line<T>({0, 3, 0}));
  });
}

TEST(SmoothMaxPool, TheGradientToBetaIsTheWeightedMeanLessTheValueOverBeta) {
  // Zeros: y = log(4)/beta, so dy/dbeta = -y/beta, in either form, in the same operations.
  for (const double beta : {2.0, -0.5}) {
    const OneWindow<double> zeros({0, 0, 0, 0}, beta);
    EXPECT_EQ(zeros.grads().beta_bar[0], -zeros.value() / beta);
    EXPECT_EQ(OneWindow<double>({0, 0, 0, 0}, beta, true).grads().beta_bar[0], 0.0);
    for (const bool normalised : {false, true}) {
      const OneWindow<Real> window({1, 2, 4}, beta, normalised);
      const auto grads = window.grads();
      const Real mean =
          grads.x_bar[0] * Real(1) + grads.x_bar[1] * Real(2) + grads.x_bar[2] * Real(4);
      EXPECT_TRUE(intersects(grads.beta_bar[0], (mean - window.value()) / Real(beta)));
      // And it is the derivative: forward mode through the definition.
      using D = Dual<Real>;
      const Tensor<D> moving(Shape{}, D(Real(beta), Real(1)));
      const auto y =
          spec::smooth_max_pool(window.x.map([](const Real& v) { return D(v); }), moving, window.g);
      EXPECT_TRUE(intersects(grads.beta_bar[0], y[0].tangent));
      EXPECT_TRUE(intersects(window.jvp({0, 0, 0}, 1), y[0].tangent));
    }
  }
}

/// The mean, half the variance and a third of the third cumulant are what is left as beta goes to
/// zero; what is missing is of the order of beta.
TEST(SmoothMaxPool, HardlyAnySharpnessGivesTheMeanAndItsDerivatives) {
  const auto check = []<class T>(T) {
    for (const double beta : {1e-10, -1e-10, 1e-20, -1e-30, 1e-37}) {
      const OneWindow<T> window({1, 2, 3, 6}, beta, true);
      const auto of = [&](PoolDirection direction) {
        return spec::smooth_max_pool(window.x, window.beta, window.g, direction)[0];
      };
      const T u = std::numeric_limits<T>::epsilon();
      EXPECT_NEAR(of(PoolDirection::forward), T(3 + 1.75 * beta), 16 * u) << beta;
      EXPECT_NEAR(of(PoolDirection::slope), T(1.75), 32 * u + 1e-9) << beta;
      EXPECT_NEAR(of(PoolDirection::curve), T(1.5), 64 * u + 1e-9) << beta;
      // The engine takes the kernels, and differentiates twice.
      Tape<T> tape;
      const auto x = tape.parameter(window.x);
      const auto b = tape.parameter(window.beta);
      const auto y = apply(SmoothMaxPoolPrimitive{{}, PoolDirection::forward, window.g}, {x, b});
      EXPECT_NEAR(y[0], T(3 + 1.75 * beta), 16 * u) << beta;
      const auto first = tape.backward(y);
      EXPECT_NEAR(first[b][0], T(1.75), 32 * u + 1e-9) << beta;
      Tape<T> again;
      const auto x2 = again.parameter(window.x);
      const auto b2 = again.parameter(window.beta);
      const auto slope =
          apply(SmoothMaxPoolPrimitive{{}, PoolDirection::slope, window.g}, {x2, b2});
      const auto second = again.backward(slope);
      EXPECT_NEAR(second[b2][0], T(1.5), 64 * u + 1e-9) << beta;
      // d slope/dx = (x - mean)/n
      EXPECT_NEAR(second[x2][0], T(-0.5), 32 * u + 1e-9) << beta;
      EXPECT_NEAR(second[x2][3], T(0.75), 32 * u + 1e-9) << beta;
    }
  };
  check(0.0F);
  check(0.0);
}

/// Intervals of the wide type hold the derivatives by beta of both forms at every sharpness.
TEST(SmoothMaxPool, DerivativesByBetaAreThoseOfDualsAtEverySharpness) {
  using D = Dual<Wide>;
  using D2 = Dual<D>;
  for (const double beta : {1e-8, 1e-3, 0.1, 0.5, 1.0, 4.0, 60.0, -1e-8, -0.25, -3.0}) {
    for (const bool normalised : {false, true}) {
      const OneWindow<Wide> window({1, 2, 4, 4.5, -3}, beta, normalised);
      const Tensor<D2> moving(Shape{}, D2(D(Wide(static_cast<long double>(beta)), Wide(1)), D(1)));
      const auto y = spec::smooth_max_pool(
          window.x.map([](const Wide& v) { return D2(D(v)); }), moving, window.g)[0];
      const auto of = [&](PoolDirection direction) {
        return spec::smooth_max_pool(window.x, window.beta, window.g, direction)[0];
      };
      EXPECT_TRUE(intersects(of(PoolDirection::slope), y.value.tangent)) << beta;
      EXPECT_TRUE(intersects(of(PoolDirection::curve), y.tangent.tangent)) << beta;
    }
  }
}

TEST(SmoothMaxPool, LargeSharpnessOverflowsNothing) {
  EXPECT_EQ(OneWindow<float>({1e10, -4}, 1e30).value(), 1e10F) << "beta * x would be infinite";
  const SmoothMaxPoolOptions sharp{.kernel = {2}, .beta = 1e30};
  EXPECT_EQ(smooth_max_pool(line<float>({1e10, -4}), sharp), line<float>({1e10}));
  // beta * d is below the normal numbers: what that costs is in the bound, the mean is not lost.
  const auto x = line<float>({1e-10, -1e-10});
  const SmoothMaxPoolOptions dull{.kernel = {2}, .beta = 1e-30, .normalised = true};
  const auto bound = SmoothMaxPool::error_bound<float>(smooth_max_pool_geometry(x.shape(), dull),
                                                       {{x, rank0<float>(1e-30)}, {}})[0];
  EXPECT_LT(bound, 1e-13L);
  EXPECT_NEAR(smooth_max_pool(x, dull)[0], 0.0F, static_cast<double>(bound));
}

TEST(SmoothMaxPool, WeightsOfOverlappingWindowsAddUp) {
  const auto g = smooth_max_pool_geometry({1, 1, 3}, {.kernel = 2, .stride = 1, .beta = 3});
  const auto grads =
      spec::smooth_max_pool_vjp(line<double>({2, 2, 2}), rank0<double>(3), line<double>({2, 8}), g);
  EXPECT_EQ(grads.x_bar, line<double>({1, 5, 4}));
}

TEST(SmoothMaxPool, LargeBetaApproachesMaxPoolingAndItsGradient) {
  const OneWindow<double> sharp({1, 2, 5, 4}, 1000);
  EXPECT_EQ(sharp.value(), 5.0);
  EXPECT_EQ(sharp.grads().x_bar, line<double>({0, 0, 1, 0}));
  EXPECT_EQ(OneWindow<double>({1, 2, 5, 4}, -1000).value(), 1.0);
}

TEST(SmoothMaxPool, ChannelsLastSingleSamplesRanksAndEmptyOnes) {
  const auto x = counting<double>({2, 3, 4, 4});
  const SmoothMaxPoolOptions options{.kernel = {2, 2}, .padding = 1, .dilation = 2, .beta = 0.5};
  SmoothMaxPoolOptions last = options;
  last.layout = Layout::channels_last;
  const auto y = spec::smooth_max_pool(x, options);
  EXPECT_EQ(spec::smooth_max_pool(
                activation_to_layout(x, true, Layout::channels_first, Layout::channels_last), last),
            activation_to_layout(y, true, Layout::channels_first, Layout::channels_last));
  EXPECT_EQ(spec::smooth_max_pool(sliced(x, 0, 1, 1).reshaped({3, 4, 4}), options),
            sliced(y, 0, 1, 1).reshaped({3, y.shape()[2], y.shape()[3]}));
  for (const int rank : {1, 2, 3, 4, 5, 8}) {
    const Tensor<double> ones(cube(1, 1, 2, rank), 1.0);
    EXPECT_EQ(spec::smooth_max_pool(ones, {.kernel = 2, .normalised = true}),
              Tensor<double>(cube(1, 1, 1, rank), 1.0));
  }
  EXPECT_EQ(spec::smooth_max_pool(Tensor<double>(Shape{0, 3, 4}), {.kernel = 2}),
            Tensor<double>(Shape{0, 3, 2}));
  EXPECT_EQ(spec::smooth_max_pool(Tensor<double>(Shape{2, 0, 4}), {.kernel = 2, .padding = same}),
            Tensor<double>(Shape{2, 0, 2}));
  const auto g = smooth_max_pool_geometry({0, 3, 4}, {.kernel = 2});
  const auto grads = spec::smooth_max_pool_vjp(
      Tensor<double>(g.pool.x_shape()), rank0<double>(1), Tensor<double>(g.pool.y_shape()), g);
  EXPECT_EQ(grads.beta_bar, rank0<double>(0));
}

TEST(SmoothMaxPool, FloatAndDoubleStayWithinTheirBoundOfTheExactValue) {
  Random random(11);
  for (int i = 0; i < 100; ++i) {
    Tensor<double> x(Shape{1, 1, 6});
    for (double& v : x.mutable_values()) {
      v = static_cast<double>(static_cast<float>(30 * random.real()));
    }
    const double beta = static_cast<double>(random.between(1, 16)) / 4;
    const auto g = smooth_max_pool_geometry(
        x.shape(), {.kernel = 6, .beta = beta, .normalised = random.chance(2)});
    const Real exact =
        spec::smooth_max_pool(x.map([](double v) { return Real(v); }), rank0<Real>(beta), g)[0];
    const auto check = [&]<class T>(T) {
      const Tensor<T> narrow = x.map([](double v) { return static_cast<T>(v); });
      const auto y = static_cast<double>(spec::smooth_max_pool(narrow, rank0<T>(beta), g)[0]);
      const auto bound =
          static_cast<double>(SmoothMaxPool::error_bound<T>(g, {{narrow, rank0<T>(beta)}, {}})[0]);
      EXPECT_GE(y, exact.lo() - bound);
      EXPECT_LE(y, exact.hi() + bound);
    };
    check(0.0F);
    check(0.0);
  }
}

}  // namespace
}  // namespace fenestra

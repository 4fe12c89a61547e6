// Lp pooling: the contract's answers within derived bounds, p = 1 exactly on every scalar, zeros,
// and the gradients.
#include <fenestra/check/examples.hpp>
#include <fenestra/ops/pool/lp/op.hpp>
#include <fenestra/spec/random.hpp>
#include <fenestra/tensor/transform.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fenestra {
namespace {

using check::counting;
using check::cube;
using check::for_each_scalar;
using check::for_each_transcendental_scalar;
using check::line;
using check::tensor;
using Real = Interval<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// The values in double lie within the operator's bound of `exact`, and the enclosures contain it.
void expect_values(const Tensor<double>& x,
                   const LpPoolOptions& options,
                   const Tensor<double>& exact) {
  const auto g = lp_pool_geometry(x.shape(), options);
  const auto y = spec::lp_pool(x, g);
  const auto enclosure = spec::lp_pool(x.map([](double v) { return Real(v); }), g);
  const auto bound = LpPool::error_bound<double>(g, {{x}, {}});
  ASSERT_EQ(y.shape(), exact.shape());
  for (Index i = 0; i < y.size(); ++i) {
    EXPECT_LE(std::fabs(static_cast<long double>(y[i]) - exact[i]), bound[i]);
    EXPECT_TRUE(enclosure[i].contains(exact[i])) << enclosure[i];
  }
}

TEST(LpPool, KnownAnswerOfTheContractTheOverhangCountsRealCellsOnly) {
  expect_values(
      line<double>({3, 4, 12}), {.kernel = 2, .ceil_mode = true, .p = 2}, line<double>({5, 12}));
}

TEST(LpPool, ExponentsByHand) {
  const auto x = line<double>({1, -8, 0, 27});
  expect_values(x, {.kernel = 4, .p = 1}, line<double>({36}));
  expect_values(line<double>({6, 8}), {.kernel = 2, .p = 2}, line<double>({10}));
  expect_values(line<double>({3, -4, 5}), {.kernel = 3, .p = 3}, line<double>({6}));
  expect_values(line<double>({1, 4, -9}), {.kernel = 3, .p = 0.5}, line<double>({36}));
}

TEST(LpPool, ExponentOneIsTheSumOfMagnitudesOnEveryScalar) {
  for_each_scalar([]<class T>() {
    const auto x = line<T>({1, -2, 3, -4, 0.5});
    EXPECT_EQ(spec::lp_pool(x, {.kernel = 2, .stride = 1, .p = 1}), line<T>({3, 5, 7, 4.5}));
    EXPECT_EQ(spec::lp_pool(x, {.kernel = 2, .stride = 1, .padding = 1, .dilation = 2, .p = 1}),
              line<T>({2, 4, 6, 3.5, 4}));
    EXPECT_EQ(spec::lp_pool(x, {.kernel = 2, .ceil_mode = true, .p = 1}), line<T>({3, 7, 0.5}));
    const auto g = lp_pool_geometry({1, 1, 3}, {.kernel = 2, .stride = 1, .p = 1});
    const auto signs = line<T>({-2, 0, 5});
    EXPECT_EQ(spec::lp_pool_vjp(signs, line<T>({1, 10}), g), line<T>({-1, 0, 10}))
        << "sign, 0 at 0";
    EXPECT_EQ(spec::lp_pool_jvp(signs, line<T>({1, 2, 4}), g), line<T>({-1, 4}));
  });
}

TEST(LpPool, OtherExponentsNeedAScalarWithPowers) {
  try {
    spec::lp_pool(line<Rational>({3, 4}), {.kernel = 2, .p = 2});
    FAIL() << "a rational root";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_exponent);
    EXPECT_NE(std::string(error.what()).find("fix: p = 1"), std::string::npos);
  }
}

TEST(LpPool, PaddingContributesNothingAndAWindowWithoutACellIsZero) {
  for_each_transcendental_scalar([]<class T>() {
    const auto g = lp_pool_geometry({1, 1, 1}, {.kernel = 1, .padding = 1, .p = 3});
    EXPECT_EQ(spec::lp_pool(line<T>({1}), g), line<T>({0, 1, 0}));
    EXPECT_EQ(spec::lp_pool_vjp(line<T>({1}), line<T>({1, 2, 4}), g), line<T>({2}));
  });
}

TEST(LpPool, TheGradientAtAnAllZeroWindowIsZero) {
  for_each_transcendental_scalar([]<class T>() {
    for (const double p : {0.5, 1.0, 2.0, 3.0}) {
      const auto g = lp_pool_geometry({1, 1, 2}, {.kernel = 2, .p = p});
      const auto x = line<T>({0, 0});
      EXPECT_EQ(spec::lp_pool(x, g), line<T>({0}));
      EXPECT_EQ(spec::lp_pool_vjp(x, line<T>({1}), g), line<T>({0, 0}));
      EXPECT_EQ(spec::lp_pool_jvp(x, line<T>({1, 1}), g), line<T>({0}));
    }
  });
  // Forward mode through the definition agrees, also at one zero beside another cell.
  using D = Dual<double>;
  for (const double p : {0.5, 1.0, 2.0, 3.0}) {
    const LpPoolOptions options{.kernel = 2, .p = p};
    EXPECT_EQ(spec::lp_pool(Tensor<D>(Shape{1, 1, 2}, {D(0, 1), D(0, 1)}), options)[0].tangent,
              0.0);
    EXPECT_EQ(spec::lp_pool(Tensor<D>(Shape{1, 1, 2}, {D(0, 1), D(1, 0)}), options)[0].tangent,
              0.0);
  }
}

TEST(LpPool, GradientsByHand) {
  // y = 5: dy/dx = x/y for p = 2.
  const auto x = line<double>({3, -4});
  const auto g = lp_pool_geometry(x.shape(), {.kernel = 2, .p = 2});
  const auto grads =
      spec::lp_pool_vjp(x.map([](double v) { return Real(v); }), line<Real>({10}), g);
  EXPECT_TRUE(grads[0].contains(6.0)) << grads[0];
  EXPECT_TRUE(grads[1].contains(-8.0)) << grads[1];
  const auto tangent =
      spec::lp_pool_jvp(x.map([](double v) { return Real(v); }), line<Real>({5, 10}), g);
  EXPECT_TRUE(tangent[0].contains(-5.0)) << tangent[0];
}

TEST(LpPool, OneCellIsItsMagnitudeWithItsSignAsGradient) {
  for (const double p : {0.5, 1.5, 2.0, 7.0}) {
    const auto x = line<Real>({-3});
    const auto g = lp_pool_geometry(x.shape(), {.kernel = 1, .p = p});
    EXPECT_TRUE(spec::lp_pool(x, g)[0].contains(3.0));
    EXPECT_TRUE(spec::lp_pool_vjp(x, line<Real>({1}), g)[0].contains(-1.0));
  }
}

TEST(LpPool, NanAndInfinityPropagate) {
  EXPECT_TRUE(std::isnan(spec::lp_pool(line<double>({kNan, 1}), {.kernel = 2})[0]));
  EXPECT_EQ(spec::lp_pool(line<double>({-kInf, 1}), {.kernel = 2}), line<double>({kInf}));
}

TEST(LpPool, FloatAndDoubleStayWithinTheirBoundOfTheExactValue) {
  Random random(5);
  for (int i = 0; i < 100; ++i) {
    Tensor<double> x(Shape{1, 1, 6});
    for (double& v : x.mutable_values()) {
      v = static_cast<double>(static_cast<float>(10 * random.real()));
    }
    for (const double p : {0.5, 1.5, 2.0, 5.0}) {
      const auto g = lp_pool_geometry(x.shape(), {.kernel = 6, .p = p});
      const Real exact = spec::lp_pool(x.map([](double v) { return Real(v); }), g)[0];
      const auto check = [&]<class T>(T) {
        const Tensor<T> narrow = x.map([](double v) { return static_cast<T>(v); });
        const auto y = static_cast<double>(spec::lp_pool(narrow, g)[0]);
        const auto bound = static_cast<double>(LpPool::error_bound<T>(g, {{narrow}, {}})[0]);
        EXPECT_GE(y, exact.lo() - bound);
        EXPECT_LE(y, exact.hi() + bound);
      };
      check(0.0F);
      check(0.0);
    }
  }
}

TEST(LpPool, ChannelsLastSingleSamplesRanksAndEmptyOnes) {
  const auto x = counting<double>({2, 3, 4, 4});
  const LpPoolOptions options{.kernel = {2, 2}, .stride = 1, .padding = same, .p = 2};
  LpPoolOptions last = options;
  last.layout = Layout::channels_last;
  const auto y = spec::lp_pool(x, options);
  EXPECT_EQ(spec::lp_pool(
                activation_to_layout(x, true, Layout::channels_first, Layout::channels_last), last),
            activation_to_layout(y, true, Layout::channels_first, Layout::channels_last));
  EXPECT_EQ(spec::lp_pool(sliced(x, 0, 1, 1).reshaped({3, 4, 4}), options),
            sliced(y, 0, 1, 1).reshaped({3, 4, 4}));
  for (const int rank : {1, 2, 3, 4, 5, 8}) {
    const Tensor<double> ones(cube(1, 1, 2, rank), -1.0);
    EXPECT_EQ(spec::lp_pool(ones, {.kernel = 2, .p = 1}),
              Tensor<double>(cube(1, 1, 1, rank), std::pow(2.0, rank)));
  }
  EXPECT_EQ(spec::lp_pool(Tensor<double>(Shape{0, 3, 4}), {.kernel = 2}),
            Tensor<double>(Shape{0, 3, 2}));
  EXPECT_EQ(spec::lp_pool(Tensor<double>(Shape{2, 0, 4}), {.kernel = 2}),
            Tensor<double>(Shape{2, 0, 2}));
}

}  // namespace
}  // namespace fenestra

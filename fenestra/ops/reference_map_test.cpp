// One test for every row of docs/reference-map.md: what the reference pages name, computed here, on
// numbers small enough to check by hand. Single samples channels first for TorchLean, NHWC for
// Nabla. Values are rational and compared as equalities; smooth pools are compared as enclosures.
#include <fenestra/ops/conv/spec.hpp>
#include <fenestra/ops/conv_transpose/spec.hpp>
#include <fenestra/ops/pool/spec.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/spec/image.hpp>
#include <fenestra/spec/interval.hpp>
#include <fenestra/spec/rational.hpp>
#include <fenestra/tensor/transform.hpp>
#include <fenestra/typed.hpp>

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace fenestra {
namespace {

using spec::avg_pool;
using spec::avg_pool_vjp;
using spec::conv;
using spec::conv_jvp;
using spec::conv_transpose;
using spec::conv_transpose_jvp;
using spec::conv_transpose_vjp;
using spec::conv_vjp;
using spec::max_pool;
using spec::max_pool_indices;
using spec::max_pool_jvp;
using spec::max_pool_vjp;
using Exact = Tensor<Rational>;
using Real = Interval<double>;

/// first, first + 1, ... in row-major order.
Exact counting(const Shape& shape, Index first = 1) {
  Exact result(shape);
  for (Rational& value : result.mutable_values()) {
    value = Rational(first++);
  }
  return result;
}

Exact ones(const Shape& shape) { return {shape, Rational(1)}; }

// The problems that tape and graph rows share, with the values both of them have.

/// N-D: three spatial axes, another stride and padding on each.
struct Conv3d {
  Exact x = counting({1, 2, 2, 2});
  Exact w = counting({1, 1, 2, 1, 2});
  Exact b{Shape{1}, {100}};
  ConvGeometry g =
      conv_geometry(x.shape(), w.shape(), b.shape(), {.stride = {1, 2, 1}, .padding = {0, 1, 0}});
  Exact y{Shape{1, 1, 2, 1}, {100, 164}};
};

struct Conv2d {
  Exact x = counting({2, 3, 3});
  Exact w{Shape{1, 2, 2, 2}, {1, 0, 0, -1, 2, 1, 0, 1}};
  Exact b{Shape{1}, {10}};
  ConvGeometry g = conv_geometry(x.shape(), w.shape(), b.shape(), {});
  Exact y{Shape{1, 2, 2}, {51, 55, 63, 67}};
};

/// N-D: one spatial axis, the known answer of the contract with a bias.
struct ConvTranspose1d {
  Exact x{Shape{1, 3}, {1, 2, 3}};
  Exact w{Shape{1, 1, 3}, {1, 10, 100}};
  Exact b{Shape{1}, {1000}};
  ConvTransposeGeometry g =
      conv_transpose_geometry(x.shape(), w.shape(), b.shape(), {.stride = 2, .padding = 1});
  Exact y{Shape{1, 5}, {1010, 1102, 1020, 1203, 1030}};
};

struct ConvTranspose2d {
  Exact x = counting({1, 2, 2});
  Exact w{Shape{1, 2, 2, 2}, {1, 0, 0, 1, 0, 1, 1, 0}};
  Exact b{Shape{2}, {10, 20}};
  ConvTransposeGeometry g = conv_transpose_geometry(x.shape(), w.shape(), b.shape(), {.stride = 2});
  Exact y{Shape{2, 4, 4}, {11, 10, 12, 10, 10, 11, 10, 12, 13, 10, 14, 10, 10, 13, 10, 14,
                           20, 21, 20, 22, 21, 20, 22, 20, 20, 23, 20, 24, 23, 20, 24, 20}};
};

/// The windows of smooth pools, straight from the formula: value and weights of one window.
struct SmoothWindow {
  Real value;
  std::vector<Real> weights;

  SmoothWindow(const std::vector<double>& cells, double beta) {
    Real sum(0);
    for (const double cell : cells) {
      sum = sum + exp(Real(beta) * Real(cell));
    }
    value = log(sum) / Real(beta);
    for (const double cell : cells) {
      weights.push_back(exp(Real(beta) * Real(cell)) / sum);
    }
  }
};

/// Two enclosures of one number intersect.
void expect_intersect(const Real& a, const Real& b) {
  EXPECT_TRUE(intersects(a, b)) << a << " " << b;
}

/// Every element of `got` intersects the value of the window formula.
void expect_intersect(const Tensor<Real>& got, const std::vector<Real>& needed) {
  ASSERT_EQ(got.size(), static_cast<Index>(needed.size()));
  for (Index i = 0; i < got.size(); ++i) {
    expect_intersect(got[i], needed[static_cast<std::size_t>(i)]);
  }
}

Tensor<Real> enclosed(const Shape& shape, const std::vector<double>& values) {
  return Tensor<double>(shape, values).map([](double v) { return Real(v); });
}

std::vector<Real> scaled(std::vector<Real> values, double factor) {
  for (Real& value : values) {
    value = value * Real(factor);
  }
  return values;
}

std::vector<Real> joined(std::vector<Real> a, const std::vector<Real>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// --- TorchLean, the tape: values, and the gradients its backward closures compute ---------------

TEST(ReferenceMap, TapeConvHasAnyRankAndItsThreeGradients) {
  const Conv3d p;
  EXPECT_EQ(conv(p.x, p.w, p.b, {.stride = {1, 2, 1}, .padding = {0, 1, 0}}), p.y);
  const auto bars = conv_vjp(p.x, p.w, Exact(p.y.shape(), {5, 1}), p.g);
  EXPECT_EQ(bars.x_bar, Exact(p.x.shape(), {0, 0, 1, 2, 0, 0, 3, 4}));
  EXPECT_EQ(bars.w_bar, Exact(p.w.shape(), {3, 4, 7, 8}));
  EXPECT_EQ(bars.b_bar, Exact(Shape{1}, {6}));
}

TEST(ReferenceMap, TapeConv2dIsTheSameCallWithTwoSpatialAxes) {
  const Conv2d p;
  EXPECT_EQ(conv(p.x, p.w, p.b), p.y);
  const auto bars = conv_vjp(p.x, p.w, counting(p.y.shape()), p.g);
  EXPECT_EQ(bars.x_bar,
            Exact(p.x.shape(), {1, 2, 0, 3, 3, -2, 0, -3, -4, 2, 5, 2, 6, 12, 6, 0, 3, 4}));
  EXPECT_EQ(bars.w_bar, Exact(p.w.shape(), {37, 47, 67, 77, 127, 137, 157, 167}));
  EXPECT_EQ(bars.b_bar, Exact(Shape{1}, {10}));
}

TEST(ReferenceMap, TapeConvTransposeHasAnyRankAndItsThreeGradients) {
  const ConvTranspose1d p;
  EXPECT_EQ(conv_transpose(p.x, p.w, p.b, {.stride = 2, .padding = 1}), p.y);
  const auto bars = conv_transpose_vjp(p.x, p.w, Exact(p.y.shape(), {1, 0, 0, 0, 2}), p.g);
  EXPECT_EQ(bars.x_bar, Exact(p.x.shape(), {10, 0, 20}));
  EXPECT_EQ(bars.w_bar, Exact(p.w.shape(), {0, 7, 0}));
  EXPECT_EQ(bars.b_bar, Exact(Shape{1}, {3}));
}

TEST(ReferenceMap, TapeConvTranspose2dIsTheSameCallWithTwoSpatialAxes) {
  const ConvTranspose2d p;
  EXPECT_EQ(conv_transpose(p.x, p.w, p.b, {.stride = 2}), p.y);
  const auto bars = conv_transpose_vjp(p.x, p.w, ones(p.y.shape()), p.g);
  EXPECT_EQ(bars.x_bar, Exact(p.x.shape(), {4, 4, 4, 4}));
  EXPECT_EQ(bars.w_bar, Exact(p.w.shape(), Rational(10)));
  EXPECT_EQ(bars.b_bar, Exact(Shape{2}, {16, 16}));
}

TEST(ReferenceMap, TapeMaxPoolHasAnyRankAndPadsWithZerosOrWithNothing) {
  EXPECT_EQ(max_pool(counting({1, 2, 2, 2}), {.kernel = {2, 2, 2}}), Exact(Shape{1, 1, 1, 1}, {8}));
  const Exact x(Shape{1, 3}, {-3, -1, -2});
  const Exact y_bar(Shape{1, 2}, {1, 2});
  const MaxPoolOptions zeros{.kernel = {3}, .stride = 2, .padding = 1, .pad_cells = PadCells::zero};
  const MaxPoolGeometry with_zeros = max_pool_geometry(x.shape(), zeros);
  EXPECT_EQ(max_pool(x, zeros), Exact(Shape{1, 2}, {0, 0}));
  EXPECT_EQ(max_pool_vjp(max_pool_indices(x, zeros), y_bar, with_zeros), Exact(x.shape()));
  const MaxPoolOptions nothing{.kernel = {3}, .stride = 2, .padding = 1};
  const MaxPoolGeometry without = max_pool_geometry(x.shape(), nothing);
  EXPECT_EQ(max_pool(x, nothing), Exact(Shape{1, 2}, {-1, -1}));
  EXPECT_EQ(max_pool_vjp(max_pool_indices(x, nothing), y_bar, without),
            Exact(x.shape(), {0, 3, 0}));
}

TEST(ReferenceMap, TapeAvgPoolHasAnyRankAndCountsPaddedZeros) {
  EXPECT_EQ(avg_pool(counting({1, 2, 2, 2}), {.kernel = {2, 2, 2}}),
            Exact(Shape{1, 1, 1, 1}, {Rational(9, 2)}));
  const Exact x = counting({1, 5});
  const AvgPoolGeometry g =
      avg_pool_geometry(x.shape(), {.kernel = {3}, .stride = 2, .padding = 1});
  EXPECT_EQ(avg_pool(x, g), Exact(Shape{1, 3}, {1, 3, 3}));
  EXPECT_EQ(avg_pool_vjp(Exact(Shape{1, 3}, Rational(3)), g), Exact(x.shape(), {1, 2, 1, 2, 1}));
}

TEST(ReferenceMap, TapeSmoothMaxPoolHasAnyRankAndSoftmaxGradients) {
  const Tensor<Real> x = enclosed({1, 2, 2, 1}, {1, 2, 3, 4});
  const SmoothMaxPoolOptions options{.kernel = {2, 2, 1}, .beta = 2.0};
  const SmoothWindow window({1, 2, 3, 4}, 2.0);
  expect_intersect(spec::smooth_max_pool(x, options), {window.value});
  const auto bars = spec::smooth_max_pool_vjp(x,
                                              Tensor<Real>(Shape{}, Real(2)),
                                              enclosed({1, 1, 1, 1}, {3}),
                                              smooth_max_pool_geometry(x.shape(), options));
  expect_intersect(bars.x_bar, scaled(window.weights, 3));
}

TEST(ReferenceMap, TapeMaxPool2dSendsTheGradientToTheWinner) {
  const Exact x(Shape{2, 2, 2}, {1, 2, 5, 4, -1, -2, -3, -4});
  const MaxPoolOptions options{.kernel = {2, 2}, .stride = 2};
  EXPECT_EQ(max_pool(x, options), Exact(Shape{2, 1, 1}, {5, -1}));
  EXPECT_EQ(max_pool_vjp(max_pool_indices(x, options),
                         Exact(Shape{2, 1, 1}, {1, 10}),
                         max_pool_geometry(x.shape(), options)),
            Exact(x.shape(), {0, 0, 1, 0, 10, 0, 0, 0}));
}

TEST(ReferenceMap, TapeMaxPool2dPadIgnoresPaddedCells) {
  const Exact x(Shape{1, 2, 2}, {-1, -2, -3, -4});
  const MaxPoolOptions options{.kernel = {2, 2}, .stride = 2, .padding = 1};
  EXPECT_EQ(max_pool(x, options), x);
  EXPECT_EQ(
      max_pool_vjp(
          max_pool_indices(x, options), counting(x.shape()), max_pool_geometry(x.shape(), options)),
      counting(x.shape()));
}

TEST(ReferenceMap, TapeSmoothMaxPool2dWeighsTheCellsOfEachWindow) {
  const Tensor<Real> x = enclosed({1, 2, 4}, {1, 2, 0, 0, 3, 4, 0, 0});
  const SmoothMaxPoolOptions options{.kernel = {2, 2}, .stride = 2, .beta = 10.0};
  expect_intersect(spec::smooth_max_pool(x, options),
                   {SmoothWindow({1, 2, 3, 4}, 10).value, SmoothWindow({0, 0, 0, 0}, 10).value});
}

TEST(ReferenceMap, TapeAvgPool2dSharesTheGradientEvenly) {
  const Exact x = counting({1, 2, 4});
  const AvgPoolGeometry g = avg_pool_geometry(x.shape(), {.kernel = {2, 2}, .stride = 2});
  EXPECT_EQ(avg_pool(x, g), Exact(Shape{1, 1, 2}, {Rational(7, 2), Rational(11, 2)}));
  EXPECT_EQ(avg_pool_vjp(Exact(Shape{1, 1, 2}, {4, 8}), g),
            Exact(x.shape(), {1, 1, 2, 2, 1, 1, 2, 2}));
}

TEST(ReferenceMap, TapeAvgPool2dPadCountsPaddedZeros) {
  const Exact x(Shape{1, 2, 2}, {4, 8, 12, 16});
  const AvgPoolGeometry g =
      avg_pool_geometry(x.shape(), {.kernel = {2, 2}, .stride = 2, .padding = 1});
  EXPECT_EQ(avg_pool(x, g), counting(x.shape()));
  EXPECT_EQ(avg_pool_vjp(Exact(x.shape(), Rational(4)), g), ones(x.shape()));
}

// --- TorchLean, the specification of padded 2-D pooling -----------------------------------------

/// Two channels, windows of 2x2 with stride 1 and padding 1, so that every kind of border occurs.
struct PaddedPool {
  Exact x{Shape{2, 2, 2}, {-1, -2, -3, -4, 4, 3, 2, 1}};
  MaxPoolGeometry max = max_pool_geometry(x.shape(), {.kernel = {2, 2}, .stride = 1, .padding = 1});
  AvgPoolGeometry avg = avg_pool_geometry(x.shape(), {.kernel = {2, 2}, .stride = 1, .padding = 1});
};

TEST(ReferenceMap, SpecUnpadImageTakesTheBorderAway) {
  EXPECT_EQ(spec::unpad_image(counting({4, 4}), 1), Exact(Shape{2, 2}, {6, 7, 10, 11}));
}

TEST(ReferenceMap, SpecUnpadMultiChannelUnpadsEachChannel) {
  EXPECT_EQ(spec::unpad_channels(counting({2, 3, 3}), 1), Exact(Shape{2, 1, 1}, {5, 14}));
}

TEST(ReferenceMap, SpecMaxPool2dMultiSpecPadIgnoresPaddedCells) {
  const PaddedPool p;
  EXPECT_EQ(max_pool(p.x, p.max),
            Exact(Shape{2, 3, 3}, {-1, -1, -2, -1, -1, -2, -3, -3, -4, 4, 4, 3, 4, 4, 3, 2, 2, 1}));
}

TEST(ReferenceMap, SpecMaxPool2dMultiJvpSpecPadReadsTheTangentOfTheWinner) {
  const PaddedPool p;
  EXPECT_EQ(max_pool_jvp(max_pool_indices(p.x, p.max), counting(p.x.shape()), p.max),
            Exact(Shape{2, 3, 3}, {1, 1, 2, 1, 1, 2, 3, 3, 4, 5, 5, 6, 5, 5, 6, 7, 7, 8}));
  // A window without a real cell: value and tangent 0.
  const Exact x(Shape{1, 1, 1}, {-5});
  const MaxPoolGeometry g =
      max_pool_geometry(x.shape(), {.kernel = {1, 1}, .stride = 1, .padding = 1});
  EXPECT_EQ(max_pool(x, g), Exact(Shape{1, 3, 3}, {0, 0, 0, 0, -5, 0, 0, 0, 0}));
  EXPECT_EQ(max_pool_jvp(max_pool_indices(x, g), ones(x.shape()), g),
            Exact(Shape{1, 3, 3}, {0, 0, 0, 0, 1, 0, 0, 0, 0}));
}

TEST(ReferenceMap, SpecMaxPool2dMultiBackwardSpecPadAddsUpAtTheWinners) {
  const PaddedPool p;
  EXPECT_EQ(max_pool_vjp(max_pool_indices(p.x, p.max), ones({2, 3, 3}), p.max),
            Exact(p.x.shape(), {4, 2, 2, 1, 4, 2, 2, 1}));
}

TEST(ReferenceMap, SpecAvgPool2dMultiSpecPadAveragesPaddedZerosToo) {
  const PaddedPool p;
  EXPECT_EQ(avg_pool(Exact(p.x.shape(), {4, 8, 12, 16, 0, 0, 0, 4}), p.avg),
            Exact(Shape{2, 3, 3}, {1, 3, 2, 4, 10, 6, 3, 7, 4, 0, 0, 0, 0, 1, 1, 0, 1, 1}));
}

TEST(ReferenceMap, SpecAvgPool2dMultiBackwardSpecPadIsBackpropThenUnpad) {
  const PaddedPool p;
  const Exact y_bar = counting({2, 3, 3});
  const AvgPoolGeometry padded_input =
      avg_pool_geometry(Shape{2, 4, 4}, {.kernel = {2, 2}, .stride = 1});
  EXPECT_EQ(avg_pool_vjp(y_bar, p.avg), spec::unpad_channels(avg_pool_vjp(y_bar, padded_input), 1));
  EXPECT_EQ(avg_pool_vjp(Exact(y_bar.shape(), Rational(4)), p.avg),
            Exact(p.x.shape(), Rational(4)));
}

TEST(ReferenceMap, SpecSmoothMaxPool2dIsTheLogSumExpOfEachWindowOfAnImage) {
  const Tensor<Real> image = enclosed({2, 2}, {1, 2, 3, 4});
  expect_intersect(spec::smooth_max_pool(image.reshaped({1, 2, 2}), {.kernel = {2, 2}}),
                   {SmoothWindow({1, 2, 3, 4}, 1).value});
}

TEST(ReferenceMap, SpecSmoothMaxPool2dMultiPoolsEachChannel) {
  expect_intersect(
      spec::smooth_max_pool(enclosed({2, 2, 2}, {1, 2, 3, 4, 0, 0, -1, 0}), {.kernel = {2, 2}}),
      {SmoothWindow({1, 2, 3, 4}, 1).value, SmoothWindow({0, 0, -1, 0}, 1).value});
}

TEST(ReferenceMap, SpecSmoothMaxPool2dBackwardSpecIsTheSoftmaxOfAnImagesWindow) {
  const Tensor<Real> image = enclosed({2, 2}, {1, 2, 3, 4});
  const Tensor<Real> x = image.reshaped({1, 2, 2});
  const auto bars =
      spec::smooth_max_pool_vjp(x,
                                Tensor<Real>(Shape{}, Real(1)),
                                enclosed({1, 1, 1}, {2}),
                                smooth_max_pool_geometry(x.shape(), {.kernel = {2, 2}}));
  expect_intersect(bars.x_bar.reshaped({2, 2}), scaled(SmoothWindow({1, 2, 3, 4}, 1).weights, 2));
}

TEST(ReferenceMap, SpecSmoothMaxPool2dMultiBackwardSpecIsTheSameOnEachChannel) {
  const Tensor<Real> x = enclosed({2, 2, 2}, {1, 2, 3, 4, 0, 0, -1, 0});
  const auto bars =
      spec::smooth_max_pool_vjp(x,
                                Tensor<Real>(Shape{}, Real(1)),
                                enclosed({2, 1, 1}, {2, 5}),
                                smooth_max_pool_geometry(x.shape(), {.kernel = {2, 2}}));
  expect_intersect(bars.x_bar,
                   joined(scaled(SmoothWindow({1, 2, 3, 4}, 1).weights, 2),
                          scaled(SmoothWindow({0, 0, -1, 0}, 1).weights, 5)));
}

// --- TorchLean, the typed graph: output shapes at compile time, values and JVPs -----------------

constexpr Shape typed_conv(const Shape& x, const Shape& w, const ConvOptions& options) {
  return resolve_conv(x, w, Shape{w[0]}, options).geometry.y_shape();
}
constexpr Shape typed_conv_transpose(const Shape& x,
                                     const Shape& w,
                                     const ConvTransposeOptions& options) {
  return resolve_conv_transpose(x, w, Shape{w[1]}, options).geometry.y_shape();
}

TEST(ReferenceMap, SpecConvOutSpatialIsKnownAtCompileTime) {
  static_assert(typed_conv({3, 32, 31}, {16, 3, 3, 2}, {.stride = {2, 1}, .padding = 1}) ==
                Shape{16, 16, 32});
  static_assert(resolve_conv({3, 2}, {16, 3, 3}, {}, {}).fault.code ==
                ErrorCode::kernel_exceeds_input);
}

TEST(ReferenceMap, SpecConvTransposeOutSpatialIsKnownAtCompileTime) {
  static_assert(typed_conv_transpose({3, 8, 8, 8}, {3, 5, 4, 3, 2}, {.stride = 2, .padding = 1}) ==
                Shape{5, 16, 15, 14});
  static_assert(typed_conv_transpose({1, 1}, {1, 1, 3}, {.padding = 1}) == Shape{1, 1});
}

/// The graph of f on variables of these shapes, compiled with its JVP. Small integers: every double
/// is exact.
template <Shape x, Shape w, Shape b, class F>
void expect_typed_graph(const F& f,
                        const std::array<Exact, 3>& in,
                        const std::array<Exact, 3>& dots,
                        const Exact& y,
                        const Exact& y_dot) {
  const auto program = compile<double>(
      f, typed_input<x>, typed_parameter<w>, typed_parameter<b>, CompileOptions{.jvp = true});
  const auto doubles = [](const Exact& exact) {
    return exact.map([](const Rational& value) { return value.to_double(); });
  };
  Context context(program);
  const auto results = program.jvp(context,
                                   doubles(in[0]),
                                   doubles(in[1]),
                                   doubles(in[2]),
                                   doubles(dots[0]),
                                   doubles(dots[1]),
                                   doubles(dots[2]));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0], doubles(y));
  EXPECT_EQ(results[1], doubles(y_dot));
}

TEST(ReferenceMap, GraphConvHasTheBilinearJvpInAnyRank) {
  const Conv3d p;
  static_assert(typed_conv({1, 2, 2, 2},
                           {1, 1, 2, 1, 2},
                           {.stride = {1, 2, 1}, .padding = {0, 1, 0}}) == Shape{1, 1, 2, 1});
  const Exact w_dot(p.w.shape(), {1, 0, 0, 0});
  const Exact b_dot(Shape{1}, {7});
  const Exact y_dot(p.y.shape(), {7, 20});
  EXPECT_EQ(conv(p.x, p.w, &p.b, p.g), p.y);
  EXPECT_EQ(conv_jvp(p.x, p.w, ones(p.x.shape()), w_dot, &b_dot, p.g), y_dot);
  expect_typed_graph<Shape{1, 2, 2, 2}, Shape{1, 1, 2, 1, 2}, Shape{1}>(
      [](const auto& x, const auto& w, const auto& b) {
        return fenestra::conv<ConvOptions{.stride = {1, 2, 1}, .padding = {0, 1, 0}}>(x, w, b);
      },
      {p.x, p.w, p.b},
      {ones(p.x.shape()), w_dot, b_dot},
      p.y,
      y_dot);
}

TEST(ReferenceMap, GraphConvTransposeHasTheBilinearJvpInAnyRank) {
  const ConvTranspose1d p;
  static_assert(typed_conv_transpose({1, 3}, {1, 1, 3}, {.stride = 2, .padding = 1}) ==
                Shape{1, 5});
  const Exact x_dot(p.x.shape(), {1, 0, 0});
  const Exact w_dot(p.w.shape(), {0, 0, 1});
  const Exact b_dot(Shape{1}, {5});
  const Exact y_dot(p.y.shape(), {15, 106, 5, 7, 5});
  EXPECT_EQ(conv_transpose(p.x, p.w, &p.b, p.g), p.y);
  EXPECT_EQ(conv_transpose_jvp(p.x, p.w, x_dot, w_dot, &b_dot, p.g), y_dot);
  expect_typed_graph<Shape{1, 3}, Shape{1, 1, 3}, Shape{1}>(
      [](const auto& x, const auto& w, const auto& b) {
        return fenestra::conv_transpose<ConvTransposeOptions{.stride = 2, .padding = 1}>(x, w, b);
      },
      {p.x, p.w, p.b},
      {x_dot, w_dot, b_dot},
      p.y,
      y_dot);
}

TEST(ReferenceMap, GraphConv2dHasTheBilinearJvp) {
  const Conv2d p;
  static_assert(typed_conv({2, 3, 3}, {1, 2, 2, 2}, {}) == Shape{1, 2, 2});
  const Exact w_dot(p.w.shape(), {1, 0, 0, 0, 0, 0, 0, 0});
  const Exact b_dot(Shape{1}, {1});
  const Exact y_dot(p.y.shape(), {6, 7, 9, 10});
  EXPECT_EQ(conv(p.x, p.w, &p.b, p.g), p.y);
  EXPECT_EQ(conv_jvp(p.x, p.w, ones(p.x.shape()), w_dot, &b_dot, p.g), y_dot);
  expect_typed_graph<Shape{2, 3, 3}, Shape{1, 2, 2, 2}, Shape{1}>(
      [](const auto& x, const auto& w, const auto& b) { return fenestra::conv(x, w, b); },
      {p.x, p.w, p.b},
      {ones(p.x.shape()), w_dot, b_dot},
      p.y,
      y_dot);
}

TEST(ReferenceMap, GraphConvTranspose2dHasTheBilinearJvp) {
  const ConvTranspose2d p;
  static_assert(typed_conv_transpose({1, 2, 2}, {1, 2, 2, 2}, {.stride = 2}) == Shape{2, 4, 4});
  const Exact x_dot(p.x.shape(), {1, 0, 0, 0});
  const Exact w_dot(p.w.shape(), {0, 1, 0, 0, 0, 0, 0, 0});
  const Exact b_dot(Shape{2}, {1, 2});
  const Exact y_dot(p.y.shape(), {2, 2, 1, 3, 1, 2, 1, 1, 1, 4, 1, 5, 1, 1, 1, 1,
                                  2, 3, 2, 2, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2});
  EXPECT_EQ(conv_transpose(p.x, p.w, &p.b, p.g), p.y);
  EXPECT_EQ(conv_transpose_jvp(p.x, p.w, x_dot, w_dot, &b_dot, p.g), y_dot);
  expect_typed_graph<Shape{1, 2, 2}, Shape{1, 2, 2, 2}, Shape{2}>(
      [](const auto& x, const auto& w, const auto& b) {
        return fenestra::conv_transpose<ConvTransposeOptions{.stride = 2}>(x, w, b);
      },
      {p.x, p.w, p.b},
      {x_dot, w_dot, b_dot},
      p.y,
      y_dot);
}

// --- Nabla: NHWC activations, HWIO filters ------------------------------------------------------

TEST(ReferenceMap, NablaConv2dReadsNhwcAndHwioWithEveryOption) {
  const Exact x = counting({1, 2, 2, 2});
  const Exact w(Shape{2, 1, 2, 2}, {1, 0, 0, 1, 2, 0, 0, 2});
  const Exact b(Shape{2}, {100, 200});
  const ConvOptions options{.padding = {{1, 0}, {0, 0}}, .layout = Layout::channels_last};
  EXPECT_EQ(conv(x, w, b, options), Exact(x.shape(), {102, 204, 106, 208, 111, 214, 117, 220}));
  const ConvGeometry g = conv_geometry(x.shape(), w.shape(), b.shape(), options);
  EXPECT_EQ(conv_vjp(x, w, ones(x.shape()), g).x_bar, Exact(x.shape(), {3, 3, 3, 3, 2, 2, 2, 2}));
  EXPECT_EQ(conv_vjp(x, w, ones(x.shape()), g).b_bar, Exact(Shape{2}, {4, 4}));
  EXPECT_EQ(conv_jvp(x, w, x, Exact(w.shape()), &b, g), conv(x, w, b, options));

  const ConvOptions grouped{
      .padding = {{1, 0}, {0, 0}}, .groups = 2, .layout = Layout::channels_last};
  EXPECT_EQ(conv(x, Exact(Shape{2, 1, 1, 2}, {1, 1, 2, 2}), grouped),
            Exact(x.shape(), {2, 4, 6, 8, 11, 14, 17, 20}));
  const ConvOptions dilated{
      .padding = {{1, 0}, {0, 0}}, .dilation = {2, 1}, .layout = Layout::channels_last};
  EXPECT_EQ(conv(x, w, dilated), Exact(Shape{1, 1, 2, 2}, {10, 12, 14, 16}));
}

TEST(ReferenceMap, NablaConv2dTransposeIsTheInputGradientOfItsConv2d) {
  const Exact x(Shape{1, 1, 2, 1}, {1, 2});
  const Exact w(Shape{1, 2, 2, 1}, {1, 10, 2, 20});
  const ConvTransposeOptions options{.stride = {1, 2}, .layout = Layout::channels_last};
  const Exact y(Shape{1, 1, 4, 2}, {1, 10, 2, 20, 2, 20, 4, 40});
  EXPECT_EQ(conv_transpose(x, w, options), y);
  const ConvGeometry forward = conv_geometry(
      y.shape(), w.shape(), std::nullopt, {.stride = {1, 2}, .layout = Layout::channels_last});
  EXPECT_EQ(spec::conv_input_grad(x, w, forward), y);

  const ConvTransposeOptions longer{
      .stride = {1, 2}, .output_padding = {0, 1}, .layout = Layout::channels_last};
  EXPECT_EQ(conv_transpose(x, w, Exact(Shape{2}, {100, 200}), longer),
            Exact(Shape{1, 1, 5, 2}, {101, 210, 102, 220, 102, 220, 104, 240, 100, 200}));

  const ConvTransposeGeometry g =
      conv_transpose_geometry(x.shape(), w.shape(), std::nullopt, options);
  EXPECT_EQ(conv_transpose_vjp(x, w, ones(y.shape()), g).x_bar, Exact(x.shape(), {33, 33}));
  EXPECT_EQ(conv_transpose_jvp<Rational>(x, w, x, Exact(w.shape()), nullptr, g), y);
}

TEST(ReferenceMap, NablaAvgPool2dAveragesNhwcWindows) {
  const Exact x = counting({1, 2, 2, 2});
  const AvgPoolGeometry g =
      avg_pool_geometry(x.shape(), {.kernel = 2, .layout = Layout::channels_last});
  const Exact y(Shape{1, 1, 1, 2}, {4, 5});
  EXPECT_EQ(avg_pool(x, g), y);
  EXPECT_EQ(avg_pool_vjp(Exact(y.shape(), {4, 8}), g), Exact(x.shape(), {1, 2, 1, 2, 1, 2, 1, 2}));
  const AvgPoolOptions padded{
      .kernel = 2, .padding = {{0, 0}, {1, 1}}, .layout = Layout::channels_last};
  EXPECT_EQ(avg_pool(x, padded), Exact(Shape{1, 1, 2, 2}, {Rational(3, 2), 2, Rational(5, 2), 3}));
}

TEST(ReferenceMap, NablaMaxPool2dPicksFromNhwcWindows) {
  const Exact x = counting({1, 2, 2, 2});
  const MaxPoolGeometry g =
      max_pool_geometry(x.shape(), {.kernel = 2, .layout = Layout::channels_last});
  const Exact y(Shape{1, 1, 1, 2}, {7, 8});
  EXPECT_EQ(max_pool(x, g), y);
  EXPECT_EQ(max_pool_vjp(max_pool_indices(x, g), Exact(y.shape(), {3, 4}), g),
            Exact(x.shape(), {0, 0, 0, 0, 0, 0, 3, 4}));
  EXPECT_EQ(max_pool_jvp(max_pool_indices(x, g), counting(x.shape(), 11), g),
            Exact(y.shape(), {17, 18}));
  // Its padding is of zeros: asked for by name here, ignored cells being the default.
  const Exact below(Shape{1, 1, 1, 1}, {-1});
  EXPECT_EQ(max_pool(below,
                     {.kernel = {1, 2},
                      .padding = {{0, 0}, {0, 1}},
                      .pad_cells = PadCells::zero,
                      .layout = Layout::channels_last}),
            Exact(Shape{1, 1, 1, 1}, {0}));
}

}  // namespace
}  // namespace fenestra

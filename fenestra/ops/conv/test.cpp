// Convolution: answers by hand on every scalar, every option, and the gradients. The laws run in
// check/all_test.cpp.
#include <fenestra/check/examples.hpp>
#include <fenestra/ops/conv/op.hpp>
#include <fenestra/ops/conv_transpose/op.hpp>
#include <fenestra/tensor/transform.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fenestra {
namespace {

using check::counting;
using check::cube;
using check::for_each_scalar;
using check::line;
using check::tensor;

constexpr auto kGeometry =
    resolve_conv({8, 3, 32, 32}, {16, 3, 3, 3}, Shape{16}, {.stride = 2, .padding = 1});
static_assert(!kGeometry.fault);
static_assert(kGeometry.geometry.y_shape() == Shape{8, 16, 16, 16});
static_assert(kGeometry.geometry.parameters() == 16 * 3 * 9 + 16);
static_assert(kGeometry.geometry.multiply_adds() == Index{8} * 16 * 256 * 27);
static_assert(resolve_conv({8, 3, 2, 64}, {16, 3, 3, 3}, std::nullopt, {.stride = 2}).fault ==
              Fault{ErrorCode::kernel_exceeds_input, Argument::kernel, 0, 3, 2});

// 2^53 elements are one more than fits, of x or of what is multiplied; half of them fit.
constexpr Index kLong = Index{1} << 18;
static_assert(resolve_conv({kLong, 1, kLong, kLong / 2}, {1, 1, 1, 1}, {}, {}).fault.code ==
              ErrorCode::overflow);
static_assert(!resolve_conv({kLong, 1, kLong, kLong / 4}, {1, 1, 1, 1}, {}, {}).fault);
static_assert(resolve_conv({1, kLong, kLong, 1}, {kLong, kLong, 1, 1}, {}, {}).fault.code ==
              ErrorCode::overflow);
static_assert(!resolve_conv({1, kLong, kLong / 2, 1}, {kLong / 2, kLong, 1, 1}, {}, {}).fault);

TEST(Conv, IsACrossCorrelationTheKernelIsNotFlipped) {
  for_each_scalar([]<class T>() {
    EXPECT_EQ(spec::conv(line<T>({1, 2, 3, 4}), line<T>({1, 10})), line<T>({21, 32, 43}));
    EXPECT_EQ(spec::conv(line<T>({1, 2, 3}), line<T>({1, 10}), tensor<T>({1}, {1000})),
              line<T>({1021, 1032}));
  });
}

TEST(Conv, StrideDilationAndPaddingOnEitherSide) {
  for_each_scalar([]<class T>() {
    const auto x = line<T>({1, 2, 3, 4, 5});
    const auto w = line<T>({1, 10});
    EXPECT_EQ(spec::conv(x, w, {.stride = 2}), line<T>({21, 43}));
    EXPECT_EQ(spec::conv(x, w, {.dilation = 3}), line<T>({41, 52}));
    EXPECT_EQ(spec::conv(x, w, {.padding = 1}), line<T>({10, 21, 32, 43, 54, 5}));
    EXPECT_EQ(spec::conv(x, w, {.padding = {{2, 0}}}), line<T>({0, 10, 21, 32, 43, 54}));
    EXPECT_EQ(spec::conv(x, w, {.padding = {{0, 1}}}), line<T>({21, 32, 43, 54, 5}));
    EXPECT_EQ(spec::conv(x, w, {.stride = 2, .padding = 1, .dilation = 2}), line<T>({20, 42, 4}));
    EXPECT_EQ(spec::conv(x, w, {.padding = valid}), line<T>({21, 32, 43, 54}));
  });
}

TEST(Conv, SamePaddingKeepsTheExtentWithTheSurplusCellOnTheHighSide) {
  for_each_scalar([]<class T>() {
    const auto x = line<T>({1, 2, 3, 4, 5});
    EXPECT_EQ(spec::conv(x, line<T>({1, 10}), {.padding = same}), line<T>({21, 32, 43, 54, 5}));
    EXPECT_EQ(spec::conv(x, line<T>({1, 10, 100}), {.padding = same}),
              line<T>({210, 321, 432, 543, 54}));
    EXPECT_EQ(spec::conv(x, line<T>({1, 10}), {.stride = 2, .padding = same}),
              line<T>({21, 43, 5}));
  });
}

TEST(Conv, ChannelsAreSummedWithinTheirGroup) {
  for_each_scalar([]<class T>() {
    const auto x = tensor<T>({1, 4, 1}, {1, 2, 3, 4});
    EXPECT_EQ(spec::conv(x, tensor<T>({1, 4, 1}, {1, 10, 100, 1000})),
              tensor<T>({1, 1, 1}, {4321}));
    EXPECT_EQ(spec::conv(x, tensor<T>({2, 2, 1}, {1, 10, 1, 10}), {.groups = 2}),
              tensor<T>({1, 2, 1}, {21, 43}));
    EXPECT_EQ(spec::conv(x, tensor<T>({8, 1, 1}, {1, 2, 3, 4, 5, 6, 7, 8}), {.groups = 4}),
              tensor<T>({1, 8, 1}, {1, 2, 6, 8, 15, 18, 28, 32}))
        << "depthwise, two outputs per channel";
  });
}

TEST(Conv, TwoAxesWithDifferentOptionsEqualFourNestedLoops) {
  const Index h = 6, w = 7, kh = 3, kw = 2, sh = 2, sw = 1, dh = 1, dw = 3, top = 1, left = 2;
  const auto x = counting<double>({2, 4, h, w});
  const auto k = counting<double>({6, 2, kh, kw}).map([](double v) { return v - 30; });
  const auto b = counting<double>({6});
  const auto y = spec::conv(
      x,
      k,
      b,
      {.stride = {sh, sw}, .padding = {{top, 0}, {left, 1}}, .dilation = {dh, dw}, .groups = 2});
  ASSERT_EQ(y.shape(), (Shape{2, 6, 3, 7}));
  Index i = 0;
  for (Index n = 0; n < 2; ++n) {
    for (Index co = 0; co < 6; ++co) {
      for (Index oy = 0; oy < 3; ++oy) {
        for (Index ox = 0; ox < 7; ++ox) {
          double sum = b[co];
          for (Index c = 0; c < 2; ++c) {
            for (Index ty = 0; ty < kh; ++ty) {
              for (Index tx = 0; tx < kw; ++tx) {
                const Index row = oy * sh + ty * dh - top;
                const Index column = ox * sw + tx * dw - left;
                if (row >= 0 && row < h && column >= 0 && column < w) {
                  sum += x[((n * 4 + co / 3 * 2 + c) * h + row) * w + column] *
                         k[((co * 2 + c) * kh + ty) * kw + tx];
                }
              }
            }
          }
          EXPECT_EQ(y[i++], sum);  // small integers: exact in any order
        }
      }
    }
  }
}

TEST(Conv, TheOrderOfSummationIsChannelThenTapThenBias) {
  // 2^24 + 1 rounds back to 2^24 in float: only the stated order gives these bits.
  const float big = 16777216.0F;
  const Tensor<float> x(Shape{1, 2, 2}, {big, 1.0F, -big, 1.0F});
  const Tensor<float> w(Shape{1, 2, 2}, 1.0F);
  EXPECT_EQ(spec::conv(x, w), Tensor<float>(Shape{1, 1, 1}, 1.0F)) << "((2^24 + 1) - 2^24) + 1";
  EXPECT_EQ(spec::conv(x, w, Tensor<float>(Shape{1}, 2.0F)), Tensor<float>(Shape{1, 1, 1}, 3.0F));
  EXPECT_EQ(spec::conv(Tensor<float>(Shape{1, 1, 2}, {1.0F, big}),
                       Tensor<float>(Shape{1, 1, 2}, 1.0F),
                       Tensor<float>(Shape{1}, 1.0F)),
            Tensor<float>(Shape{1, 1, 1}, big))
      << "the bias is lost at the end, not added to the first term";
}

TEST(Conv, CellsOutsideTheInputAreAbsentNotZero) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor<double> w(Shape{1, 1, 3}, {infinity, 2.0, infinity});
  EXPECT_EQ(spec::conv(line<double>({3}), w, {.padding = 1}), line<double>({6}))
      << "0 * inf never happens";
}

TEST(Conv, AWindowWithoutARealCellIsTheBias) {
  for_each_scalar([]<class T>() {
    EXPECT_EQ(spec::conv(line<T>({3}), line<T>({2}), tensor<T>({1}, {7}), {.padding = 2}),
              line<T>({7, 7, 13, 7, 7}));
  });
}

TEST(Conv, ChannelsLastHasTheSameValues) {
  for_each_scalar([]<class T>() {
    const auto x = counting<T>({2, 4, 3, 3});
    const auto w = counting<T>({2, 2, 2, 2});
    const auto first = spec::conv(x, w, {.padding = 1, .groups = 2});
    const auto last =
        spec::conv(activation_to_layout(x, true, Layout::channels_first, Layout::channels_last),
                   weight_to_layout(w, Layout::channels_first, Layout::channels_last),
                   {.padding = 1, .groups = 2, .layout = Layout::channels_last});
    EXPECT_EQ(last,
              activation_to_layout(first, true, Layout::channels_first, Layout::channels_last));
  });
}

TEST(Conv, ASingleSampleIsASliceOfItsBatch) {
  for_each_scalar([]<class T>() {
    const auto x = counting<T>({2, 3, 4});
    const auto w = counting<T>({2, 3, 2});
    const auto y = spec::conv(x, w);
    for (Index n = 0; n < 2; ++n) {
      EXPECT_EQ(spec::conv(sliced(x, 0, n, 1).reshaped({3, 4}), w),
                sliced(y, 0, n, 1).reshaped({2, 3}));
    }
  });
}

TEST(Conv, EveryRankUpToEightSumsItsWindow) {
  for (const int rank : {1, 2, 3, 4, 5, 8}) {
    const Tensor<double> x(cube(1, 2, 3, rank), 1.0);
    const Tensor<double> w(cube(1, 2, 2, rank), 1.0);
    EXPECT_EQ(spec::conv(x, w), Tensor<double>(cube(1, 1, 2, rank), 2 * std::pow(2.0, rank)))
        << rank;
    const Tensor<double> padded = spec::conv(x, w, {.stride = 2, .padding = 1});
    EXPECT_EQ(padded.shape(), cube(1, 1, 2, rank));
    EXPECT_EQ(padded[0], 2.0) << "one real cell in the first corner";
    EXPECT_EQ(padded[padded.size() - 1], 2 * std::pow(2.0, rank)) << "a whole window in the last";
  }
}

TEST(Conv, EmptyBatchesAndChannels) {
  const Tensor<double> b(Shape{2}, {5.0, 6.0});
  EXPECT_EQ(spec::conv(Tensor<double>(Shape{0, 3, 4}), Tensor<double>(Shape{2, 3, 2}), b),
            Tensor<double>(Shape{0, 2, 3}));
  EXPECT_EQ(spec::conv(Tensor<double>(Shape{1, 0, 4}), Tensor<double>(Shape{2, 0, 3}), b),
            (Tensor<double>(Shape{1, 2, 2}, {5.0, 5.0, 6.0, 6.0})))
      << "a sum over nothing, and the bias";
  EXPECT_EQ(spec::conv(Tensor<double>(Shape{1, 3, 4}), Tensor<double>(Shape{0, 3, 2})),
            Tensor<double>(Shape{1, 0, 3}));
  const auto g = conv_geometry({0, 3, 4}, {2, 3, 2}, Shape{2}, {});
  const auto grads = spec::conv_vjp(Tensor<double>(g.x_shape()),
                                    Tensor<double>(g.w_shape(), 1.0),
                                    Tensor<double>(g.y_shape()),
                                    g);
  EXPECT_EQ(grads.x_bar, Tensor<double>(Shape{0, 3, 4}));
  EXPECT_EQ(grads.w_bar, Tensor<double>(Shape{2, 3, 2})) << "zero parameter gradients";
  EXPECT_EQ(grads.b_bar, Tensor<double>(Shape{2}));
}

TEST(Conv, GradientsByHand) {
  for_each_scalar([]<class T>() {
    const auto x = line<T>({1, 2, 3});
    const auto w = line<T>({4, 5});
    const auto g = conv_geometry(x.shape(), w.shape(), Shape{1}, {});
    const auto grads = spec::conv_vjp(x, w, line<T>({1, 10}), g);
    EXPECT_EQ(grads.x_bar, line<T>({4, 45, 50}));
    EXPECT_EQ(grads.w_bar, line<T>({21, 32}));
    EXPECT_EQ(grads.b_bar, tensor<T>({1}, {11}));
    const auto b_dot = tensor<T>({1}, {1000});
    EXPECT_EQ(spec::conv_jvp(x, w, line<T>({1, 0, 2}), line<T>({1, -1}), &b_dot, g),
              line<T>({1003, 1009}));
    EXPECT_EQ(spec::conv_jvp<T>(x, w, line<T>({1, 0, 2}), line<T>({1, -1}), nullptr, g),
              line<T>({3, 9}));
  });
}

TEST(Conv, GradientsOfAStridedPaddedDilatedConvolutionByHand) {
  for_each_scalar([]<class T>() {
    // y0 = 5 x1, y1 = 4 x1 + 5 x3: cells 0 and 2 are never seen.
    const auto x = line<T>({1, 2, 3, 7});
    const auto w = line<T>({4, 5});
    const auto g = conv_geometry(
        x.shape(), w.shape(), std::nullopt, {.stride = 2, .padding = {{1, 0}}, .dilation = 2});
    EXPECT_EQ(spec::conv<T>(x, w, nullptr, g), line<T>({10, 43}));
    const auto grads = spec::conv_vjp(x, w, line<T>({1, 10}), g);
    EXPECT_EQ(grads.x_bar, line<T>({0, 45, 0, 50}));
    EXPECT_EQ(grads.w_bar, line<T>({20, 72}));
  });
}

TEST(Conv, TheThreeContractionsOfTheTrilinearFormAgree) {
  const auto g = conv_geometry(
      {2, 4, 5, 4}, {6, 2, 2, 3}, std::nullopt, {.stride = {2, 1}, .padding = 1, .groups = 2});
  const auto x = counting<Rational>(g.x_shape());
  const auto w = counting<Rational>(g.w_shape());
  const auto y_bar = counting<Rational>(g.y_shape());
  const auto dot = [](const Tensor<Rational>& a, const Tensor<Rational>& b) {
    Rational sum = 0;
    for (Index i = 0; i < a.size(); ++i) {
      sum += a[i] * b[i];
    }
    return sum;
  };
  const Rational form = dot(y_bar, spec::conv<Rational>(x, w, nullptr, g));
  EXPECT_EQ(dot(x, spec::conv_input_grad(y_bar, w, g)), form);
  EXPECT_EQ(dot(w, spec::conv_weight_grad(x, y_bar, g)), form);
}

/// The window map written down gives what the specification gives, in every quantity.
template <class Op>
void expect_listed_is_specified() {
  using T = std::int64_t;
  Random random(5);
  for (int i = 0; i < 150; ++i) {
    const auto g = Op::random(random);
    const auto draw = [&](const Shape& shape) {
      Tensor<T> tensor(shape);
      for (T& value : tensor.mutable_values()) {
        value = random.between(-9, 9);
      }
      return tensor;
    };
    Inputs<T> in;
    std::vector<Tensor<T>> dots;
    for (const TensorInfo& info : Op::inputs(g)) {
      in.values.push_back(draw(info.shape));
      dots.push_back(draw(info.shape));
    }
    const Tensor<T> y_bar = draw(Op::output(g).shape);
    std::vector<Tensor<T>> needed{Op::forward(g, in), Op::jvp(g, in, dots)};
    for (const Tensor<T>& bar : Op::vjp(g, in, y_bar)) {
      needed.push_back(bar);
    }
    EXPECT_EQ(Op::listed(g, in, dots, y_bar, true), needed) << to_string(g);
    needed[1] = Tensor<T>(Shape{0});
    EXPECT_EQ(Op::listed(g, in, dots, y_bar, false), needed) << to_string(g);
  }
}

TEST(Conv, TheListedWindowMapGivesTheSameSums) {
  expect_listed_is_specified<Conv>();
  expect_listed_is_specified<ConvTranspose>();
}

TEST(Conv, DualsCarryTheDerivativeToAnyOrder) {
  using D = Dual<Dual<Rational>>;
  // d/du d/dv of conv(x + u, w + v) is conv(1, 1) = 2 with both moving by one.
  const Tensor<D> x(Shape{1, 1, 2}, D(Dual<Rational>(3, 1), Dual<Rational>(0)));
  const Tensor<D> w(Shape{1, 1, 2}, D(Dual<Rational>(5), Dual<Rational>(1)));
  const auto y = spec::conv(x, w);
  EXPECT_TRUE(identical(y[0], D(Dual<Rational>(30, 10), Dual<Rational>(6, 2)))) << y[0];
}

TEST(Conv, ProblemStringsOfEveryFormReadBack) {
  for (const char* text :
       {"x=2x4x9x8 w=6x4x3x2 stride=2,1 padding=1:0,0:1 dilation=1,2 groups=1",
        "x=4x9 w=6x2x3 stride=1 padding=0 dilation=1 groups=2 bias=true",
        "x=1x9x8x4 w=3x2x4x6 stride=2,2 padding=0,0 dilation=1,1 groups=1 layout=channels_last"}) {
    EXPECT_EQ(to_string(Conv::parse(text)), text);
  }
  EXPECT_EQ(to_string(Conv::parse("x=1x1x5 w=1x1x2 padding=same")),
            "x=1x1x5 w=1x1x2 stride=1 padding=0:1 dilation=1 groups=1");
}

}  // namespace
}  // namespace fenestra

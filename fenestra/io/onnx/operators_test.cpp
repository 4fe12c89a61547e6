// Operators and forms of operators that the official vectors do not have, against plain loops.
#include <fenestra/base/key.hpp>
#include <fenestra/fenestra.hpp>
#include <fenestra/io/onnx/small_models_test.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

namespace fenestra::onnx::small {
namespace {

using D = Datum<double>;

Tensor<double> drawn(const Shape& shape, std::uint64_t seed = 1) {
  Tensor<double> x(shape);
  for (Index i = 0; i < x.size(); ++i) {
    x.mutable_data()[i] = 4 * Key(seed).uniform(static_cast<std::uint64_t>(i)) - 2;
  }
  return x;
}
Tensor<Index> list(std::vector<Index> numbers) {
  return Tensor<Index>(Shape{static_cast<Index>(numbers.size())}, numbers);
}
/// How far apart the operator and the loops may be: `roundings` errors of half a unit, of both
/// sides together, each of a number that is no larger than the result, or than `size` where terms
/// cancel. None: all numbers on the way are whole or have few bits.
struct Rounding {
  double roundings = 0;
  double size = 0;
};
void expect_near(const D& got, const Tensor<double>& wanted, Rounding allowed = {}) {
  const Tensor<double> y = got.value().tensor();
  ASSERT_EQ(y.shape(), wanted.shape());
  for (Index i = 0; i < y.size(); ++i) {
    const double size = std::max(std::abs(wanted[i]), allowed.size);
    EXPECT_LE(std::abs(y[i] - wanted[i]), allowed.roundings * 0x1p-53 * size) << i;
  }
}
void expect_each(const std::string& op,
                 Index opset,
                 const std::vector<Attribute>& attributes,
                 Rounding allowed,
                 const std::function<double(double)>& f) {
  const Tensor<double> x = drawn(Shape{3, 7});
  expect_near(run(opset, op, {x}, attributes)[0], x.map(f), allowed);
}

TEST(Operators, ActivationsWithoutOfficialVectorsAreTheirFormulas) {
  // Ours are those of docs/kernels/elementwise.md, two for a unit; the C library's are one unit.
  // softplus 6, tanh 6 of an argument that it does not magnify, a product; exp, log1p, tanh 2 each.
  expect_each(
      "Mish", 18, {}, {20}, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); });
  // 12; erfc 2, of an argument with 3 that erfc magnifies up to 4.8 times at sqrt(2), two products.
  expect_each(
      "Gelu", 20, {}, {31}, [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); });
  // 1 + tanh cancels, so errors are of numbers up to 1 = x/2: the argument 8, tanh 6 (2), sum and
  // product, on both sides.
  expect_each("Gelu", 20, {text("approximate", "tanh")}, {28, 1}, [](double x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  });
  // sigmoid 5 and a product; exp 2, sum, quotient.
  expect_each("Swish", 24, {real("alpha", 0.5F)}, {10}, [](double x) {
    return x / (1 + std::exp(-x / 2));
  });
  expect_each("Clip", 6, {real("min", -1), real("max", 0.5F)}, {}, [](double x) {
    return std::min(std::max(x, -1.0), 0.5);
  });
  // elu 4, expm1 2, two products each.
  expect_each("Selu", 6, {}, {10}, [](double x) {
    return 1.05070102214813232421875 * (x > 0 ? x : 1.67326319217681884765625 * std::expm1(x));
  });
}

TEST(Operators, ClipWithItsBoundsTheWrongWayRoundGivesTheLargest) {
  const Tensor<double> x(Shape{3}, {-5.0, 0.0, 5.0});
  const D low = Tensor<double>(Shape{}, 2.0);
  const D high = Tensor<double>(Shape{}, 1.0);
  expect_near(run(13, "Clip", {x, low, high})[0], Tensor<double>(Shape{3}, 1.0));
}

TEST(Operators, NormsAreTheirFormulas) {
  const Tensor<double> x = drawn(Shape{2, 4, 3});
  Tensor<double> l1 = x;
  Tensor<double> rms = x;
  for (Index row = 0; row < 8; ++row) {
    double sum = 0;
    double squares = 0;
    for (Index i = 0; i < 3; ++i) {
      sum += std::abs(x[row * 3 + i]);
      squares += x[row * 3 + i] * x[row * 3 + i];
    }
    for (Index i = 0; i < 3; ++i) {
      l1.mutable_data()[row * 3 + i] /= sum;
      rms.mutable_data()[row * 3 + i] /= std::sqrt(squares / 3 + static_cast<double>(1e-5F));
    }
  }
  // Two sums of three numbers that do not cancel, and a quotient, on both sides.
  expect_near(run(1, "LpNormalization", {x}, {integer("p", 1)})[0], l1, {6});
  // Squares, two sums, mean, eps: 5, which the root halves; root, quotient, scale.
  expect_near(run(23, "RMSNormalization", {x, Tensor<double>(Shape{3}, 1.0)})[0], rms, {12});

  // Two groups of two channels: scale by group in version 18, by channel in 21.
  for (const Index opset : {18, 21}) {
    const std::vector<double> scale =
        opset == 18 ? std::vector<double>{2, 3} : std::vector<double>{2, 2, 3, 3};
    const Index count = static_cast<Index>(scale.size());
    Tensor<double> y = x;
    for (Index n = 0; n < 2; ++n) {
      for (Index g = 0; g < 2; ++g) {
        const double* group = x.data() + (n * 2 + g) * 6;
        double mean = 0;
        double var = 0;
        for (int i = 0; i < 6; ++i) {
          mean += group[i] / 6;
        }
        for (int i = 0; i < 6; ++i) {
          var += (group[i] - mean) * (group[i] - mean) / 6;
        }
        for (Index i = 0; i < 6; ++i) {
          y.mutable_data()[(n * 2 + g) * 6 + i] =
              (group[i] - mean) / std::sqrt(var + 0.25) * static_cast<double>(2 + g) + 1;
        }
      }
    }
    expect_near(run(opset,
                    "GroupNormalization",
                    {x, Tensor<double>(Shape{count}, scale), Tensor<double>(Shape{count}, 1.0)},
                    {integer("num_groups", 2), real("epsilon", 0.25F)})[0],
                y,
                // x - mean is off by 7 roundings of 2, which 1/sqrt(var + 0.25) <= 2 and the scale
                // <= 3 make 84; that root by 6, and 3 more, of a result of up to 8; both sides.
                {2 * (84.0 / 8 + 9), 8});
  }
}

TEST(Operators, LpPoolsAreNormsOfTheirWindows) {
  const Tensor<double> x = drawn(Shape{1, 2, 5});
  Tensor<double> y(Shape{1, 2, 2});
  Tensor<double> whole(Shape{1, 2, 1});
  for (Index c = 0; c < 2; ++c) {
    double all = 0;
    for (Index i = 0; i < 5; ++i) {
      all += std::pow(std::abs(x[c * 5 + i]), 3);
    }
    whole.mutable_data()[c] = std::cbrt(all);
    for (Index o = 0; o < 2; ++o) {
      double sum = 0;
      for (Index k = 0; k < 3; ++k) {
        sum += std::pow(std::abs(x[c * 5 + o * 2 + k]), 3);
      }
      y.mutable_data()[c * 2 + o] = std::cbrt(sum);
    }
  }
  // Powers 8 and up to 4 sums, a third of which the root keeps; the root 3, of an exponent that is
  // rounded: log(40) < 4. The loops: powers 2, sums, root 2.
  constexpr Rounding kRoot{12.0 / 3 + 3 + 4 + 6.0 / 3 + 2};
  expect_near(run(18,
                  "LpPool",
                  {x},
                  {integers("kernel_shape", {3}), integers("strides", {2}), integer("p", 3)})[0],
              y,
              kRoot);
  expect_near(run(2, "GlobalLpPool", {x}, {integer("p", 3)})[0], whole, kRoot);
}

TEST(Operators, BeforeVersion7AnOperandIsPlacedByItsAxis) {
  const Tensor<double> a = drawn(Shape{2, 3, 4});
  const Tensor<double> b(Shape{3}, {1.0, 2.0, 3.0});
  Tensor<double> y = a;
  for (Index i = 0; i < y.size(); ++i) {
    y.mutable_data()[i] += b[i / 4 % 3];
  }
  expect_near(run(6, "Add", {a, b}, {integer("broadcast", 1), integer("axis", 1)})[0], y);
}

TEST(Operators, SoftmaxFlattensBeforeVersion13) {
  const Tensor<double> x = drawn(Shape{2, 2, 3});
  const auto expected = [&](Index line) {
    Tensor<double> y = x;
    for (Index begin = 0; begin < x.size(); begin += line) {
      double sum = 0;
      for (Index i = begin; i < begin + line; ++i) {
        sum += std::exp(x[i]);
      }
      for (Index i = begin; i < begin + line; ++i) {
        y.mutable_data()[i] = std::exp(x[i]) / sum;
      }
    }
    return y;
  };
  // x - max is off by one rounding of up to 4, exp 3: 7 above, and below with 5 sums 12; quotient.
  // The loops: exp 2 above, 7 below, quotient.
  constexpr Rounding kAllowed{20 + 10};
  expect_near(run(11, "Softmax", {x})[0], expected(6), kAllowed);
  expect_near(run(13, "Softmax", {x})[0], expected(3), kAllowed);
}

TEST(Operators, IntegersAreComputedInTheirWidth) {
  const D a(list({250, 3}), ElementType::uint8);
  const D b(list({10, 200}), ElementType::uint8);
  EXPECT_EQ(run(14, "Add", {a, b})[0].numbers(), list({4, 203}));
  EXPECT_EQ(run(14, "Sub", {a, b})[0].numbers(), list({240, 59}));
  const D big(list({Index{1} << 60, -7}));
  EXPECT_EQ(run(14, "Div", {big, D(list({3, 2}))})[0].numbers(), list({(Index{1} << 60) / 3, -3}));
  EXPECT_EQ(run(13, "Mod", {D(list({-7, 7})), D(list({3, -3}))})[0].numbers(), list({2, -2}));
  EXPECT_THROW(run(14, "Div", {big, D(list({0, 1}))}), Error);
}

TEST(Operators, PadTakesAwayWrapsAndNamesAxes) {
  const Tensor<double> x(Shape{2, 3}, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0});
  expect_near(run(19, "Pad", {x, D(list({0, -1, 0, 2}))}, {text("mode", "constant")})[0],
              Tensor<double>(Shape{2, 4}, {2.0, 3.0, 0.0, 0.0, 5.0, 6.0, 0.0, 0.0}));
  expect_near(run(19, "Pad", {x, D(list({0, 1, 0, 1}))}, {text("mode", "wrap")})[0],
              Tensor<double>(Shape{2, 5}, {3.0, 1.0, 2.0, 3.0, 1.0, 6.0, 4.0, 5.0, 6.0, 4.0}));
  const D numbers(Tensor<Index>(Shape{2}, {7, 8}));
  EXPECT_EQ(run(18, "Pad", {numbers, D(list({1, 2})), D(Tensor<Index>(Shape{}, 9))})[0].numbers(),
            list({9, 7, 8, 9, 9}));
}

TEST(Operators, ScatterReducesCellsThatAreNamedTwice) {
  const Tensor<double> data(Shape{4}, {1.0, 2.0, 3.0, 4.0});
  const D indices(list({1, 1, 3}));
  const Tensor<double> updates(Shape{3}, {5.0, -6.0, 0.5});
  const auto scattered = [&](const std::string& reduction) {
    return run(18, "ScatterElements", {data, indices, updates}, {text("reduction", reduction)})[0];
  };
  expect_near(scattered("none"), Tensor<double>(Shape{4}, {1.0, -6.0, 3.0, 0.5}));
  expect_near(scattered("add"), Tensor<double>(Shape{4}, {1.0, 1.0, 3.0, 4.5}));
  expect_near(scattered("mul"), Tensor<double>(Shape{4}, {1.0, -60.0, 3.0, 2.0}));
  expect_near(scattered("max"), Tensor<double>(Shape{4}, {1.0, 5.0, 3.0, 4.0}));
  expect_near(scattered("min"), Tensor<double>(Shape{4}, {1.0, -6.0, 3.0, 0.5}));
}

TEST(Operators, MaxPoolCountsCellsByColumnsWhereAsked) {
  Tensor<double> x(Shape{1, 1, 2, 3}, {1.0, 2.0, 9.0, 4.0, 5.0, 6.0});
  const auto places = [&](Index order) {
    return run(12,
               "MaxPool",
               {x},
               {integers("kernel_shape", {2, 3}), integer("storage_order", order)},
               2)[1]
        .numbers()[0];
  };
  EXPECT_EQ(places(0), 2);
  EXPECT_EQ(places(1), 4);
}

TEST(Operators, ConvTransposeReachesAnOutputLargerThanItsWindows) {
  // x (1, 1, 2), a kernel of one cell, stride 1, output_shape 5: zeros and bias around it.
  const Tensor<double> x(Shape{1, 1, 2}, {1.0, 2.0});
  const Tensor<double> w(Shape{1, 1, 1}, {3.0});
  const Tensor<double> b(Shape{1}, {0.5});
  expect_near(run(11, "ConvTranspose", {x, w, b}, {integers("output_shape", {5})})[0],
              Tensor<double>(Shape{1, 1, 5}, {0.5, 3.5, 6.5, 0.5, 0.5}));
}

TEST(Operators, UpsampleAndResizeInterpolateFromTheSameCells) {
  const Tensor<double> x(Shape{1, 1, 1, 3}, {0.0, 4.0, 8.0});
  const D scales = Tensor<double>(Shape{4}, {1.0, 1.0, 1.0, 2.0});
  expect_near(run(9, "Upsample", {x, scales}, {text("mode", "linear")})[0],
              Tensor<double>(Shape{1, 1, 1, 6}, {0.0, 2.0, 4.0, 6.0, 8.0, 8.0}));
  const D none = Tensor<double>(Shape{0});
  // Half pixels: -0.25, 0.25, 0.75, ... with the border repeated.
  expect_near(run(13, "Resize", {x, none, scales}, {text("mode", "linear")})[0],
              Tensor<double>(Shape{1, 1, 1, 6}, {0.0, 1.0, 3.0, 5.0, 7.0, 8.0}));
  // Antialiased by one half: the filter is a triangle four cells wide.
  const Tensor<double> line(Shape{1, 1, 1, 4}, {1.0, 2.0, 3.0, 4.0});
  const D half = Tensor<double>(Shape{4}, {1.0, 1.0, 1.0, 0.5});
  const double first = (0.75 * 1 + 0.75 * 2 + 0.25 * 3 + 0.25 * 1) / 2;
  expect_near(
      run(18, "Resize", {line, none, half}, {text("mode", "linear"), integer("antialias", 1)})[0],
      Tensor<double>(Shape{1, 1, 1, 2}, {first, 5 - first}));
}

/// The gradient of a weighted sum of the outputs, by every element of the first input.
void expect_gradient(Index opset,
                     const std::string& op,
                     const Tensor<double>& x,
                     const std::vector<D>& others,
                     const std::vector<Attribute>& attributes) {
  std::vector<std::string> names{"x"};
  Network<double>::Data data;
  for (const D& other : others) {
    names.push_back("x" + std::to_string(names.size()));
    data.insert_or_assign(names.back(), other);
  }
  const Network<double> network(model(opset, {node(op, names, {"y"}, attributes)}, names, {"y"}));
  const auto f = [&](const Value<double>& at) {
    Network<double>::Data given = data;
    given.insert_or_assign("x", D(at));
    const Value<double> y = network.run(given).at("y").value();
    return sum(y * Value<double>(drawn(y.shape(), 3)));
  };
  const GradcheckReport report = gradcheck(f, x);
  EXPECT_TRUE(report.ok) << op << ": " << report.text();
  // Forward mode agrees with it along a direction.
  const Tensor<double> along = drawn(x.shape(), 4);
  const auto [y, y_dot] = jvp(f, primals(x), tangents(along));
  const Tensor<double> x_bar = grad(f, x);
  // Sums of as many products as x has elements, of factors that are each a chain of some 30
  // operators' results; none of those is larger than the largest slope, or one.
  double slope = 1;
  double length = 0;
  for (Index i = 0; i < x.size(); ++i) {
    slope = std::max(slope, std::abs(x_bar[i]));
    length += std::abs(along[i]);
  }
  const double roundings = 2 * static_cast<double>(x.size() + 30);
  EXPECT_NEAR(y_dot[0], sum(x_bar * along)[0], roundings * 0x1p-53 * slope * length) << op;
}

TEST(Operators, DerivativesWithoutOfficialVectorsAreThoseOfTheirFormulas) {
  const Tensor<double> x = drawn(Shape{2, 4, 3});
  const D ones = Tensor<double>(Shape{4}, 1.5);
  expect_gradient(18, "Mish", x, {}, {});
  expect_gradient(20, "Gelu", x, {}, {});
  expect_gradient(20, "Gelu", x, {}, {text("approximate", "tanh")});
  expect_gradient(24, "Swish", x, {}, {});
  expect_gradient(1, "LpNormalization", x, {}, {integer("p", 1)});
  expect_gradient(1, "LpNormalization", x, {}, {integer("axis", 1)});
  expect_gradient(23, "RMSNormalization", x, {D(Tensor<double>(Shape{3}, 2.0))}, {});
  expect_gradient(21, "GroupNormalization", x, {ones, ones}, {integer("num_groups", 2)});
  expect_gradient(18, "LpPool", x, {}, {integers("kernel_shape", {2}), integer("p", 3)});
  expect_gradient(2, "GlobalLpPool", x, {}, {integer("p", 3)});
  expect_gradient(9,
                  "Upsample",
                  drawn(Shape{1, 1, 2, 3}),
                  {D(Tensor<double>(Shape{4}, {1.0, 1.0, 1.5, 2.0}))},
                  {text("mode", "linear")});
}

}  // namespace
}  // namespace fenestra::onnx::small

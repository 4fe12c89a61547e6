// The transforms on networks of real operators: agreement between modes, nesting in both orders,
// exactness in rationals.
#include <fenestra/engine/gradcheck.hpp>
#include <fenestra/engine/transforms.hpp>
#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/conv_transpose/conv_transpose.hpp>
#include <fenestra/ops/pool/pool.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/spec/random.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

namespace fenestra {
namespace {

/// Small rationals (or the same numbers as doubles), all different, none zero.
template <class T>
Tensor<T> numbers(const Shape& shape, std::uint64_t seed) {
  Random random(seed);
  Tensor<T> result(shape);
  for (T& value : result.mutable_values()) {
    value = from_double<T>(static_cast<double>(2 * random.between(-8, 7) + 1) / 4);
  }
  return result;
}

/// Bilinear and piecewise linear parts, with a square so that third derivatives are not all zero.
const auto network = [](const auto& x, const auto& w, const auto& v) {
  const auto hidden = max_pool(conv(x, w, {.padding = 1}), {.kernel = 2, .stride = 1});
  const auto up = conv_transpose(avg_pool(hidden, {.kernel = 2, .stride = 1}), v, {.stride = 2});
  return sum(up * up * up);
};

struct Point {
  Tensor<Rational> x = numbers<Rational>(Shape{2, 1, 3, 3}, 1);
  Tensor<Rational> w = numbers<Rational>(Shape{2, 1, 2, 2}, 2);
  Tensor<Rational> v = numbers<Rational>(Shape{2, 1, 2, 2}, 3);
};

TEST(Transforms, ReverseAndForwardAgreeExactlyInRationals) {
  const Point p;
  const auto d = numbers<Rational>(p.w.shape(), 4);
  const auto [y, bars] = value_and_grad(network, p.x, p.w, p.v);
  const auto by_w = [&](const auto& w) { return network(p.x, w, p.v); };
  const auto [again, y_dot] = jvp(by_w, primals(p.w), tangents(d));
  EXPECT_EQ(y, again);
  Rational dot(0);
  for (Index i = 0; i < d.size(); ++i) {
    dot = dot + std::get<1>(bars)[i] * d[i];
  }
  EXPECT_EQ(dot, y_dot[0]);
}

TEST(Transforms, HessianVectorProductsAgreeInAllFourOrders) {
  const Point p;
  const auto d = numbers<Rational>(p.w.shape(), 5);
  const auto f = [&](const auto& w) { return network(p.x, w, p.v); };
  const auto forward_over_reverse = hvp(f, primals(p.w), tangents(d));
  const auto along = [&](const auto& w) { return jvp(f, primals(w), tangents(d)).second; };
  const auto reverse_over_forward = grad(along, p.w);
  const auto slope = [&](const auto& w) { return sum(grad(f, w) * d); };
  const auto reverse_over_reverse = grad(slope, p.w);
  EXPECT_EQ(forward_over_reverse, reverse_over_forward);
  EXPECT_EQ(forward_over_reverse, reverse_over_reverse);
  // Forward over forward gives d'Hd, a number.
  const auto twice = jvp(along, primals(p.w), tangents(d)).second;
  EXPECT_EQ(twice, sum(forward_over_reverse * d));
}

TEST(Transforms, ThirdDerivativesAgreeExactlyInRationals) {
  const Point p;
  const auto d = numbers<Rational>(p.v.shape(), 6);
  const auto f = [&](const auto& v) { return network(p.x, p.w, v); };
  const auto first = [&](const auto& v) { return jvp(f, primals(v), tangents(d)).second; };
  const auto second = [&](const auto& v) { return jvp(first, primals(v), tangents(d)).second; };
  const auto third = jvp(second, primals(p.v), tangents(d)).second;
  // f is cubic in v: the third derivative along d is 6 f(d).
  EXPECT_EQ(third, f(d) * Tensor<Rational>(Shape{}, Rational(6)));
  const auto gradient_of_second = grad(second, p.v);
  EXPECT_EQ(sum(gradient_of_second * d), third);
}

TEST(Transforms, DoubleBackwardOfEveryConvolutionArgumentPair) {
  const Point p;
  const auto f = [](const auto& x, const auto& w) {
    const auto y = conv(x, w, {.stride = 2, .padding = 1, .dilation = 2});
    return sum(y * y);
  };
  const auto u = numbers<Rational>(p.x.shape(), 7);
  const auto d = numbers<Rational>(p.w.shape(), 8);
  const auto loss = [&](const auto& x, const auto& w) {
    const auto [x_bar, w_bar] = grad(f, x, w);
    return sum(x_bar * u) + sum(w_bar * d);
  };
  const auto [by_x, by_w] = grad(loss, p.x, p.w);
  const auto [x_dot, w_dot] = hvp(f, primals(p.x, p.w), tangents(u, d));
  EXPECT_EQ(by_x, x_dot);  // the Hessian is symmetric
  EXPECT_EQ(by_w, w_dot);
}

TEST(Transforms, JacobiansAgreeAndHaveTheJoinedShape) {
  const auto x = numbers<Rational>(Shape{1, 2, 3}, 9);
  const auto w = numbers<Rational>(Shape{2, 2, 2}, 10);
  const auto f = [&](const auto& value) { return conv(value, w); };
  const auto reverse = jacrev(f, x);
  EXPECT_EQ(reverse.shape(), (Shape{1, 2, 2, 1, 2, 3}));
  EXPECT_EQ(reverse, jacfwd(f, x));
  // Rows of a convolution's Jacobian hold the weights.
  EXPECT_EQ(reverse[0], w[0]);
}

TEST(Transforms, SmoothMaxPoolingDifferentiatesTwiceByInputAndSharpness) {
  const auto x = numbers<double>(Shape{1, 1, 4, 4}, 11);
  const Tensor<double> beta(Shape{}, 1.5);
  const auto f = [](const auto& value, const auto& sharpness) {
    const auto y = smooth_max_pool(value, sharpness, {.kernel = 2, .stride = 1});
    return sum(y * y);
  };
  const auto first = gradcheck(f, x, beta);
  EXPECT_TRUE(first.ok) << first.text();
  const auto slope = [&](const auto& value, const auto& sharpness) {
    const auto [x_bar, beta_bar] = grad(f, value, sharpness);
    return sum(x_bar * x_bar) + sum(beta_bar);
  };
  const auto second = gradcheck(slope, x, beta);
  EXPECT_TRUE(second.ok) << second.text();
}

/// A user's parameter set.
template <class V>
struct Net {
  V w;
  V b;
  static constexpr auto fields = std::tuple{&Net::w, &Net::b};
};

TEST(Transforms, UserStructsAndTuplesOfTensorsAreArguments) {
  const Net<Tensor<Rational>> net{numbers<Rational>(Shape{1, 1, 2}, 12),
                                  numbers<Rational>(Shape{1}, 13)};
  const auto x = numbers<Rational>(Shape{1, 1, 3}, 14);
  const auto f = [&](const auto& n) { return sum(conv(x, n.w, n.b)); };
  const auto bars = grad(f, net);
  EXPECT_EQ(bars.b[0], Rational(2));
  EXPECT_EQ(bars.w, Tensor<Rational>(Shape{1, 1, 2}, {x[0] + x[1], x[1] + x[2]}));
  const auto [y, pullback] = vjp([&](const auto& n) { return std::tuple(n.w * n.w, n.b); }, net);
  const auto pulled = pullback(std::tuple(net.w, net.b));
  EXPECT_EQ(pulled.b, net.b);
  EXPECT_EQ(pulled.w, net.w * net.w * Tensor<Rational>(Shape{}, Rational(2)));
}

TEST(Transforms, ACallThatIgnoresItsArgumentHasAZeroGradient) {
  const Tensor<double> x(Shape{2}, {1, 2});
  const auto bar = grad([](const auto& value) { return sum(zeros_like(value)); }, x);
  EXPECT_EQ(bar, Tensor<double>(Shape{2}));
}

TEST(Transforms, AGradientNeedsASingleElement) {
  const Tensor<double> x(Shape{2}, {1, 2});
  try {
    grad([](const auto& value) { return value * value; }, x);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::shape_mismatch);
    EXPECT_NE(std::string(error.what()).find("(2,)"), std::string::npos);
  }
}

TEST(Transforms, CheckpointingRecomputesInsteadOfKeeping) {
  Tape<double> tape;
  const auto w = tape.parameter(numbers<double>(Shape{2, 2, 3, 3}, 15));
  const auto x = tape.constant(numbers<double>(Shape{1, 2, 6, 6}, 16));
  const auto block = [](std::span<const Value<double>> in) {
    return relu(conv(relu(conv(in[0], in[1], {.padding = 1})), in[1], {.padding = 1}));
  };
  const std::vector<Value<double>> args{x, w};
  const Index before = tape.size();
  const auto saved = checkpoint(block, args);
  EXPECT_EQ(tape.size(), before + 1);
  const auto plain = block(args);
  EXPECT_EQ(saved.tensor(), plain.tensor());
  EXPECT_EQ(tape.backward(sum(saved))[w].tensor(), tape.backward(sum(plain))[w].tensor());
}

TEST(Gradcheck, NamesTheWorstElementOfAWrongGradient) {
  // log's rule is right; a function whose value and derivative disagree is made with a detached
  // copy.
  const Tensor<double> x(Shape{3}, {1, 2, 3});
  const auto wrong = [](const auto& value) {
    const auto detached = std::decay_t<decltype(value)>(bottom(value));
    return sum(value * detached);  // the derivative should be 2x, the rule sees x
  };
  const auto report = gradcheck(wrong, x);
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(report.element, 2);
  EXPECT_EQ(report.checked, 3);
  EXPECT_NE(report.text().find("differ"), std::string::npos);
}

}  // namespace
}  // namespace fenestra

// Erased values: the same derivatives as nested types give, levels that cannot be confused,
// batches, traces.
#include <fenestra/fenestra.hpp>
#include <fenestra/ops/concat/signature.hpp>
#include <fenestra/ops/conv/signature.hpp>
#include <fenestra/ops/elementwise/signature.hpp>
#include <fenestra/ops/erased_apply.hpp>
#include <fenestra/ops/max_pool/signature.hpp>
#include <fenestra/ops/reduce/signature.hpp>
#include <fenestra/ops/reshape/signature.hpp>
#include <fenestra/ops/slice/signature.hpp>
#include <fenestra/ops/transpose/signature.hpp>

#include <gtest/gtest.h>

#include <functional>

namespace fenestra {
namespace {

using E = Erased<double>;
using Function = std::function<E(const E&)>;

template <class... Signatures>
bool compile() {
  (compile_erased<E>(typename Signatures::Primitives{}), ...);
  return true;
}
const bool kCompiled = compile<ConcatSignature,
                               ConvSignature,
                               ElementwiseSignature,
                               MaxPoolSignature,
                               ReduceSignature,
                               ReshapeSignature,
                               SliceSignature,
                               TransposeSignature>();

E scalar(double value) { return Tensor<double>(Shape{}, value); }

E erased_grad(const Function& f, const E& x) {
  const Level level = new_level();
  BasicTape<E> tape;
  const Var<E> variable = tape.parameter(x);
  const E y = f(E(level, variable));
  if (y.level() != level) {
    return zeros_like(x);
  }
  return tape.backward(*y.as<Var<E>>())[variable];
}

E erased_derivative(const Function& f, const E& x, const E& x_dot) {
  const Level level = new_level();
  const E y = f(E(level, Jet<E>(x, x_dot)));
  return y.level() == level ? y.as<Jet<E>>()->tangent_or_zeros() : zeros_like(y);
}

TEST(Erased, GradientsOfAConvolutionAreThoseOfTheTypedTape) {
  const Tensor<double> x(Shape{1, 1, 4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1});
  const Tensor<double> w(Shape{1, 1, 2, 2}, {1, -2, 3, 0.5});
  const auto f = [&](const auto& weight) { return sum(exp(scale(conv(x, weight), 0.125))); };
  const Tensor<double> typed = grad(f, w);
  const E found = erased_grad([&](const E& weight) { return f(weight); }, E(w));
  ASSERT_EQ(found.level(), 0u);
  EXPECT_EQ(found.tensor(), typed);
}

// x^3: every mixture of the two modes gives 6x as the second derivative.
TEST(Erased, BothModesNestInBothOrders) {
  const Function cube = [](const E& x) { return mul(x, mul(x, x)); };
  const E one = scalar(1);
  const E at = scalar(5);
  const auto reverse = [&](const E& x) { return erased_grad(cube, x); };
  const auto forward = [&](const E& x) { return erased_derivative(cube, x, one); };
  EXPECT_EQ(erased_grad(reverse, at).tensor()[0], 30);
  EXPECT_EQ(erased_grad(forward, at).tensor()[0], 30);
  EXPECT_EQ(erased_derivative(reverse, at, one).tensor()[0], 30);
  EXPECT_EQ(erased_derivative(forward, at, one).tensor()[0], 30);
  const auto second = [&](const E& x) { return erased_grad(forward, x); };
  EXPECT_EQ(erased_grad(second, at).tensor()[0], 6);
}

// d/dx (x * d/dy (x + y)) = 1; a confusion of levels gives 2.
TEST(Erased, PerturbationsOfDifferentLevelsAreNotConfused) {
  const E one = scalar(1);
  const auto f = [&](const E& x) {
    return mul(x, erased_derivative([&](const E& y) { return add(x, y); }, one, one));
  };
  EXPECT_EQ(erased_derivative(f, one, one).tensor()[0], 1);
  EXPECT_EQ(erased_grad(f, one).tensor()[0], 1);
  const auto g = [&](const E& x) {
    return mul(x, erased_grad([&](const E& y) { return add(x, y); }, one));
  };
  EXPECT_EQ(erased_derivative(g, one, one).tensor()[0], 1);
  EXPECT_EQ(erased_grad(g, one).tensor()[0], 1);
}

TEST(Erased, AnInnerTransformOfAnOuterVariableIsAConstantThere) {
  const E at = scalar(3);
  const auto f = [&](const E& x) {
    return mul(x, erased_grad([&](const E&) { return mul(x, x); }, scalar(2)));
  };
  EXPECT_EQ(erased_grad(f, at).tensor()[0], 0);
}

TEST(Erased, ABatchOfGradientsIsTheGradientOfEachItem) {
  const Tensor<double> xs(Shape{3, 1, 4}, {1, 2, 3, 4, 2, 0, 1, 5, -1, 3, 2, 2});
  const Tensor<double> w(Shape{1, 1, 2}, {1, -2});
  const auto loss = [](const auto& weight, const auto& x) {
    const auto y = max_pool(conv(x, weight), {.kernel = {3}});
    return sum(mul(y, y));
  };
  const Tensor<double> typed = per_sample_grad(loss, w, over(xs));
  const Level level = new_level();
  const E items(level, Batch<E>::stacked(xs));
  const E bars = erased_grad([&](const E& weight) { return loss(weight, items); }, E(w));
  ASSERT_EQ(bars.level(), level);
  EXPECT_EQ(bars.as<Batch<E>>()->value().tensor(), typed);
}

TEST(Erased, ATracedGradientRunsAsAProgramWithTheSameBits) {
  const Tensor<double> x(Shape{2, 1, 5}, {1, 2, 3, 4, 2, 0, 1, 5, -1, 3});
  const Tensor<double> w(Shape{1, 1, 2}, {1, -2});
  const auto bar_of = [](const E& at, const E& weight) {
    return erased_grad(
        [&](const E& v) {
          const E y = max_pool(exp(conv(at, v)), {.kernel = {2}});
          return sum(mul(y, y));
        },
        weight);
  };
  const Level level = new_level();
  graph::Builder<double> builder;
  const E at(level, builder.input(x.shape(), "x"));
  const E weight(level, builder.input(w.shape(), "w"));
  EXPECT_FALSE(has_elements(weight));
  const E bar = bar_of(at, weight);
  ASSERT_EQ(bar.level(), level);
  builder.output(*bar.as<graph::Value<double>>(), "bar");
  const Program<double> program(builder.graph());
  Context<double> context(program);
  EXPECT_EQ(program.run(context, x, w)[0], bar_of(x, w).tensor());
  const Tensor<double> twice = x.map([](double v) { return 2 * v; });
  EXPECT_EQ(program.run(context, twice, w)[0], bar_of(twice, w).tensor());
}

TEST(Erased, AVariableAroundATraceIsRefused) {
  const auto f = [](const E& outer) {
    graph::Builder<double> builder;
    const E x(new_level(), builder.input(Shape{}, "x"));
    return mul(x, outer);
  };
  EXPECT_EQ(f(scalar(2)).shape(), Shape{});
  try {
    (void)erased_grad(f, scalar(2));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::foreign_variable);
  }
}

TEST(Erased, NothingIsWrittenIntoBorrowedMemory) {
  const std::shared_ptr<double[]> memory(new double[2]{1, 2});
  const E x = Tensor<double>::borrowed(Shape{2}, memory, true);
  E total = x;
  accumulate(total, E(Tensor<double>(Shape{2}, {10, 20})));
  EXPECT_EQ(total.tensor(), Tensor<double>(Shape{2}, {11, 22}));
  EXPECT_EQ(memory[0], 1);
}

}  // namespace
}  // namespace fenestra

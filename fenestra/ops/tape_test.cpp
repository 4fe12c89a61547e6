// The tape with real operators on it: what it records, what it computes, what it releases, what it
// refuses.
#include <fenestra/base/memory.hpp>
#include <fenestra/engine/tape.hpp>
#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/pool/pool.hpp>
#include <fenestra/ops/reduce/reduce.hpp>
#include <fenestra/ops/rules.hpp>
#include <fenestra/spec/rational.hpp>

#include <gtest/gtest.h>

namespace fenestra {
namespace {

using T = Tensor<double>;

template <class F>
ErrorCode code_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("fix:"), std::string::npos) << error.what();
    return error.code();
  }
  return ErrorCode::none;
}

TEST(Tape, GradientsOfASmallNetworkAreExactInRationals) {
  // loss = mean(max_pool(relu(conv(x, w) + b))), small enough to do by hand: each of the two
  // windows of the one pooled cell picks the largest convolution output, and the mean is over one
  // element.
  Tape<Rational> tape;
  const Tensor<Rational> x(Shape{1, 1, 1, 3}, {1, 2, 3});
  const auto w =
      tape.parameter(Tensor<Rational>(Shape{1, 1, 1, 2}, {Rational(1, 2), Rational(1, 3)}));
  const auto b = tape.parameter(Tensor<Rational>(Shape{1}, {Rational(1, 7)}));
  const auto loss = mean(max_pool(relu(conv(x, w, b)), {.kernel = {1, 2}}));
  // conv outputs: 1/2 + 2/3 + 1/7, 1 + 1 + 1/7; the second wins.
  EXPECT_EQ(loss[0], Rational(15, 7));
  const auto grads = tape.backward(loss);
  EXPECT_EQ(grads[w], Tensor<Rational>(Shape{1, 1, 1, 2}, {2, 3}));
  EXPECT_EQ(grads[b], Tensor<Rational>(Shape{1}, {1}));
}

TEST(Tape, ConstantsRecordNothingAndRequiresGradPropagates) {
  Tape<double> tape;
  const auto c = tape.constant(T(Shape{2}, {1, 2}));
  const auto p = tape.parameter(T(Shape{2}, {3, 4}));
  EXPECT_EQ(tape.size(), 1);
  EXPECT_FALSE((c * c).requires_grad());
  EXPECT_EQ(tape.size(), 1);
  EXPECT_TRUE((c * p).requires_grad());
  EXPECT_EQ(tape.size(), 2);
}

TEST(Tape, ANoGradScopeRecordsNothing) {
  Tape<double> tape;
  const auto p = tape.parameter(T(Shape{2}, {3, 4}));
  {
    const NoGrad off;
    EXPECT_FALSE(relu(p * p).requires_grad());
  }
  EXPECT_EQ(tape.size(), 1);
  EXPECT_TRUE(relu(p).requires_grad());
}

TEST(Tape, SeveralSeedsGiveTheGradientOfTheirSum) {
  Tape<double> tape;
  const auto p = tape.parameter(T(Shape{2}, {3, 4}));
  const auto y = p * p;
  const auto z = exp(p);
  const std::vector<Seed<double>> seeds{{y, T(Shape{2}, {1, 10})}, {z, T(Shape{2}, {2, 0})}};
  const auto bar = tape.backward(std::span<const Seed<double>>(seeds))[p];
  EXPECT_EQ(bar[0], 6 + 2 * std::exp(3.0));
  EXPECT_EQ(bar[1], 80);
}

TEST(Tape, ARepeatedSweepNeedsRetain) {
  Tape<double> tape;
  const auto p = tape.parameter(T(Shape{1}, {3}));
  const auto y = p * p * p;
  EXPECT_EQ((tape.backward(y, {.retain = true})[p][0]), 27);
  EXPECT_EQ(tape.backward(y)[p][0], 27);
  EXPECT_EQ(code_of([&] { tape.backward(y); }), ErrorCode::released_graph);
}

TEST(Tape, WrtRestrictsTheSweepToASubgraph) {
  Tape<double> tape;
  const auto p = tape.parameter(T(Shape{1}, {3}));
  const auto q = tape.parameter(T(Shape{1}, {5}));
  const auto middle = p * q;
  const auto y = middle * middle * q;
  const auto grads = tape.backward(y, {.retain = true, .wrt = {middle}});
  EXPECT_EQ(grads[middle][0], 2 * 15 * 5);
  EXPECT_EQ(code_of([&] { grads[p]; }), ErrorCode::foreign_variable);
  EXPECT_EQ(tape.backward(y)[p][0], 2 * 15 * 5 * 5);
}

TEST(Tape, AnUnreachedParameterHasAZeroGradient) {
  Tape<double> tape;
  const auto p = tape.parameter(T(Shape{1}, {3}));
  const auto q = tape.parameter(T(Shape{2, 2}));
  EXPECT_EQ(tape.backward(p * p)[q], T(Shape{2, 2}));
}

TEST(Tape, ForeignStaleAndMisshapenArgumentsAreTypedErrors) {
  Tape<double> one;
  Tape<double> other;
  const auto p = one.parameter(T(Shape{2}));
  const auto q = other.parameter(T(Shape{2}));
  EXPECT_FALSE(one.owns(p + q));  // inputs of two tapes nest, the later one around the other
  EXPECT_EQ(code_of([&] { one.backward(p + q); }), ErrorCode::foreign_variable);
  EXPECT_EQ(code_of([&] { other.backward(p * p); }), ErrorCode::foreign_variable);
  EXPECT_EQ(code_of([&] { one.backward(one.constant(T(Shape{2}))); }), ErrorCode::foreign_variable);
  const auto y = p * p;
  EXPECT_EQ(code_of([&] {
              one.backward(Seed<double>{y, T(Shape{3})});
            }),
            ErrorCode::shape_mismatch);
  one.reset();
  EXPECT_EQ(code_of([&] { one.backward(y); }), ErrorCode::foreign_variable);
  EXPECT_EQ(code_of([&] { y* y; }), ErrorCode::foreign_variable);
}

TEST(Tape, NodesCarryTheNamesOfTheirOperators) {
  Tape<double> tape;
  const auto p = tape.parameter(T(Shape{1, 1, 4}), "filter");
  EXPECT_EQ(tape.name(p), "filter");
  EXPECT_EQ(tape.name(relu(p)), "relu");
  EXPECT_EQ(tape.name(conv(T(Shape{1, 1, 9}), p)), "conv");
}

TEST(Tape, OnlyWhatARuleNeedsIsSaved) {
  // A stack of convolutions with relu keeps, per layer, the input of the next convolution: relu's
  // rule reads its output, which is the same tensor, and conv's rule for w reads its input. So the
  // tape holds one activation per layer, not two, and the sweep needs two gradients beyond it.
  const Index layers = 6;
  const Shape shape{1, 4, 32, 32};
  const auto bytes = static_cast<std::size_t>(4 * 32 * 32) * sizeof(double);
  reset_peak_memory();
  const std::size_t before = memory_in_use();
  {
    Tape<double> tape;
    std::vector<Value<double>> weights;
    Value<double> x = tape.constant(T(shape, 0.5));
    for (Index i = 0; i < layers; ++i) {
      weights.push_back(tape.parameter(T(Shape{4, 4, 3, 3}, 0.01)));
      x = relu(conv(x, weights.back(), {.padding = 1}));
    }
    const auto loss = sum(x);
    // The constant input and one output per layer; weights and the scalar loss are below one
    // activation in all.
    EXPECT_LT(memory_in_use() - before, (static_cast<std::size_t>(layers) + 2) * bytes);
    tape.backward(loss);
  }
  EXPECT_LT(peak_memory() - before, (static_cast<std::size_t>(layers) + 5) * bytes);
  EXPECT_EQ(memory_in_use(), before);
}

}  // namespace
}  // namespace fenestra

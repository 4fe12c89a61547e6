// Functions that are composed of operators, and the transforms that go with them: shapes, variance,
// einsum, a sharpness per channel, pools of three axes, hessian, axes of vmap. Known answers;
// gradients by gradcheck and, where they are integers, as equalities.
#include <fenestra/fenestra.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace fenestra {
namespace {

using D = Tensor<double>;
using I = Tensor<Index>;
using V = Value<double>;

D counting(const Shape& shape) {
  D x(shape);
  for (Index i = 0; i < x.size(); ++i) {
    x.mutable_data()[i] = static_cast<double>(i + 1);
  }
  return x;
}

/// Irregular numbers of moderate size.
D waves(const Shape& shape, double phase = 0) {
  D x(shape);
  for (Index i = 0; i < x.size(); ++i) {
    x.mutable_data()[i] = std::sin(1.7 * static_cast<double>(i) + phase) + 0.1;
  }
  return x;
}

template <class Call>
Fault fault_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("fix: "), std::string::npos) << error.what();
    return error.fault();
  }
  return {};
}

template <class F, class... Args>
D compiled(const F& f, const Args&... args) {
  const auto program = compile<double>(f, args.shape()...);
  Context context(program);
  return program.run(context, args...)[0];
}

// --- Shapes ------------------------------

TEST(Functions, FlattenJoinsAxes) {
  const D x(Shape{2, 3, 4, 5});
  EXPECT_EQ(flatten(x).shape(), Shape{120});
  EXPECT_EQ(flatten(x, 1).shape(), (Shape{2, 60}));
  EXPECT_EQ(flatten(x, 1, 2).shape(), (Shape{2, 12, 5}));
  EXPECT_EQ(flatten(x, -2, -1).shape(), (Shape{2, 3, 20}));
  EXPECT_EQ(flatten(D(Shape{})).shape(), Shape{1});
  EXPECT_EQ(flatten(D(Shape{2, 0, 3}), 1).shape(), (Shape{2, 0}));
  EXPECT_EQ(fault_of([&] { flatten(x, 2, 1); }).code, ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([&] { flatten(x, 4); }).code, ErrorCode::rank_mismatch);
}

TEST(Functions, SqueezeAndUnsqueezeUndoEachOther) {
  const D x(Shape{1, 3, 1});
  EXPECT_EQ(squeeze(x).shape(), Shape{3});
  EXPECT_EQ(squeeze(x, {0}).shape(), (Shape{3, 1}));
  EXPECT_EQ(squeeze(x, {-1, 0}).shape(), Shape{3});
  EXPECT_EQ(unsqueeze(D(Shape{3}), 0).shape(), (Shape{1, 3}));
  EXPECT_EQ(unsqueeze(D(Shape{3}), -1).shape(), (Shape{3, 1}));
  EXPECT_EQ(unsqueeze(D(Shape{}), 0).shape(), Shape{1});
  EXPECT_EQ(fault_of([&] { squeeze(x, {1}); }).got, 3);
  EXPECT_EQ(fault_of([&] { unsqueeze(x, 4); }).code, ErrorCode::rank_mismatch);
}

TEST(Functions, StackAndSplitUndoEachOther) {
  const D a = counting(Shape{2, 3});
  const D b = waves(Shape{2, 3});
  for (const int axis : {0, 1, 2, -1}) {
    const D both = stack({a, b}, axis);
    const auto parts = split(both, 2, axis);
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_EQ(squeeze(parts[0], {axis}), a);
    EXPECT_EQ(squeeze(parts[1], {axis}), b);
  }
  EXPECT_EQ(stack({a, b}, -1).shape(), (Shape{2, 3, 2}));
  const auto parts = split(a, {1, 0, 2}, 1);
  EXPECT_EQ(parts[2], D(Shape{2, 2}, {2, 3, 5, 6}));
  EXPECT_EQ(parts[1].shape(), (Shape{2, 0}));
  EXPECT_EQ(fault_of([&] { stack({a, D(Shape{3, 2})}); }).code, ErrorCode::shape_mismatch);
  EXPECT_EQ(fault_of([&] { stack({a, b}, 3); }).code, ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([&] { split(a, 2, 1); }).code, ErrorCode::invalid_extent);
  EXPECT_EQ(fault_of([&] { split(a, 0); }).code, ErrorCode::invalid_extent);
  EXPECT_EQ(fault_of([&] { split(a, {4, -1}, 1); }).code, ErrorCode::invalid_extent);
}

TEST(Functions, PartsOfASplitReceiveTheirOwnGradients) {
  const auto f = [](const auto& x) {
    const auto parts = split(x, {1, 2});
    return sum(add(mul(sum(parts[0]), sum(parts[1])), sum(stack({parts[1], parts[1]}, 1))));
  };
  EXPECT_EQ(D(grad(f, D(Shape{3}, {2, 3, 4}))), D(Shape{3}, {7, 4, 4}));
}

// --- Variance ------------------------------

TEST(Functions, VarianceAndDeviationAreThoseOfTheFormula) {
  const D x(Shape{2, 3}, {1, 2, 3, 2, 2, 8});
  EXPECT_EQ(var_over(x, {.axes = {1}, .correction = 1}), D(Shape{2}, {1, 12}));
  EXPECT_EQ(var_over(x, {.axes = {0}, .keep = true}), D(Shape{1, 3}, {0.25, 0, 6.25}));
  EXPECT_EQ(std_over(x, {.axes = {0}}), D(Shape{3}, {0.5, 0, 2.5}));
  EXPECT_EQ(var_over(D(Shape{3}, 1e9 + 0.5)), D(Shape{}, 0.0));  // nothing cancels
  EXPECT_EQ(fault_of([&] { var_over(x, {.axes = {1}, .correction = 3}); }).code,
            ErrorCode::invalid_extent);
  EXPECT_EQ(fault_of([&] { var_over(x, {.correction = -1}); }).code, ErrorCode::invalid_option);
  // One more than this does not exist.
  EXPECT_EQ(fault_of([&] { var_over(x, {.correction = std::numeric_limits<Index>::max()}); }).code,
            ErrorCode::invalid_extent);
  const auto f = [](const auto& v) { return sum(std_over(v, {.axes = {1}, .correction = 1})); };
  EXPECT_TRUE(gradcheck(f, x).ok) << gradcheck(f, x).text();
  EXPECT_EQ(D(vmap([](const auto& v) { return var_over(v); }, over(x))),
            var_over(x, {.axes = {1}}));
  EXPECT_EQ(compiled([](const auto& v) { return std_over(v, {.axes = {0}}); }, x),
            std_over(x, {.axes = {0}}));
}

// --- Elementwise ------------------------------

TEST(Functions, OperatorsTakeValuesAndNumbersOnEitherSide) {
  using F = Tensor<float>;
  const F x(Shape{2}, {1, -4});
  const F y(Shape{2}, {2, 8});
  EXPECT_EQ(2.0F * x, F(Shape{2}, {2, -8}));
  EXPECT_EQ(x * 2, F(Shape{2}, {2, -8}));
  EXPECT_EQ(x + 1, F(Shape{2}, {2, -3}));
  EXPECT_EQ(0.5 + x, F(Shape{2}, {1.5F, -3.5F}));
  EXPECT_EQ(1 - x, F(Shape{2}, {0, 5}));
  EXPECT_EQ(x - 1, F(Shape{2}, {0, -5}));
  EXPECT_EQ(-x, F(Shape{2}, {-1, 4}));
  EXPECT_EQ(x / y, F(Shape{2}, {0.5F, -0.5F}));
  EXPECT_EQ(x / 4, F(Shape{2}, {0.25F, -1}));
  EXPECT_EQ(1 / x, F(Shape{2}, {1, -0.25F}));
  EXPECT_EQ(x + y - x * y, F(Shape{2}, {1, 36}));
}

TEST(Functions, OperatorsWithNumbersAreDifferentiatedBatchedAndCompiled) {
  // By x: -1 - 1/x^2 + 6 + 1/4, of numbers whose quotients are exact.
  const auto f = [](const V& x) { return (1 - x) + 1 / x + 2.0F * x * 3 - (-x) / 4 + 7; };
  const D x(Shape{3}, {1, -2, 0.5});
  const D value(Shape{3}, {14.25, -3, 12.625});
  EXPECT_EQ(f(x), value);
  EXPECT_EQ(vmap(f, over(x)), value);
  EXPECT_EQ(compiled(f, x), value);
  EXPECT_EQ(grad([&](const V& v) { return sum(f(v)); }, x), D(Shape{3}, {4.25, 5, 1.25}));
  EXPECT_EQ(jvp(f, primals(x), tangents(D(Shape{3}, 1.0))).second, D(Shape{3}, {4.25, 5, 1.25}));
}

TEST(Functions, ModAndFloorDivideFollowTheSignOfTheDivisor) {
  const D a(Shape{6}, {7, -7, 7, -7, 6, 5.5});
  const D b(Shape{6}, {3, 3, -3, -3, -3, 0.1});
  const D rest = mod(a, b);
  const D quotient = floor_divide(a, b);
  for (Index i = 0; i < 5; ++i) {
    EXPECT_EQ(quotient[i], std::floor(a[i] / b[i]));
    EXPECT_EQ(rest[i], a[i] - b[i] * std::floor(a[i] / b[i]));
  }
  EXPECT_TRUE(std::signbit(rest[4]));  // a zero has the sign of the divisor too
  EXPECT_GE(rest[5], 0);
  EXPECT_LT(rest[5], 0.1);  // although 5.5 / 0.1 rounds to 55
  EXPECT_EQ(quotient[5], 54);
  EXPECT_TRUE(std::isnan(mod(D(Shape{1}, 1.0), D(Shape{1}, 0.0))[0]));
  EXPECT_EQ((a % 3)[1], 2.0);
  Tape<double> tape;
  const auto va = tape.parameter(a);
  const auto vb = tape.parameter(b);
  const auto grads = tape.backward(add(mod(va, vb), floor_divide(va, vb)));
  EXPECT_EQ(grads[va], D(Shape{6}, 1.0));
  EXPECT_EQ(grads[vb], neg(quotient));
}

TEST(Functions, ComparisonsAreZerosAndOnesAndNanIsNeither) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const D a(Shape{4}, {1, 2, 3, nan});
  const D b(Shape{}, 2.0);
  EXPECT_EQ(less(a, b), D(Shape{4}, {1, 0, 0, 0}));
  EXPECT_EQ(less_equal(a, b), D(Shape{4}, {1, 1, 0, 0}));
  EXPECT_EQ(greater(a, b), D(Shape{4}, {0, 0, 1, 0}));
  EXPECT_EQ(greater_equal(a, b), D(Shape{4}, {0, 1, 1, 0}));
  EXPECT_EQ(equal(a, b), D(Shape{4}, {0, 1, 0, 0}));
  EXPECT_EQ(not_equal(a, b), D(Shape{4}, {1, 0, 1, 1}));
  const auto f = [&](const auto& x) { return sum(mul(x, greater(x, b))); };
  EXPECT_EQ(D(grad(f, D(Shape{2}, {1, 3}))), D(Shape{2}, {0, 1}));
}

TEST(Functions, RoundingGoesToTheEvenNeighbourAndKeepsLargeNumbers) {
  const D x(Shape{8}, {0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 1e300, -7.0});
  EXPECT_EQ(round(x), D(Shape{8}, {0, 2, 2, 0, -2, 0, 1e300, -7}));
  EXPECT_EQ(floor(x), D(Shape{8}, {0, 1, 2, -1, -2, 0, 1e300, -7}));
  EXPECT_EQ(ceil(x), D(Shape{8}, {1, 2, 3, 0, -1, 1, 1e300, -7}));
  EXPECT_EQ(D(grad([](const auto& v) { return sum(add(floor(v), round(v))); }, x)), D(Shape{8}));
}

TEST(Functions, EluAndErfKeepSmallNumbersAndDoNotOverflow) {
  const D x(Shape{3}, {-1e-20, 1000.0, -1000.0});
  EXPECT_EQ(elu(x, 2), D(Shape{3}, {-2e-20, 1000.0, -2.0}));
  EXPECT_EQ(D(grad([](const auto& v) { return sum(elu(v, 2)); }, x)), D(Shape{3}, {2.0, 1.0, 0.0}));
  EXPECT_EQ(erf(D(Shape{1}, 1e-300))[0], std::erf(1e-300));
}

TEST(Functions, SmoothFunctionsHaveTheirGradientsAndSecondDerivatives) {
  const D x = waves(Shape{5});
  const auto check = [&](const auto& f) {
    const auto report = gradcheck([&](const auto& v) { return sum(f(v)); }, x);
    EXPECT_TRUE(report.ok) << report.text();
    const auto slope = gradcheck(
        [&](const auto& v) { return sum(grad([&](const auto& u) { return sum(f(u)); }, v)); }, x);
    EXPECT_TRUE(slope.ok) << slope.text();
  };
  check([](const auto& v) { return sin(v); });
  check([](const auto& v) { return cos(v); });
  check([](const auto& v) { return erf(v); });
  check([](const auto& v) { return elu(v, 0.5); });
}

TEST(Functions, NoDerivativePassesAStop) {
  const auto f = [](const auto& x) { return sum(mul(x, stop_gradient(mul(x, x)))); };
  const D x(Shape{2}, {2, 3});
  EXPECT_EQ(D(grad(f, x)), D(Shape{2}, {4, 9}));
  EXPECT_EQ(D(jvp(f, primals(x), tangents(D(Shape{2}, 1.0))).second), D(Shape{}, 13.0));
  const auto program = compile<double>(f, x, CompileOptions{.vjp = true});
  Context context(program);
  const auto results = program.vjp(context, x, D(Shape{}, 1.0));
  EXPECT_EQ(results.back(), D(Shape{2}, {4, 9}));
}

// --- einsum ------------------------------

TEST(Functions, EinsumIsTheSumOfItsDefinition) {
  const D a = waves(Shape{2, 3, 4});
  const D b = waves(Shape{2, 5, 4}, 1);
  const D y = einsum("bij,bkj->bik", a, b);
  ASSERT_EQ(y.shape(), (Shape{2, 3, 5}));
  for (Index s = 0; s < 2; ++s) {
    for (Index i = 0; i < 3; ++i) {
      for (Index k = 0; k < 5; ++k) {
        double sum = 0;
        for (Index j = 0; j < 4; ++j) {
          sum += a[(s * 3 + i) * 4 + j] * b[(s * 5 + k) * 4 + j];
        }
        EXPECT_NEAR(y[(s * 3 + i) * 5 + k], sum, 16 * std::numeric_limits<double>::epsilon());
      }
    }
  }
}

TEST(Functions, EinsumSumsTransposesAndMultipliesOut) {
  const D a = counting(Shape{2, 3});
  EXPECT_EQ(einsum("ij->ji", a), transpose(a));
  EXPECT_EQ(einsum("ba", a), transpose(a));
  EXPECT_EQ(einsum("ij->", a), D(Shape{}, 21.0));
  EXPECT_EQ(einsum("ij -> j", a), D(Shape{3}, {5, 7, 9}));
  EXPECT_EQ(einsum("i,j->ji", D(Shape{2}, {1, 2}), D(Shape{2}, {3, 5})),
            D(Shape{2, 2}, {3, 6, 5, 10}));
  EXPECT_EQ(einsum("ij,ij->", a, a), D(Shape{}, 91.0));
  EXPECT_EQ(einsum("ij,k->", a, D(Shape{2}, {1, 2})), D(Shape{}, 63.0));
  EXPECT_EQ(einsum("ij,ij->ij", a, a), mul(a, a));
  EXPECT_EQ(einsum("ij,jk", a, transpose(a)), matmul(a, transpose(a)));
}

TEST(Functions, EinsumHasGradientsUnderBatchesAndInPrograms) {
  const auto f = [](const auto& a, const auto& b) { return sum(sin(einsum("ij,kj->ki", a, b))); };
  const D a = waves(Shape{2, 3});
  const D b = waves(Shape{4, 3}, 2);
  EXPECT_TRUE(gradcheck(f, a, b).ok);
  const auto product = [](const auto& p, const auto& q) { return einsum("ij,kj->ki", p, q); };
  EXPECT_EQ(compiled(product, a, b), product(a, b));
  const D stacked = waves(Shape{5, 2, 3});
  const D all = vmap([&](const auto& p) { return product(p, b); }, over(stacked));
  EXPECT_EQ(all.shape(), (Shape{5, 4, 2}));
  const D first = reshape(slice(stacked, 0, 0, 1), Shape{2, 3});
  const D alone = product(first, b);
  for (Index i = 0; i < alone.size(); ++i) {
    EXPECT_NEAR(all[i], alone[i], 16 * std::numeric_limits<double>::epsilon());
  }
}

TEST(Functions, EinsumRefusesWhatItDoesNotKnow) {
  const D a(Shape{2, 2});
  for (const char* text : {"ii->i", "i...->i", "i->i", "ij->k", "ij,jk->ik", "ij->ijj", "1j->j"}) {
    EXPECT_EQ(fault_of([&] { einsum(text, a); }).code, ErrorCode::shape_mismatch) << text;
  }
  EXPECT_EQ(fault_of([&] {
              einsum("ij,jk->ik", a, D(Shape{3, 2}));
            }).code,
            ErrorCode::shape_mismatch);
}

// --- A sharpness per channel ------------------------------

TEST(Functions, ASharpnessForEachChannelIsAPoolForEachChannel) {
  const D x = waves(Shape{2, 3, 4, 4});
  const D beta(Shape{3}, {0.5, -2.0, 8.0});
  for (const bool normalised : {false, true}) {
    const SmoothMaxPoolOptions options{
        .kernel = {2, 3}, .stride = 1, .padding = 1, .normalised = normalised};
    const D y = smooth_max_pool(x, beta, options);
    for (Index c = 0; c < 3; ++c) {
      SmoothMaxPoolOptions alone = options;
      alone.beta = beta[c];
      const D needed = smooth_max_pool(slice(x, 1, c, 1), alone);
      const D got = slice(y, 1, c, 1);
      for (Index i = 0; i < needed.size(); ++i) {
        // A few roundings of exponents below 16 and a logarithm, divided by the sharpness.
        EXPECT_NEAR(got[i], needed[i], 200 * std::numeric_limits<double>::epsilon());
      }
    }
  }
  const auto f = [](const auto& p, const auto& b) {
    return sum(smooth_max_pool(p, b, {.kernel = {2, 2}}));
  };
  const auto report = gradcheck(f, x, beta);
  EXPECT_TRUE(report.ok) << report.text();
  SmoothMaxPoolOptions last{.kernel = {2, 2}, .layout = Layout::channels_last};
  const D transposed = transpose(x, {0, 2, 3, 1});
  EXPECT_EQ(smooth_max_pool(transposed, beta, last),
            transpose(smooth_max_pool(x, beta, {.kernel = {2, 2}}), {0, 2, 3, 1}));
  EXPECT_EQ(fault_of([&] {
              smooth_max_pool(x, D(Shape{2}, 1.0), {.kernel = {2, 2}});
            }).code,
            ErrorCode::shape_mismatch);
  EXPECT_NE(fault_of([&] {
              smooth_max_pool(x, D(Shape{3}, 0.0), {.kernel = {2, 2}});
            }).code,
            ErrorCode::none);
}

// --- Pools of three axes ------------------------------

/// What `call` is refused with.
template <class Call>
std::string words_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::rank_mismatch) << error.what();
    EXPECT_EQ(error.argument(), "x") << error.what();
    return error.what();
  }
  return "accepted";
}

TEST(Functions, APoolOfThreeAxesAndOneSizeHasTwoReadings) {
  const D x = waves(Shape{3, 4, 6});
  const std::string readings =
      "the input (3, 4, 6) is a batch with one spatial axis, (N, C, L), "
      "or one sample with two, (C, H, W)\n  fix: ";
  const auto expect_refused = [&](const std::string& op, const std::string& fix, const auto& call) {
    EXPECT_EQ(words_of([&] { call(x); }), op + ": " + readings + fix);
    EXPECT_EQ(words_of([&] { call(V(x)); }), op + ": " + readings + fix);
    EXPECT_EQ(words_of([&] {
                vmap(call, over(waves(Shape{2, 3, 4, 6})));
              }),
              op + ": " + readings + fix);
    EXPECT_EQ(words_of([&] { compiled(call, x); }), op + ": " + readings + fix);
  };
  const auto names = [](const std::string& op) { return op + "1d or " + op + "2d, or "; };
  const std::string kernel = ".kernel = {2} or {2, 2}";
  const std::string bins = ".output_size = {2} or {2, 2}";
  expect_refused("max_pool", names("max_pool") + kernel, [](const auto& v) {
    return max_pool(v, {.kernel = 2});
  });
  expect_refused("avg_pool", names("avg_pool") + kernel, [](const auto& v) {
    return avg_pool(v, {.kernel = 2});
  });
  expect_refused("lp_pool", names("lp_pool") + kernel, [](const auto& v) {
    return lp_pool(v, {.kernel = 2});
  });
  expect_refused("smooth_max_pool", names("smooth_max_pool") + kernel, [](const auto& v) {
    return smooth_max_pool(v, {.kernel = 2});
  });
  expect_refused("smooth_max_pool", kernel, [](const auto& v) {
    return smooth_max_pool(v, D(Shape{}, 2.0), {.kernel = 2});
  });
  expect_refused("max_pool_with_indices", kernel, [](const auto& v) {
    return max_pool_with_indices(v, {.kernel = 2}).y;
  });
  expect_refused("adaptive_max_pool", names("adaptive_max_pool") + bins, [](const auto& v) {
    return adaptive_max_pool(v, {.output_size = 2});
  });
  expect_refused("adaptive_avg_pool", names("adaptive_avg_pool") + bins, [](const auto& v) {
    return adaptive_avg_pool(v, {.output_size = 2});
  });
  expect_refused("adaptive_max_pool_with_indices", bins, [](const auto& v) {
    return adaptive_max_pool_with_indices(v, {.output_size = 2}).y;
  });
  EXPECT_EQ(words_of([&] { max_unpool(x, I(x.shape()), {.kernel = 2}); }),
            "max_unpool: " + readings + names("max_unpool") + kernel);
  const MaxPoolOptions last{.kernel = 2, .layout = Layout::channels_last};
  EXPECT_NE(
      words_of([&] { max_pool(x, last); }).find("(N, L, C), or one sample with two, (H, W, C)"),
      std::string::npos);
}

TEST(Functions, APoolOfThreeAxesIsSaidByNameOrByAList) {
  const D x = waves(Shape{3, 4, 6});
  EXPECT_EQ(max_pool1d(x, {.kernel = 2}), max_pool(x, {.kernel = {2}}));
  EXPECT_EQ(max_pool2d(x, {.kernel = 2}), max_pool(x, {.kernel = {2, 2}}));
  EXPECT_EQ(max_pool1d(x, {.kernel = 2}).shape(), (Shape{3, 4, 3}));
  EXPECT_EQ(max_pool2d(x, {.kernel = 2}).shape(), (Shape{3, 2, 3}));
  EXPECT_EQ(adaptive_avg_pool(x, {.output_size = {1, 1}}).shape(), (Shape{3, 1, 1}));
  EXPECT_EQ(max_pool(waves(Shape{1, 3, 4, 6}), {.kernel = 2}).shape(), (Shape{1, 3, 2, 3}));
}

// --- Transforms ------------------------------

TEST(Functions, TheHessianOfACubeIsDiagonal) {
  const D x(Shape{2}, {1, 2});
  const auto f = [](const auto& v) { return sum(mul(v, mul(v, v))); };
  EXPECT_EQ(hessian(f, x), D(Shape{2, 2}, {6, 0, 0, 12}));
}

TEST(Functions, ItemsMayLieAlongAnyAxis) {
  const D x = counting(Shape{2, 3});
  const auto f = [](const auto& v) { return mul(v, v); };
  EXPECT_EQ(D(vmap(f, over(x, 1))), transpose(mul(x, x)));
  EXPECT_EQ(D(vmap(f, OutAxis{1}, over(x, 1))), mul(x, x));
  EXPECT_EQ(D(vmap(f, OutAxis{-1}, over(x))), transpose(mul(x, x)));
  const I labels(Shape{1, 2}, {0, 2});
  const D chosen =
      vmap([](const auto& v, const auto& i) { return take(v, i, 0); }, over(x), over(labels, 1));
  EXPECT_EQ(chosen, D(Shape{2, 1}, {1, 6}));
  EXPECT_EQ(fault_of([&] { vmap(f, over(x, 2)); }).code, ErrorCode::rank_mismatch);
  EXPECT_EQ(fault_of([&] { vmap(f, OutAxis{2}, over(x)); }).code, ErrorCode::rank_mismatch);
}

}  // namespace
}  // namespace fenestra

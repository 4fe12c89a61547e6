// Value<T>: callables of every kind, levels that cannot be confused, batches, traces, and what is
// refused because it would lose a derivative.
#include <fenestra/fenestra.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace fenestra {

Value<double> compiled_elsewhere(const Value<double>& x);  // elsewhere_test.cpp

namespace {

using D = Tensor<double>;
using V = Value<double>;
using Function = std::function<V(const V&)>;

V scalar(double value) { return D(Shape{}, value); }

/// The derivative of f at x along one, by forward mode.
V slope(const Function& f, const V& x) { return jvp(f, primals(x), tangents(ones_like(x))).second; }

/// What a refusal says; empty where there was none. All name a fix.
template <class F>
std::string foreign(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::foreign_variable) << error.what();
    EXPECT_NE(std::string(error.what()).find("fix: "), std::string::npos) << error.what();
    return error.what();
  }
  return {};
}

bool says(const std::string& message, std::string_view words) {
  return message.find(words) != std::string::npos;
}

// --- Callables ------------------------------

const D kKernel(Shape{1, 1, 2}, {0.75, -1.25});

constexpr auto kGeneric = [](const auto& x) { return sum(scale(tanh(conv(x, kKernel)), 2)); };

V function(const V& x) { return sum(scale(tanh(conv(x, kKernel)), 2)); }

/// All transforms of f have the bits of those of the generic callable.
template <class F>
void expect_as_generic(const F& f) {
  const D x(Shape{1, 1, 4}, {0.5, -1, 2, 0.25});
  const D x_dot(Shape{1, 1, 4}, {1, 0.5, -2, 1});
  const D xs(Shape{3, 1, 1, 4}, {0.5, -1, 2, 0.25, 1, 1, 0, -0.5, -2, 0.75, 0.5, 1});
  EXPECT_EQ(grad(f, x), grad(kGeneric, x));
  EXPECT_EQ(jvp(f, primals(x), tangents(x_dot)), jvp(kGeneric, primals(x), tangents(x_dot)));
  EXPECT_EQ(hvp(f, primals(x), tangents(x_dot)), hvp(kGeneric, primals(x), tangents(x_dot)));
  EXPECT_EQ(vmap(f, over(xs)), vmap(kGeneric, over(xs)));
  EXPECT_EQ(vmap(grad(f), over(xs)), vmap(grad(kGeneric), over(xs)));
  const CompileOptions options{.vjp = true};
  const Program<double> program = compile<double>(f, x.shape(), options);
  const Program<double> generic = compile<double>(kGeneric, x.shape(), options);
  Context<double> context(program);
  Context<double> generic_context(generic);
  const D one(Shape{}, 1.0);
  EXPECT_EQ(program.run(context, x)[0], kGeneric(x));
  EXPECT_EQ(program.vjp(context, x, one), generic.vjp(generic_context, x, one));
}

TEST(Value, ALambdaThatIsNotGenericIsAsGoodAsOneThatIs) {
  expect_as_generic([](const V& x) { return sum(scale(tanh(conv(x, kKernel)), 2)); });
  expect_as_generic([](V x) -> V { return kGeneric(x); });
}

TEST(Value, AFunctionOfAnotherSourceIsAsGoodAsOneThatIsSeen) {
  expect_as_generic(compiled_elsewhere);
}

TEST(Value, FunctionsAndPointersToThemAreCallables) {
  expect_as_generic(function);
  expect_as_generic(&function);
}

TEST(Value, LayersAreAListOfFunctions) {
  std::vector<std::function<V(const V&)>> layers;
  layers.emplace_back([](const V& x) { return conv(x, kKernel); });
  layers.emplace_back([](const V& x) { return tanh(x); });
  layers.emplace_back([](const V& x) { return scale(x, 2); });
  layers.emplace_back([](const auto& x) { return sum(x); });
  expect_as_generic([&](const V& x) {
    V y = x;
    for (const auto& layer : layers) {
      y = layer(y);
    }
    return y;
  });
}

struct Layer {
  Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  virtual ~Layer() = default;
  virtual V operator()(const V& x) const = 0;
};
struct Convolution final : Layer {
  explicit Convolution(D w) : weight(std::move(w)) {}
  V operator()(const V& x) const override { return conv(x, weight); }
  D weight;
};
struct TwiceTanh final : Layer {
  V operator()(const V& x) const override { return scale(tanh(x), 2); }
};

TEST(Value, LayersAreVirtualCalls) {
  std::vector<std::unique_ptr<Layer>> layers;
  layers.push_back(std::make_unique<Convolution>(kKernel));
  layers.push_back(std::make_unique<TwiceTanh>());
  expect_as_generic([&](const V& x) {
    V y = x;
    for (const auto& layer : layers) {
      y = (*layer)(y);
    }
    return sum(y);
  });
}

TEST(Value, ATransformAnswersInTheTypeItIsAskedIn) {
  const D x(Shape{2}, {1, 2});
  const auto square = [](const V& v) { return sum(mul(v, v)); };
  static_assert(std::is_same_v<decltype(grad(square, x)), D>);
  static_assert(std::is_same_v<decltype(grad(square, V(x))), V>);
  static_assert(std::is_same_v<decltype(value_and_grad(square, x)), std::pair<D, D>>);
  static_assert(std::is_same_v<decltype(vjp(square, V(x)).first), V>);
  static_assert(std::is_same_v<decltype(jvp(square, primals(x), tangents(x))), std::pair<D, D>>);
  static_assert(std::is_same_v<decltype(jvp(square, primals(V(x)), tangents(x))), std::pair<V, V>>);
  static_assert(std::is_same_v<decltype(vmap(square, over(x))), D>);
  static_assert(std::is_same_v<decltype(vmap(square, over(V(x)))), V>);
  EXPECT_EQ(grad(square, V(x)).level(), 0u);
  EXPECT_EQ(grad(square, V(x)).tensor(), grad(square, x));
  EXPECT_EQ(grad(square, x), D(Shape{2}, {2, 4}));
}

TEST(Value, TheGradientsOfAConvolutionAreThoseOfATapeByHand) {
  const D x(Shape{1, 1, 4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1});
  const D w(Shape{1, 1, 2, 2}, {1, -2, 3, 0.5});
  const auto f = [&](const V& weight) { return sum(exp(scale(conv(x, weight), 0.125))); };
  Tape<double> tape;
  const V weight = tape.parameter(w);
  EXPECT_EQ(tape.backward(f(weight))[weight].tensor(), grad(f, w));
}

// --- Levels ------------------------------

TEST(Value, LevelsAreNeverUsedTwice) {
  const Level first = new_level();
  EXPECT_GT(new_level(), first);
  EXPECT_EQ(scalar(1).level(), 0u);
  Tape<double> inner;
  Tape<double> outer;
  EXPECT_GT(outer.parameter(scalar(1)).level(), inner.parameter(scalar(1)).level());
}

// x^3: every mixture of the two modes gives 6x as the second derivative.
TEST(Value, BothModesNestInBothOrders) {
  const Function cube = [](const V& x) { return mul(x, mul(x, x)); };
  const V at = scalar(5);
  const auto reverse = [&](const V& x) { return grad(cube, x); };
  const auto forward = [&](const V& x) { return slope(cube, x); };
  EXPECT_EQ(grad(reverse, at)[0], 30);
  EXPECT_EQ(grad(forward, at)[0], 30);
  EXPECT_EQ(slope(reverse, at)[0], 30);
  EXPECT_EQ(slope(forward, at)[0], 30);
  const auto second = [&](const V& x) { return grad(forward, x); };
  EXPECT_EQ(grad(second, at)[0], 6);
  EXPECT_EQ(slope(second, at)[0], 6);
}

// d/dx (x * d/dy (x + y)) = 1; a confusion of levels gives 2.
TEST(Value, PerturbationsOfDifferentLevelsAreNotConfused) {
  const V one = scalar(1);
  const auto forward = [&](const V& x) {
    return mul(x, slope([&](const V& y) { return add(x, y); }, one));
  };
  EXPECT_EQ(slope(forward, one)[0], 1) << "forward over forward";
  EXPECT_EQ(grad(forward, one)[0], 1) << "reverse over forward";
  const auto reverse = [&](const V& x) {
    return mul(x, grad([&](const V& y) { return add(x, y); }, one));
  };
  EXPECT_EQ(slope(reverse, one)[0], 1) << "forward over reverse";
  EXPECT_EQ(grad(reverse, one)[0], 1) << "reverse over reverse";
}

// d/dx (x * d/dy (x * y)) = 2x: the inner derivative is x itself, and moves with it.
TEST(Value, AnInnerDerivativeKeepsItsDependenceOnTheOuterVariable) {
  const V three = scalar(3);
  const auto forward = [&](const V& x) {
    return mul(x, slope([&](const V& y) { return mul(x, y); }, scalar(7)));
  };
  const auto reverse = [&](const V& x) {
    return mul(x, grad([&](const V& y) { return mul(x, y); }, scalar(7)));
  };
  EXPECT_EQ(slope(forward, three)[0], 6);
  EXPECT_EQ(grad(forward, three)[0], 6);
  EXPECT_EQ(slope(reverse, three)[0], 6);
  EXPECT_EQ(grad(reverse, three)[0], 6);
}

TEST(Value, AnInnerTransformOfAnOuterVariableIsAConstantThere) {
  const auto f = [&](const V& x) {
    return mul(x, grad([&](const V&) { return mul(x, x); }, scalar(2)));
  };
  EXPECT_EQ(grad(f, scalar(3))[0], 0);
}

TEST(Value, ANestedVariableBelongsToTheLaterTape) {
  Tape<double> inner;
  Tape<double> outer;
  const V x = inner.parameter(scalar(3));
  const V xx = outer.parameter(x);
  const V y = mul(x, xx);
  EXPECT_TRUE(outer.owns(y));
  EXPECT_FALSE(inner.owns(y));
  EXPECT_TRUE(inner.owns(outer.around(y)));
  EXPECT_EQ(inner.around(outer.around(y)).level(), 0u);
  EXPECT_EQ(y.tensor(), D(Shape{}, 9.0));
  const V by_xx = outer.backward(y)[xx];  // x
  EXPECT_EQ(inner.backward(by_xx)[x][0], 1);
}

TEST(Value, ATapeRefusesParametersOfLaterTransforms) {
  Tape<double> tape;
  const std::string message = foreign([&] {
    slope(
        [&](const V& x) {
          const V p = tape.parameter(x);
          return tape.backward(mul(p, p))[p];
        },
        scalar(1));
  });
  EXPECT_TRUE(says(message, "make the tape inside")) << message;
}

// --- Batches and traces ------------------------------

TEST(Value, ABatchOfGradientsIsTheGradientOfEachItem) {
  const D xs(Shape{3, 1, 4}, {1, 2, 3, 4, 2, 0, 1, 5, -1, 3, 2, 2});
  const D w(Shape{1, 1, 2}, {1, -2});
  const auto loss = [](const V& weight, const V& x) {
    const V y = max_pool(conv(x, weight), {.kernel = {3}});
    return sum(mul(y, y));
  };
  const D needed = per_sample_grad(loss, w, over(xs));
  const Level level = new_level();
  const V items(level, V::Batch::stacked(xs));
  const V bars = grad([&](const V& weight) { return loss(weight, items); }, V(w));
  ASSERT_EQ(bars.level(), level);
  EXPECT_EQ(bars.as<V::Batch>()->value().tensor(), needed);
}

TEST(Value, NestedVmapsDoNotShareTheirItems) {
  const D a(Shape{2}, {2, 3});
  const D b(Shape{3}, {1, 10, 100});
  const auto row = [&](const V& x) {
    return vmap([&](const V& y) { return mul(x, y); }, over(V(b)));
  };
  EXPECT_EQ(vmap(row, over(a)), D(Shape{2, 3}, {2, 20, 200, 3, 30, 300}));
  // A gradient between them: d/dx of the sum of a row is the sum of b, for every item.
  const auto by_x = [&](const V& x) { return grad([&](const V& at) { return sum(row(at)); }, x); };
  EXPECT_EQ(vmap(by_x, over(a)), D(Shape{2}, {111, 111}));
}

TEST(Value, ATracedGradientRunsAsAProgramWithTheSameBits) {
  const D x(Shape{2, 1, 5}, {1, 2, 3, 4, 2, 0, 1, 5, -1, 3});
  const D w(Shape{1, 1, 2}, {1, -2});
  const auto bar_of = [](const V& at, const V& weight) {
    return grad(
        [&](const V& v) {
          const V y = max_pool(exp(conv(at, v)), {.kernel = {2}});
          return sum(mul(y, y));
        },
        weight);
  };
  const auto traced = [&](const V& at, const V& weight) {
    EXPECT_FALSE(has_elements(weight));
    return bar_of(at, weight);
  };
  const Program<double> program = compile<double>(traced, x.shape(), w.shape());
  Context<double> context(program);
  EXPECT_EQ(program.run(context, x, w)[0], bar_of(x, w).tensor());
  const D twice = x.map([](double v) { return 2 * v; });
  EXPECT_EQ(program.run(context, twice, w)[0], bar_of(twice, w).tensor());
}

TEST(Value, AHandleOfAGraphIsANodeOnItsLevel) {
  graph::Builder<double> builder;
  const Level level = new_level();
  const V x(level, builder.input(Shape{2}, "x"));
  const V y = grad([&](const V& v) { return sum(mul(v, mul(v, v))); }, x);
  ASSERT_EQ(y.level(), level);
  builder.output(*y.as<V::Traced>(), "y");
  const Program<double> program(builder.graph());
  Context<double> context(program);
  EXPECT_EQ(program.run(context, D(Shape{2}, {1, 2}))[0], D(Shape{2}, {3, 12}));
}

// --- What would lose a derivative ------------------------------

TEST(Value, AVariableAroundATraceIsRefused) {
  const auto f = [](const V& outer) {
    const auto program = compile<double>([&](const V& x) { return mul(x, outer); }, Shape{});
    Context<double> context(program);
    return V(program.run(context, D(Shape{}, 3.0))[0]);
  };
  EXPECT_EQ(f(scalar(2))[0], 6);
  EXPECT_TRUE(says(foreign([&] { grad(f, scalar(2)); }), "as an argument"));
  EXPECT_TRUE(says(foreign([&] { slope(f, scalar(2)); }), "as an argument"));
  const auto returned = [](const V& outer) {
    compile<double>([&](const V&) { return outer; }, Shape{});
    return outer;
  };
  EXPECT_TRUE(says(foreign([&] { grad(returned, scalar(2)); }), "as an argument"));
}

TEST(Value, AVariableIsNoTensor) {
  Tape<double> tape;
  const V p = tape.parameter(D(Shape{2}, {1, 2}));
  EXPECT_TRUE(says(foreign([&] { const D lost = p; }), ".tensor()"));
  EXPECT_EQ(p.tensor(), D(Shape{2}, {1, 2}));  // says that this is meant
  EXPECT_EQ(p[1], 2);
  const D plain = V(D(Shape{2}, {3, 4}));
  EXPECT_EQ(plain, D(Shape{2}, {3, 4}));
  const auto lossy = [](const V& x) {
    const D lost = x;
    return V(lost);
  };
  EXPECT_TRUE(says(foreign([&] { slope(lossy, scalar(1)); }), ".tensor()"));
  EXPECT_TRUE(says(foreign([&] { grad(lossy, scalar(1)); }), ".tensor()"));
}

TEST(Value, BatchesAndNodesHaveNoNumbers) {
  const auto look = [](const V& x) { return V(x.tensor()); };
  const D xs(Shape{2}, {1, 2});
  EXPECT_TRUE(says(foreign([&] { vmap(look, over(xs)); }), "vmap"));
  EXPECT_TRUE(says(foreign([&] { compile<double>(look, Shape{2}); }), "traced"));
  // Below a variable there may be a batch.
  EXPECT_TRUE(says(foreign([&] { vmap(grad(look), over(xs)); }), "vmap"));
}

TEST(Value, TensorsAreNoArgumentsWhereTheResultDependsOnAnOuterValue) {
  const D one(Shape{}, 1.0);
  const std::string_view fix = "fix: give the arguments as Value";
  const auto product = [](const V& x) { return [&x](const V& y) { return mul(x, y); }; };
  EXPECT_TRUE(
      says(foreign([&] { grad([&](const V& x) { return V(grad(product(x), one)); }, one); }), fix));
  EXPECT_TRUE(says(
      foreign([&] { grad([&](const V& x) { return V(vjp(product(x), one).first); }, one); }), fix));
  const auto along = [&](const V& x) {
    return V(jvp(product(x), primals(one), tangents(one)).second);
  };
  EXPECT_TRUE(says(foreign([&] { grad(along, one); }), fix));
  const auto items = [&](const V& x) { return V(sum(vmap(product(x), over(D(Shape{2}, 1.0))))); };
  EXPECT_TRUE(says(foreign([&] { grad(items, one); }), fix));
  // The fix.
  EXPECT_EQ(grad([&](const V& x) { return mul(x, grad(product(x), V(one))); }, one)[0], 2);
  const auto all = [&](const V& x) { return sum(vmap(product(x), over(V(D(Shape{2}, {4, 5}))))); };
  EXPECT_EQ(grad(all, one)[0], 9);
}

// --- Options ------------------------------

TEST(Wrt, DifferentiatesByTheNamedArgumentsOnly) {
  const D x(Shape{2}, {1, 2});
  const D y(Shape{2}, {3, 5});
  const D z(Shape{2}, {7, 11});
  const auto f = [](const auto& a, const auto& b, const auto& c) { return sum(a * b * b * c); };
  const auto all = grad(f, x, y, z);
  const auto [by_x, by_z] = grad(f, Wrt<0, 2>{}, x, y, z);
  EXPECT_EQ(by_x, std::get<0>(all));
  EXPECT_EQ(by_z, std::get<2>(all));
  static_assert(std::is_same_v<decltype(grad(f, Wrt<1>{}, x, y, z)), D>);
  EXPECT_EQ(grad(f, Wrt<1>{}, x, y, z), std::get<1>(all));
  const auto [value, bars] = value_and_grad(f, Wrt<2, 1>{}, x, y, z);
  EXPECT_EQ(value, f(x, y, z));
  EXPECT_EQ(bars, std::tuple(std::get<2>(all), std::get<1>(all)));  // in the order of the places
  EXPECT_EQ(value_and_grad(f)(Wrt<0>{}, x, y, z).second, by_x);
}

TEST(Wrt, OtherArgumentsAreWhatTheyAre) {
  const D logits(Shape{1, 2}, {0.0, 0.0});
  const Tensor<Index> label(Shape{1}, Index{1});
  const auto f = [](const V& v, const Tensor<Index>& labels, double weight) {
    return scale(cross_entropy(v, labels), weight);
  };
  EXPECT_EQ(grad(f, Wrt<0>{}, logits, label, 2.0), D(Shape{1, 2}, {1.0, -1.0}));
  const auto by_x = [](const V& x, const V& y) { return sum(mul(x, y)); };
  EXPECT_EQ(grad(by_x, Wrt<0>{}, logits, D(Shape{1, 2}, {3, 4})), D(Shape{1, 2}, {3, 4}));
}

TEST(Wrt, ConstantsMayBelongToTransformsAround) {
  const auto f = [](const V& x, const V& y) { return mul(mul(x, x), y); };
  // d/dy d/dx of x^2 y = 2x
  const auto by_x = [&](const V& y) { return grad(f, Wrt<0>{}, scalar(3), y); };
  EXPECT_EQ(grad(by_x, scalar(5))[0], 6);
  EXPECT_EQ(slope(by_x, scalar(5))[0], 6);
}

TEST(Wrt, JacobiansAreThoseOfTheNamedArguments) {
  const D x(Shape{2}, {1, 2});
  const D y(Shape{2}, {3, 5});
  const auto f = [](const V& a, double factor, const V& b) { return scale(mul(a, b), factor); };
  const D by_x(Shape{2, 2}, {6, 0, 0, 10});
  const D by_y(Shape{2, 2}, {2, 0, 0, 4});
  static_assert(std::is_same_v<decltype(jacrev(f, Wrt<2>{}, x, 2.0, y)), D>);
  EXPECT_EQ(jacrev(f, Wrt<2>{}, x, 2.0, y), by_y);
  EXPECT_EQ(jacfwd(f, Wrt<2>{}, x, 2.0, y), by_y);
  // In the order of the places.
  EXPECT_EQ(jacrev(f, Wrt<2, 0>{}, x, 2.0, y), std::tuple(by_y, by_x));
  EXPECT_EQ(jacfwd(f, Wrt<0, 2>{}, x, 2.0, y), std::tuple(by_x, by_y));
}

TEST(Wrt, HessiansAreThoseOfTheNamedArgumentsAndOfTheirPairs) {
  const D x(Shape{2}, {1, 2});
  const D y(Shape{}, 3.0);
  // The sum of x^3 y^2: 6 x y^2 by x twice, 6 x^2 y by both, 2 sum(x^3) by y twice.
  const auto f = [](const V& a, const V& b) { return sum(mul(mul(a, mul(a, a)), mul(b, b))); };
  const D by_x(Shape{2, 2}, {54, 0, 0, 108});
  const D by_both(Shape{2}, {18, 72});
  const D by_y(Shape{}, 18.0);
  static_assert(std::is_same_v<decltype(hessian(f, Wrt<1>{}, x, y)), D>);
  EXPECT_EQ(hessian(f, Wrt<1>{}, x, y), by_y);
  EXPECT_EQ(hessian(f, Wrt<0>{}, x, y), hessian([&](const V& a) { return f(a, y); }, x));
  const auto all = hessian(f, Wrt<0, 1>{}, x, y);
  EXPECT_EQ(all, std::tuple(std::tuple(by_x, by_both), std::tuple(by_both, by_y)));
}

TEST(Wrt, GradientsOfEverySampleAreThoseOfTheNamedParameters) {
  const D xs(Shape{2, 2}, {1, 2, 3, 4});
  const D w(Shape{2}, {1, 10});
  const std::vector<D> more{D(Shape{}, 2.0)};
  const auto f = [](const V& x, const V& a, const auto& b) { return sum(mul(mul(x, a), b[0])); };
  static_assert(std::is_same_v<decltype(per_sample_grad(f, Wrt<1>{}, over(xs), w, more)), D>);
  EXPECT_EQ(per_sample_grad(f, Wrt<1>{}, over(xs), w, more), D(Shape{2, 2}, {2, 4, 6, 8}));
  const auto [by_more, by_w] = per_sample_grad(f, Wrt<2, 1>{}, over(xs), w, more);
  static_assert(std::is_same_v<decltype(by_more), const std::vector<D>>);
  EXPECT_EQ(by_w, D(Shape{2, 2}, {2, 4, 6, 8}));
  EXPECT_EQ(by_more, (std::vector<D>{D(Shape{2}, {21, 43})}));
  // The others may be the same for all samples.
  const D one(Shape{2}, {1, 2});
  EXPECT_EQ(
      per_sample_grad([](const V& a, const V& x, const V& k) { return sum(mul(mul(a, x), k)); },
                      Wrt<0>{},
                      w,
                      over(xs),
                      one),
      D(Shape{2, 2}, {1, 4, 3, 8}));
}

TEST(HasAux, HandsOnWhatIsReturnedBesideTheLoss) {
  const D w(Shape{2}, {1, 2});
  const auto f = [](const V& v) {
    const V scores = mul(v, v);
    return std::pair(sum(scores), scores);
  };
  const auto [found, bar] = value_and_grad(f, has_aux, w);
  static_assert(std::is_same_v<decltype(found), const std::pair<D, D>>);
  EXPECT_EQ(found.first, D(Shape{}, 5.0));
  EXPECT_EQ(found.second, D(Shape{2}, {1, 4}));
  EXPECT_EQ(bar, D(Shape{2}, {2, 4}));
  EXPECT_EQ(grad(f, has_aux, w), bar);
  // As values they are differentiable around it: of |v|^2 + sum of the scores, 4 v.
  const auto outer = [&](const V& v) {
    const auto [inner, inner_bar] = value_and_grad(f, has_aux, v);
    return add(inner.first, sum(inner.second));
  };
  EXPECT_EQ(grad(outer, w), D(Shape{2}, {4, 8}));
}

TEST(HasAux, MayBeATreeOrNoValueAtAll) {
  const D w(Shape{2}, {1, 2});
  const auto tree = [](const V& v) {
    return std::pair(sum(v), std::tuple(scale(v, 2), std::string("kept")));
  };
  const auto found = value_and_grad(tree, has_aux, w).first;
  EXPECT_EQ(std::get<0>(found.second), D(Shape{2}, {2, 4}));
  EXPECT_EQ(std::get<1>(found.second), "kept");
  const auto count = [](const V& v) { return std::pair(sum(v), v.shape()[0]); };
  EXPECT_EQ(value_and_grad(count, has_aux, w).first.second, 2);
}

TEST(HasAux, GoesWithWrt) {
  const D x(Shape{2}, {1, 2});
  const D w(Shape{2}, {3, 5});
  const auto f = [](const V& a, const V& b) {
    const V y = mul(a, b);
    return std::pair(sum(y), y);
  };
  const auto [found, bar] = value_and_grad(f, has_aux, Wrt<1>{}, x, w);
  EXPECT_EQ(found.second, D(Shape{2}, {3, 10}));
  EXPECT_EQ(bar, x);
  EXPECT_EQ(grad(f, has_aux, Wrt<0>{}, x, w), w);
}

TEST(Value, NothingIsWrittenIntoBorrowedMemory) {
  const std::shared_ptr<double[]> memory(new double[2]{1, 2});
  const V x = D::borrowed(Shape{2}, memory, true);
  V total = x;
  accumulate(total, V(D(Shape{2}, {10, 20})));
  EXPECT_EQ(total.tensor(), D(Shape{2}, {11, 22}));
  EXPECT_EQ(memory[0], 1);
}

}  // namespace
}  // namespace fenestra

// Trees of values: flatten and unflatten undo each other, for every kind of node, values may change
// their type, and transforms take them.
#include <fenestra/fenestra.hpp>

#include <gtest/gtest.h>

#include <any>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace fenestra {
namespace {

using D = Tensor<double>;
using V = Value<double>;

D scalar(double value) { return D(Shape{}, value); }

template <class V>
struct Layer {
  V w;
  V b;
  int stride = 1;  ///< not a value: carried along
  static constexpr auto fields = std::tuple{&Layer::w, &Layer::b, &Layer::stride};
};

template <class V>
struct Net {
  Layer<V> first;
  std::vector<Layer<V>> more;
  V scale;
  static constexpr auto fields = std::tuple{&Net::first, &Net::more, &Net::scale};
};

template <class T>
struct Plain {  // of a scalar, so values of another type need a rebind, which it does not offer
  Tensor<T> w;
  static constexpr auto fields = std::tuple{&Plain::w};
};

template <class V, int n>
struct Sized {
  std::array<V, n> w;
  template <class W>
  using rebind = Sized<W, n>;
  static constexpr auto fields = std::tuple{&Sized::w};
};

Net<D> example() {
  return {{scalar(1), scalar(2), 7},
          {{scalar(3), scalar(4), 8}, {scalar(5), scalar(6), 9}},
          scalar(10)};
}

TEST(Tree, FlattenListsTheValuesOfAStructInTheOrderOfItsFields) {
  const std::vector<D> values = tree_flatten(example());
  ASSERT_EQ(values.size(), 7u);
  const double expected[] = {1, 2, 3, 4, 5, 6, 10};
  for (std::size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(values[i][0], expected[i]);
  }
}

TEST(Tree, UnflattenUndoesFlattenAndCarriesAlongWhatIsNoValue) {
  const Net<D> net = example();
  const Net<D> again = tree_unflatten(net, tree_flatten(net));
  EXPECT_EQ(tree_flatten(again), tree_flatten(net));
  EXPECT_EQ(again.first.stride, 7);
  ASSERT_EQ(again.more.size(), 2u);
  EXPECT_EQ(again.more[1].stride, 9);
}

TEST(Tree, UnflattenRebindsAStructToVariables) {
  Tape<double> tape;
  std::vector<V> variables;
  for (const D& value : tree_flatten(example())) {
    variables.push_back(tape.parameter(value));
  }
  const Net<V> net = tree_unflatten(example(), variables);
  const auto y = mul(net.scale, add(net.more[0].w, net.first.b));
  const auto grads = tape.backward(y);
  EXPECT_EQ(grads[net.scale][0], 5);
  EXPECT_EQ(grads[net.first.b][0], 10);
  EXPECT_EQ(grads[net.first.w][0], 0);
}

TEST(Tree, TuplesPairsArraysAndSingleValuesAreTrees) {
  const auto tree = std::tuple{
      scalar(1), std::pair{scalar(2), std::array{scalar(3), scalar(4)}}, std::string("kept")};
  const auto doubled = tree_map([](const D& v) { return scale(v, 2); }, tree);
  static_assert(std::is_same_v<decltype(doubled), const std::remove_const_t<decltype(tree)>>);
  EXPECT_EQ(std::get<1>(doubled).second[1][0], 8);
  EXPECT_EQ(std::get<2>(doubled), "kept");
  EXPECT_EQ(tree_flatten(scalar(3)).size(), 1u);
  EXPECT_EQ(tree_unflatten(scalar(0), std::vector{scalar(5)})[0], 5);
}

TEST(Tree, MapTakesValuesInEqualPlacesOfSeveralTrees) {
  const Net<D> sum =
      tree_map([](const D& a, const D& b) { return add(a, b); }, example(), example());
  EXPECT_EQ(sum.more[1].b[0], 12);
}

TEST(Tree, MapMayChangeTheTypeOfTheValues) {
  const Level level = new_level();
  const auto jets = tree_map([&](const D& v) { return V(level, V::Jet(v, V(v))); }, example());
  static_assert(std::is_same_v<decltype(jets), const Net<V>>);
  EXPECT_EQ(jets.scale.on<V::Jet>(level).tangent_or_zeros()[0], 10);
  const Net<D> back = tree_map([](const V& v) { return v.tensor(); }, jets);
  EXPECT_EQ(tree_flatten(back), tree_flatten(example()));
}

TEST(Tree, AStructWithItsOwnRebindFollowsIt) {
  const Sized<D, 2> tree{{scalar(1), scalar(2)}};
  const auto values = tree_map([](const D& v) { return V(v); }, tree);
  static_assert(std::is_same_v<decltype(values), const Sized<V, 2>>);
  EXPECT_EQ(values.w[1][0], 2);
}

TEST(Tree, AStructOfOneValueTypeKeepsIt) {
  const Plain<double> tree{scalar(3)};
  EXPECT_EQ(tree_map([](const D& v) { return scale(v, 2); }, tree).w[0], 6);
}

TEST(Tree, ForEachTensorChangesATreeThatIsNotConst) {
  Net<D> net = example();
  for_each_tensor(net, [](D& v) { v = scalar(-1); });
  EXPECT_EQ(net.more[0].b[0], -1);
  EXPECT_EQ(tree_size(net), 7);
}

TEST(Tree, WhatHoldsNoValueIsNoTree) {
  struct Numbers {
    int count;
    std::vector<double> list;
  };
  struct Empty {};
  static_assert(!Tree<int> && !Tree<std::vector<int>> && !Tree<std::tuple<>>);
  static_assert(!Tree<Numbers> && !Tree<Empty> && !Tree<std::map<int, int>> &&
                !Tree<std::optional<int>> && !Tree<ConvOptions>);
  static_assert(Tree<std::vector<D>> && Tree<Net<V>> && std::is_same_v<TreeValue<Net<V>>, V>);
}

// --- Aggregates, maps and optionals ------------------------------

/// Nothing but members: no list of them, no template.
struct Convolution {
  V w;
  std::optional<V> b = {};
  ConvOptions options = {};
  std::string name = "convolution";

  V operator()(const V& x) const { return b ? conv(x, w, *b, options) : conv(x, w, options); }
};
struct Model {
  std::vector<Convolution> layers;
  std::map<std::string, V> scales;
  std::function<V(const V&)> activation;
  int calls = 0;

  V operator()(const V& x) const {
    V y = x;
    for (const Convolution& layer : layers) {
      y = activation(layer(y));
    }
    return mul(scales.at("inner"), add(sum(y), scales.at("outer")));
  }
};

Model model() {
  return {
      .layers = {{.w = D(Shape{1, 1, 2}, {1, 2}), .b = D(Shape{1}, 3.0), .options = {.padding = 1}},
                 {.w = D(Shape{1, 1, 2}, {-1, 1})}},
      .scales = {{"outer", scalar(5)}, {"inner", scalar(7)}},
      .activation = [](const V& x) { return relu(x); },
      .calls = 4};
}

TEST(Tree, AnAggregateNeedsNoListOfItsMembers) {
  static_assert(Tree<Model> && std::is_same_v<TreeValue<Model>, V>);
  const Model net = model();
  std::vector<Shape> shapes;
  for_each_tensor(net, [&](const V& value) { shapes.push_back(value.shape()); });
  // Maps are in the order of their keys, an absent value is none.
  EXPECT_EQ(shapes,
            (std::vector<Shape>{Shape{1, 1, 2}, Shape{1}, Shape{1, 1, 2}, Shape{}, Shape{}}));
  const Model doubled = tree_map([](const V& v) { return scale(v, 2); }, net);
  EXPECT_EQ(doubled.scales.at("inner")[0], 14);
  EXPECT_EQ((*doubled.layers[0].b)[0], 6);
  EXPECT_FALSE(doubled.layers[1].b.has_value());
  EXPECT_EQ(doubled.layers[0].options.padding, net.layers[0].options.padding);
  EXPECT_EQ(doubled.layers[1].name, "convolution");
  EXPECT_EQ(doubled.calls, 4);
  EXPECT_EQ(doubled.activation(scalar(-1))[0], 0);
}

TEST(Tree, TransformsTakeAModelOfValues) {
  const V x = D(Shape{1, 1, 2}, {1, 2});
  // The first layer gives (5, 8, 5), the second (3, 0), all of it through relu.
  const auto f = [&](const Model& m) { return m(x); };
  EXPECT_EQ(f(model())[0], 7 * (3 + 5));
  const Model bars = grad(f, model());
  EXPECT_EQ(bars.scales.at("inner")[0], 8);
  EXPECT_EQ(bars.scales.at("outer")[0], 7);
  EXPECT_EQ(bars.layers[1].w.tensor(), D(Shape{1, 1, 2}, {7 * 5, 7 * 8}));
  EXPECT_EQ(bars.layers[0].w.tensor(), D(Shape{1, 1, 2}, {7 * 1, 7 * 1}));
  EXPECT_EQ((*bars.layers[0].b)[0], 0);
  EXPECT_FALSE(bars.layers[1].b.has_value());
  // Along the gradient the slope is its square.
  const V slope = jvp(f, primals(model()), tangents(bars)).second;
  EXPECT_EQ(slope[0], 8 * 8 + 7 * 7 + 35 * 35 + 56 * 56 + 7 * 7 + 7 * 7);
  const Program<double> program = compile<double>(f, model());
  Context<double> context(program);
  const std::vector<V> values = tree_flatten(model());
  std::vector<D> tensors;
  std::vector<RunArgument> arguments;
  for (const V& value : values) {
    tensors.push_back(value);
  }
  arguments.assign(tensors.begin(), tensors.end());
  std::vector<D> results{D(Shape{})};
  program.run(context, arguments, results);
  EXPECT_EQ(results[0], f(model()).tensor());
}

/// Of any value type, for tensors that are stored and values that are computed with.
template <class W>
struct Pair {
  W w;
  std::array<W, 2> b;
};

TEST(Tree, AnAggregateOfTheValueTypeIsRebound) {
  const Pair<D> pair{scalar(3), {scalar(5), scalar(7)}};
  const auto f = [](const auto& p) { return mul(p.w, mul(p.b[0], p.b[1])); };
  const auto bars = grad(f, pair);
  static_assert(std::is_same_v<decltype(bars), const Pair<D>>);
  EXPECT_EQ(bars.w[0], 35);
  EXPECT_EQ(bars.b[0][0], 21);
  EXPECT_EQ(bars.b[1][0], 15);
  EXPECT_EQ(grad([](const Pair<V>& p) { return mul(p.w, p.b[1]); }, pair).b[1][0], 3);
  const auto stacked = per_sample_grad(
      [&](const auto& p, const auto& x) { return mul(x, f(p)); }, pair, over(D(Shape{2}, {1, 10})));
  EXPECT_EQ(stacked.w, D(Shape{2}, {35, 350}));
}

TEST(Tree, MapsAndOptionalsAreTrees) {
  using Named = std::map<std::string, D>;
  const Named named{{"w", scalar(3)}, {"b", scalar(5)}};
  const auto f = [](const auto& n) { return mul(n.at("w"), mul(n.at("w"), n.at("b"))); };
  const Named bars = grad(f, named);
  EXPECT_EQ(bars, (Named{{"w", scalar(30)}, {"b", scalar(9)}}));
  const auto square = [](const auto& v) { return v ? mul(*v, *v) : V(scalar(1)); };
  const std::optional<D> bar = grad(square, std::optional<D>(scalar(4)));
  EXPECT_EQ(bar, scalar(8));
  EXPECT_EQ(grad(square, std::optional<D>()), std::nullopt);
  EXPECT_EQ(tree_size(std::map<int, std::optional<D>>{{1, scalar(1)}, {2, std::nullopt}}), 1);
}

/// What a base, a C array or a first member that takes anything might be mistaken for.
struct Nested {
  std::any anything;
  Pair<V> first;
  std::pair<V, V> second;
  int number;
  Pair<V> last;
};

TEST(Tree, StructsInStructsAreNeitherBasesNorArrays) {
  Nested nested{7,
                {scalar(1), {scalar(2), scalar(3)}},
                {scalar(4), scalar(5)},
                8,
                {scalar(6), {scalar(7), scalar(8)}}};
  EXPECT_EQ(tree_size(nested), 8);
  const Nested bars = grad([](const Nested& n) { return mul(n.second.first, n.last.w); }, nested);
  EXPECT_EQ(std::any_cast<int>(bars.anything), 7);
  EXPECT_EQ(bars.second.first[0], 6);
  EXPECT_EQ(bars.last.w[0], 4);
  EXPECT_EQ(bars.number, 8);
}

/// As many members as are counted.
struct Wide {
  V a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x;
};

TEST(Tree, AnAggregateHasUpToTwentyFourMembers) {
  Wide wide;
  int count = 0;
  for_each_tensor(wide, [&](V& value) { value = scalar(++count); });
  EXPECT_EQ(count, 24);
  EXPECT_EQ(wide.a[0], 1);
  EXPECT_EQ(wide.x[0], 24);
  const Wide bars = grad([](const Wide& all) { return mul(all.x, all.l); }, wide);
  EXPECT_EQ(bars.l[0], 24);
  EXPECT_EQ(bars.x[0], 12);
  EXPECT_EQ(bars.w[0], 0);
}

TEST(Tree, AWrongNumberOfValuesIsRefused) {
  const auto code_of = [](auto&& f) {
    try {
      f();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::none;
  };
  EXPECT_EQ(code_of([] { tree_unflatten(example(), std::vector{scalar(1)}); }),
            ErrorCode::shape_mismatch);
  const std::vector<D> one{scalar(1)};
  const std::vector<D> two{scalar(1), scalar(2)};
  EXPECT_EQ(code_of([&] { tree_map([](const D& a, const D&) { return a; }, one, two); }),
            ErrorCode::shape_mismatch);
}

}  // namespace
}  // namespace fenestra

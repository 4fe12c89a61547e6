// Trees of values: flatten and unflatten undo each other, for every kind of node, and values may
// change their type.
#include <fenestra/ops/reduce/reduce.hpp>
#include <fenestra/ops/tree.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace fenestra {
namespace {

using D = Tensor<double>;

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
  std::vector<Var<D>> variables;
  for (const D& value : tree_flatten(example())) {
    variables.push_back(tape.parameter(value));
  }
  const Net<Var<D>> net = tree_unflatten(example(), variables);
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
  const auto jets = tree_map([](const D& v) { return Jet<D>(v, v); }, example());
  static_assert(std::is_same_v<decltype(jets), const Net<Jet<D>>>);
  EXPECT_EQ(jets.scale.tangent_or_zeros()[0], 10);
}

TEST(Tree, AStructWithItsOwnRebindFollowsIt) {
  const Sized<D, 2> tree{{scalar(1), scalar(2)}};
  const auto variables = tree_map([](const D& v) { return Var<D>(v); }, tree);
  static_assert(std::is_same_v<decltype(variables), const Sized<Var<D>, 2>>);
  EXPECT_EQ(variables.w[1].value()[0], 2);
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
  static_assert(!Tree<int> && !Tree<std::vector<int>> && !Tree<std::tuple<>>);
  static_assert(Tree<std::vector<D>> && Tree<Net<Var<D>>> &&
                std::is_same_v<TreeValue<Net<Jet<D>>>, Jet<D>>);
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

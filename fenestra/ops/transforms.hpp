// Functional transforms: derivatives of callables, nestable in any order.
//
//   auto [y, pullback] = vjp(f, x, w, b);                       auto [y, y_dot] = jvp(f, primals(x,
//   w), tangents(x_dot, w_dot)); auto w_bar = grad(f, w);                                    auto
//   [loss, bars] = value_and_grad(f, x, w); auto j = jacrev(f, x);  auto j = jacfwd(f, x); auto hv
//   = hvp(f, primals(w), tangents(v));
//
// A callable takes values, or trees of values (tuples, vectors, structs with `fields`, see
// tree.hpp), and must be generic in the value type: a transform calls it with variables or jets
// over its arguments. Each transform works on a level of its own, so nesting cannot confuse levels.
// With one argument, gradients are a tree like it; with several, a tuple.
#pragma once

#include <fenestra/ops/apply.hpp>
#include <fenestra/ops/concat/concat.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/reduce/reduce.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/ops/tree.hpp>

#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace fenestra {

/// A concept, so that overloads which ask for more are preferred.
template <class... Args>
concept SomeArguments = sizeof...(Args) > 0;

namespace detail {

/// The value type in which a call with these trees runs.
template <class... Trees>
using CallValue = CommonValue<TreeValue<Trees>...>;

/// A tuple of trees: the same trees with every value replaced in order.
template <class W, class... Trees>
auto rebuild(const std::tuple<Trees...>& like, const std::vector<W>& leaves) {
  return tree_unflatten(like, leaves);
}

/// One tree alone, several as a tuple.
template <class Tuple>
auto unwrap_single(Tuple&& trees) {
  if constexpr (std::tuple_size_v<std::decay_t<Tuple>> == 1) {
    return std::get<0>(std::forward<Tuple>(trees));
  } else {
    return std::forward<Tuple>(trees);
  }
}

template <Value V>
void require_single_element(std::string_view transform, const V& y) {
  if (y.shape().elements() == 1) {
    return;
  }
  throw Error(std::string(transform),
              {.code = ErrorCode::shape_mismatch, .argument = Argument::y},
              std::string(transform) + ": the function returned " + to_string(y.shape()) +
                  ", needed a single element\n  fix: sum or mean of it, or vjp with a seed");
}

/// The function's arguments as variables of a new tape.
template <class... Args>
struct TapeCall {
  using V = CallValue<Args...>;
  std::shared_ptr<BasicTape<V>> tape = std::make_shared<BasicTape<V>>();
  std::tuple<Args...> like;
  std::vector<Var<V>> leaves;

  explicit TapeCall(const Args&... args) : like(args...) {
    for (const auto& leaf : tree_flatten(like)) {
      leaves.push_back(tape->parameter(V(leaf)));
    }
  }
  template <class F>
  auto operator()(const F& f) const {
    return std::apply(f, rebuild(like, leaves));
  }
  /// The gradients of all arguments, from seeds for all values of the result.
  template <class Result>
  auto pull(const Result& result, const std::vector<V>& bars, bool retain) const {
    std::vector<Seed<V>> seeds;
    const std::vector<Var<V>> outputs = tree_flatten(result);
    if (outputs.size() != bars.size()) {
      throw Error(ErrorCode::shape_mismatch,
                  "pullback: " + std::to_string(bars.size()) + " cotangents for " +
                      std::to_string(outputs.size()) +
                      " results\n  fix: one for each value of the result");
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].requires_grad()) {
        seeds.push_back({outputs[i], bars[i]});
      }
    }
    std::vector<V> grads;
    if (seeds.empty()) {
      for (const Var<V>& leaf : leaves) {
        grads.push_back(zeros_like(leaf.value()));
      }
    } else {
      const auto found = tape->backward(std::span<const Seed<V>>(seeds), {.retain = retain});
      for (const Var<V>& leaf : leaves) {
        grads.push_back(found[leaf]);
      }
    }
    return unwrap_single(rebuild(like, grads));
  }
};

template <class V>
std::vector<V> values_of(const std::vector<Var<V>>& variables) {
  std::vector<V> values;
  for (const Var<V>& variable : variables) {
    values.push_back(variable.value());
  }
  return values;
}

}  // namespace detail

/// y = f(args...) and the function that pulls a cotangent of y back to the arguments. The pullback
/// may be called often.
template <class F, class... Args>
auto vjp(const F& f, const Args&... args) {
  auto call = std::make_shared<detail::TapeCall<Args...>>(args...);
  auto result = (*call)(f);
  auto y = tree_unflatten(result, detail::values_of(tree_flatten(result)));
  auto pullback = [call, result](const decltype(y)& y_bar) {
    return call->pull(result, tree_flatten(y_bar), true);
  };
  return std::pair(std::move(y), std::move(pullback));
}

/// f(args...), which must be a single element, and its gradients.
template <class F, class... Args>
  requires SomeArguments<Args...>
auto value_and_grad(const F& f, const Args&... args) {
  const detail::TapeCall<Args...> call(args...);
  const auto result = call(f);
  detail::require_single_element("value_and_grad", result);
  auto grads = call.pull(result, {ones_like(result.value())}, false);
  return std::pair(result.value(), std::move(grads));
}

/// The gradients of f at args.
template <class F, class... Args>
  requires SomeArguments<Args...>
auto grad(const F& f, const Args&... args) {
  return value_and_grad(f, args...).second;
}

/// The gradient as a function.
template <class F>
auto grad(F f) {
  return [f = std::move(f)](const auto&... args) { return grad(f, args...); };
}
template <class F>
auto value_and_grad(F f) {
  return [f = std::move(f)](const auto&... args) { return value_and_grad(f, args...); };
}

/// The arguments of a function, and the direction in which they move, for jvp and hvp.
template <class... Trees>
struct Primals {
  std::tuple<Trees...> trees;
};
template <class... Trees>
struct Tangents {
  std::tuple<Trees...> trees;
};
template <class... Trees>
Primals<Trees...> primals(const Trees&... trees) {
  return {std::tuple<Trees...>(trees...)};
}
template <class... Trees>
Tangents<Trees...> tangents(const Trees&... trees) {
  return {std::tuple<Trees...>(trees...)};
}

/// f at the primals, and its derivative along the tangents.
template <class F, class... Ps, class... Ts>
  requires(sizeof...(Ps) == sizeof...(Ts))
auto jvp(const F& f, const Primals<Ps...>& at, const Tangents<Ts...>& along) {
  using V = detail::CallValue<Ps..., Ts...>;
  const auto points = tree_flatten(at.trees);
  const auto directions = tree_flatten(along.trees);
  if (points.size() != directions.size()) {
    throw Error(ErrorCode::shape_mismatch,
                "jvp: " + std::to_string(points.size()) + " primals, " +
                    std::to_string(directions.size()) +
                    " tangents\n  fix: one tangent for each primal");
  }
  std::vector<Jet<V>> jets;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].shape() != directions[i].shape()) {
      throw Error(ErrorCode::shape_mismatch,
                  "jvp: primal " + to_string(points[i].shape()) + ", tangent " +
                      to_string(directions[i].shape()) + "\n  fix: equal shapes");
    }
    jets.emplace_back(V(points[i]), V(directions[i]));
  }
  const auto result = std::apply(f, detail::rebuild(at.trees, jets));
  std::vector<V> y;
  std::vector<V> y_dot;
  for (const Jet<V>& jet : tree_flatten(result)) {
    y.push_back(jet.primal());
    y_dot.push_back(jet.tangent_or_zeros());
  }
  return std::pair(tree_unflatten(result, y), tree_unflatten(result, y_dot));
}

/// The Hessian of f at the primals times the tangents: forward over reverse, one tape and one jet.
template <class F, class... Ps, class... Ts>
auto hvp(const F& f, const Primals<Ps...>& at, const Tangents<Ts...>& along) {
  return jvp([&f](const auto&... args) { return grad(f, args...); }, at, along).second;
}

namespace detail {

/// The i-th unit tensor of x's shape, as a constant on the level of V.
template <Value V>
V unit(const Shape& shape, Index i) {
  Tensor<ScalarOf<V>> e(shape);
  e.mutable_data()[i] = ScalarOf<V>(1);
  return V(e);
}

inline Shape joined_shape(const Shape& a, const Shape& b) {
  Shape shape = a;
  for (const Index extent : b) {
    shape.push_back(extent);
  }
  return shape;
}

}  // namespace detail

/// The Jacobian of f at x, shape y.shape() + x.shape(), one pullback for each element of y.
template <class F, Value V>
V jacrev(const F& f, const V& x) {
  const auto [y, pullback] = vjp(f, x);
  const Index rows = y.shape().elements().value_or(0);
  const Index columns = x.shape().elements().value_or(0);
  const Shape shape = detail::joined_shape(y.shape(), x.shape());
  if (rows == 0 || columns == 0) {
    return V(Tensor<ScalarOf<V>>(shape));
  }
  std::vector<V> parts;
  for (Index i = 0; i < rows; ++i) {
    parts.push_back(reshape(pullback(detail::unit<V>(y.shape(), i)), Shape{1, columns}));
  }
  return reshape(concat(parts, 0), shape);
}

/// The Jacobian of f at x, shape y.shape() + x.shape(), one tangent for each element of x.
template <class F, Value V>
V jacfwd(const F& f, const V& x) {
  const Index columns = x.shape().elements().value_or(0);
  const Shape y_shape = f(x).shape();
  const Index rows = y_shape.elements().value_or(0);
  const Shape shape = detail::joined_shape(y_shape, x.shape());
  if (rows == 0 || columns == 0) {
    return V(Tensor<ScalarOf<V>>(shape));
  }
  std::vector<V> parts;
  for (Index i = 0; i < columns; ++i) {
    const auto tangent = jvp(f, primals(x), tangents(detail::unit<V>(x.shape(), i))).second;
    parts.push_back(reshape(tangent, Shape{rows, 1}));
  }
  return reshape(concat(parts, 1), shape);
}

/// f(args...) recorded as one node: the forward pass keeps the arguments only, the backward pass
/// runs f again. Trades time for memory in deep networks.
template <class F, Value V>
Var<V> checkpoint(const F& f, const std::vector<Var<V>>& args) {
  const auto run = [&f](const std::vector<Var<V>>& values) {
    return std::invoke(f, std::span<const Var<V>>(values));
  };
  std::vector<Var<V>> constants;
  for (const Var<V>& arg : args) {
    constants.push_back(Var<V>(arg.value()));
  }
  V y = run(constants).value();
  std::vector<V> inputs = detail::values_of(args);
  auto rule = [f, inputs](const V& y_bar,
                          const std::vector<bool>& needed,
                          std::vector<std::optional<V>>& bars) {
    BasicTape<V> tape;
    std::vector<Var<V>> again;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      again.push_back(needed[i] ? tape.parameter(inputs[i]) : tape.constant(inputs[i]));
    }
    const Var<V> result = std::invoke(f, std::span<const Var<V>>(again));
    if (!result.requires_grad()) {
      return;
    }
    const auto grads = tape.backward(Seed<V>{result, y_bar});
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (needed[i]) {
        bars[i] = grads[again[i]];
      }
    }
  };
  return record<V>("checkpoint", std::move(y), std::span<const Var<V>>(args), std::move(rule));
}

}  // namespace fenestra

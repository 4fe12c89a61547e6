// Functional transforms: derivatives of callables, nestable in any order.
//
//   auto [y, pullback] = vjp(f, x, w, b);
//   auto [y, y_dot] = jvp(f, primals(x, w), tangents(x_dot, w_dot));
//   auto w_bar = grad(f, w);
//   auto [loss, bars] = value_and_grad(f, x, w);
//   auto hv = hvp(f, primals(w), tangents(v));
//   auto h = hessian(f, w);
//
// A callable takes values, or trees of values (tuples, vectors, structs, see tree.hpp): an ordinary
// function of Value<T>, or a generic one. Each transform works on a level of its own, so nesting
// cannot confuse levels. A transform answers in the type it is asked in: tensors for tensors,
// values for values. With one argument, gradients are a tree like it; with several, a tuple.
//
// Options say which arguments are differentiated, and whether the callable of a gradient returns
// more than its result: `grad(f, Wrt<0, 2>{}, x, y, z)`, `jacrev(f, Wrt<1>{}, x, y)`,
// `value_and_grad(f, has_aux, w)`.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/tape.hpp>
#include <fenestra/engine/tree.hpp>

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace fenestra {

/// A concept, so that overloads which ask for more are preferred.
template <class... Args>
concept SomeArguments = sizeof...(Args) > 0;

namespace detail {

/// The value type in which a call with these trees is made and answered: tensors where all are.
template <class... Trees>
using CallValue = CommonValue<TreeValue<Trees>...>;

/// The values of a tree, on whatever level they are.
template <class T, Tree Tr>
std::vector<Value<T>> values_of(const Tr& tree) {
  std::vector<Value<T>> values;
  for_each_tensor(tree, [&](const auto& value) { values.push_back(Value<T>(value)); });
  return values;
}

/// Values as tensors, where nothing is lost by it.
template <class T>
FENESTRA_API std::vector<Tensor<T>> plain_answers(std::string_view transform,
                                                  const std::vector<Value<T>>& values);

/// Values as what the caller asked in.
template <class Asked, class T>
std::vector<Asked> answers(std::string_view transform, const std::vector<Value<T>>& values) {
  if constexpr (std::is_same_v<Asked, Tensor<T>>) {
    return plain_answers(transform, values);
  } else {
    return std::vector<Asked>(values.begin(), values.end());
  }
}

/// A tree of values as what the caller asked in; a tree that holds one type only stays as it is.
template <class Asked, Tree Tr, class T>
auto answer(std::string_view transform, const Tr& like, const std::vector<Value<T>>& values) {
  if constexpr (CanRebind<Tr, Asked>) {
    return tree_unflatten(like, answers<Asked>(transform, values));
  } else {
    return tree_unflatten(like, values);
  }
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

FENESTRA_API void require_single_element(std::string_view transform, const Shape& y);

/// The function's arguments as variables of a new tape.
template <class... Args>
struct TapeCall {
  static_assert((RequireTree<Args>::value && ...));
  using Asked = CallValue<Args...>;
  using T = ScalarOf<Asked>;
  Tape<T> tape;
  std::tuple<Args...> like;
  std::vector<Value<T>> leaves;

  explicit TapeCall(const Args&... args) : like(args...) {
    for (const Value<T>& leaf : values_of<T>(like)) {
      leaves.push_back(tape.parameter(leaf));
    }
  }
  template <class F>
  auto operator()(const F& f) const {
    return std::apply(f, tree_unflatten(like, leaves));
  }
  /// A result as the caller sees it: what its variables are around the tape.
  template <class Result>
  auto value(std::string_view transform, const Result& result) const {
    std::vector<Value<T>> values;
    for (const Value<T>& output : values_of<T>(result)) {
      values.push_back(tape.around(output));
    }
    return answer<Asked>(transform, result, values);
  }
  /// The gradients of all arguments, from seeds for all values of the result.
  auto pull(std::string_view transform,
            const std::vector<Value<T>>& outputs,
            const std::vector<Value<T>>& bars,
            bool retain) {
    const std::vector<Value<T>> grads = pull_back(tape, leaves, outputs, bars, retain);
    return unwrap_single(tree_unflatten(like, answers<Asked>(transform, grads)));
  }
};

}  // namespace detail

/// y = f(args...) and the function that pulls a cotangent of y back to the arguments. The pullback
/// may be called often.
template <class F, class... Args>
auto vjp(const F& f, const Args&... args) {
  using Call = detail::TapeCall<Args...>;
  auto call = std::make_shared<Call>(args...);
  const auto result = (*call)(f);
  auto y = call->value("vjp", result);
  auto pullback =
      [call, outputs = detail::values_of<typename Call::T>(result)](const decltype(y)& y_bar) {
        return call->pull("vjp", outputs, detail::values_of<typename Call::T>(y_bar), true);
      };
  return std::pair(std::move(y), std::move(pullback));
}

/// f(args...), which must be a single element, and its gradients.
template <class F, class... Args>
  requires SomeArguments<Args...>
auto value_and_grad(const F& f, const Args&... args) {
  using Call = detail::TapeCall<Args...>;
  Call call(args...);
  const Value<typename Call::T> result = call(f);
  detail::require_single_element("value_and_grad", result.shape());
  auto grads = call.pull("value_and_grad", {result}, {ones_like(call.tape.around(result))}, false);
  return std::pair(call.value("value_and_grad", result), std::move(grads));
}

/// Which arguments are differentiated, by their places; the others are constants.
template <int... places>
struct Wrt {};

/// Says that f returns a pair: what is differentiated, and something beside it (scores, statistics)
/// that is handed on.
struct HasAux {};
inline constexpr HasAux has_aux;

namespace detail {

template <std::size_t arguments, int... places>
struct RequirePlaces {
  static_assert(sizeof...(places) > 0 && ((places >= 0 && places < int{arguments}) && ...),
                "fenestra: Wrt names places of arguments, counted from 0");
  static constexpr bool value = true;
};

/// f with only the chosen arguments left open.
template <int... places, class F, class... Args>
auto with_chosen(const F& f, const Args&... args) {
  return [&f, all = std::tuple<const Args&...>(args...)](const auto&... chosen) {
    const auto argument =
        [&]<std::size_t i>(std::integral_constant<std::size_t, i>) -> const auto& {
      constexpr std::size_t at = [] {
        constexpr int list[] = {places...};
        std::size_t found = sizeof...(places);
        for (std::size_t k = 0; k < sizeof...(places); ++k) {
          found = static_cast<std::size_t>(list[k]) == i ? k : found;
        }
        return found;
      }();
      if constexpr (at < sizeof...(places)) {
        return std::get<at>(std::tie(chosen...));
      } else {
        return std::get<i>(all);
      }
    };
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return std::invoke(f, argument(std::integral_constant<std::size_t, i>{})...);
    }(std::index_sequence_for<Args...>{});
  };
}

}  // namespace detail

/// By the arguments at `places` only.
template <class F, int... places, class... Args>
auto value_and_grad(const F& f, Wrt<places...>, const Args&... args) {
  static_assert(detail::RequirePlaces<sizeof...(Args), places...>::value);
  const std::tuple<const Args&...> all(args...);
  return value_and_grad(detail::with_chosen<places...>(f, args...), std::get<places>(all)...);
}

/// ((value, aux), gradients) of f(args...) = (value, aux).
template <class F, class... Args>
auto value_and_grad(const F& f, HasAux, const Args&... args) {
  using Call = detail::TapeCall<Args...>;
  Call call(args...);
  const auto both = call(f);
  const Value<typename Call::T> result = both.first;
  detail::require_single_element("value_and_grad", result.shape());
  auto grads = call.pull("value_and_grad", {result}, {ones_like(call.tape.around(result))}, false);
  const auto beside = [&] {
    if constexpr (Tree<std::remove_cvref_t<decltype(both.second)>>) {
      return call.value("value_and_grad", both.second);
    } else {
      return both.second;
    }
  };
  return std::pair(std::pair(call.value("value_and_grad", result), beside()), std::move(grads));
}
template <class F, int... places, class... Args>
auto value_and_grad(const F& f, HasAux aux, Wrt<places...>, const Args&... args) {
  static_assert(detail::RequirePlaces<sizeof...(Args), places...>::value);
  const std::tuple<const Args&...> all(args...);
  return value_and_grad(detail::with_chosen<places...>(f, args...), aux, std::get<places>(all)...);
}

/// The gradients of f at args; the options are those of value_and_grad.
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

namespace detail {

/// Values that move, each along its direction; and results as values and tangents again.
template <class T>
FENESTRA_API std::vector<Value<T>> make_jets(Level level,
                                             const std::vector<Value<T>>& points,
                                             const std::vector<Value<T>>& directions);
template <class T>
FENESTRA_API std::pair<std::vector<Value<T>>, std::vector<Value<T>>> open_jets(
    Level level, const std::vector<Value<T>>& results);

}  // namespace detail

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
  static_assert((detail::RequireTree<Ps>::value && ...) && (detail::RequireTree<Ts>::value && ...));
  using Asked = detail::CallValue<Ps..., Ts...>;
  using T = ScalarOf<Asked>;
  const std::vector<Value<T>> points = detail::values_of<T>(at.trees);
  const std::vector<Value<T>> directions = detail::values_of<T>(along.trees);
  const Level level = new_level();
  const std::vector<Value<T>> jets = detail::make_jets(level, points, directions);
  const auto result = std::apply(f, tree_unflatten(at.trees, jets));
  const auto [y, y_dot] = detail::open_jets(level, detail::values_of<T>(result));
  return std::pair(detail::answer<Asked>("jvp", result, y),
                   detail::answer<Asked>("jvp", result, y_dot));
}

/// The Hessian of f at the primals times the tangents: forward over reverse.
template <class F, class... Ps, class... Ts>
auto hvp(const F& f, const Primals<Ps...>& at, const Tangents<Ts...>& along) {
  return jvp([&f](const auto&... args) { return grad(f, args...); }, at, along).second;
}

namespace detail {

/// The i-th unit tensor of x's shape.
template <class T>
Tensor<T> unit(const Shape& shape, Index i) {
  Tensor<T> e(shape);
  e.mutable_data()[i] = T(1);
  return e;
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
template <class F, AnyValue V>
V jacrev(const F& f, const V& x) {
  using T = ScalarOf<V>;
  const auto [y, pullback] = vjp(f, x);
  const Index rows = y.shape().elements().value_or(0);
  const Index columns = x.shape().elements().value_or(0);
  const Shape shape = detail::joined_shape(y.shape(), x.shape());
  if (rows == 0 || columns == 0) {
    return V(Tensor<T>(shape));
  }
  std::vector<V> parts;
  for (Index i = 0; i < rows; ++i) {
    parts.push_back(reshape(pullback(V(detail::unit<T>(y.shape(), i))), Shape{1, columns}));
  }
  return reshape(concat(parts, 0), shape);
}

/// The Jacobian of f at x, shape y.shape() + x.shape(), one tangent for each element of x.
template <class F, AnyValue V>
V jacfwd(const F& f, const V& x) {
  using T = ScalarOf<V>;
  const Index columns = x.shape().elements().value_or(0);
  const Shape y_shape = f(x).shape();
  const Index rows = y_shape.elements().value_or(0);
  const Shape shape = detail::joined_shape(y_shape, x.shape());
  if (rows == 0 || columns == 0) {
    return V(Tensor<T>(shape));
  }
  std::vector<V> parts;
  for (Index i = 0; i < columns; ++i) {
    const auto tangent = jvp(f, primals(x), tangents(V(detail::unit<T>(x.shape(), i)))).second;
    parts.push_back(reshape(tangent, Shape{rows, 1}));
  }
  return reshape(concat(parts, 1), shape);
}

/// The second derivatives of f, which returns a single element, at x: shape x.shape() twice.
template <class F, AnyValue V>
V hessian(const F& f, const V& x) {
  return jacfwd([&f](const auto& at) { return grad(f, at); }, x);
}

namespace detail {

/// What `transform` makes of f as a function of each of the chosen arguments alone.
template <int... places, class Transform, class F, class... Args>
auto by_each(const Transform& transform, const F& f, const Args&... args) {
  static_assert(RequirePlaces<sizeof...(Args), places...>::value);
  const std::tuple<const Args&...> all(args...);
  return unwrap_single(
      std::tuple{transform(with_chosen<places>(f, args...), std::get<places>(all))...});
}

/// The gradient by one argument. As a value, since the other arguments may move.
template <int place, class F, class... Args>
auto moving_grad(const F& f, const Args&... args) {
  using X = std::tuple_element_t<place, std::tuple<Args...>>;
  const Value<ScalarOf<X>> x(std::get<place>(std::tie(args...)));
  return grad(with_chosen<place>(f, args...), x);
}

}  // namespace detail

/// The Jacobians by the arguments at `places`: one alone, several as a tuple.
template <class F, int... places, class... Args>
auto jacrev(const F& f, Wrt<places...>, const Args&... args) {
  const auto by = [](const auto& alone, const auto& x) { return jacrev(alone, x); };
  return detail::by_each<places...>(by, f, args...);
}
template <class F, int... places, class... Args>
auto jacfwd(const F& f, Wrt<places...>, const Args&... args) {
  const auto by = [](const auto& alone, const auto& x) { return jacfwd(alone, x); };
  return detail::by_each<places...>(by, f, args...);
}

/// The second derivatives by the arguments at `places`. By several it is a tuple of tuples: the
/// derivative by y of that by x, of shape x.shape() + y.shape(), stands in the row of x.
template <class F, int... places, class... Args>
auto hessian(const F& f, Wrt<places...> wrt, const Args&... args) {
  static_assert(detail::RequirePlaces<sizeof...(Args), places...>::value);
  return detail::unwrap_single(std::tuple{jacfwd(
      [&f](const auto&... at) { return detail::moving_grad<places>(f, at...); }, wrt, args...)...});
}

/// f(args), a function of a span of values, recorded as one node: the forward pass keeps the
/// arguments only, the backward pass runs f again. Trades time for memory in deep networks. The
/// arguments that are variables must be of one tape.
template <class T>
FENESTRA_API Value<T> checkpoint(const std::function<Value<T>(std::span<const Value<T>>)>& f,
                                 const std::vector<Value<T>>& args);
template <class F, class T>
Value<T> checkpoint(const F& f, const std::vector<Value<T>>& args) {
  return checkpoint(std::function<Value<T>(std::span<const Value<T>>)>(f), args);
}

}  // namespace fenestra

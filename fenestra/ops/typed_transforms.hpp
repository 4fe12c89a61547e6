// Derivatives of callables at typed graph variables: the transforms of transforms.hpp, their
// results typed like what they belong to.
//
// The callable is called on typed variables once, which checks it, and then on variables or jets
// over untyped ones; it must be generic, as for every transform.
#pragma once

#include <fenestra/ops/transforms.hpp>
#include <fenestra/ops/typed.hpp>

#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>

namespace fenestra {

namespace detail {

template <class In>
inline constexpr bool is_typed_value = false;
template <class T, Shape S>
inline constexpr bool is_typed_value<graph::Var<T, S>> = true;

/// One gradient alone, several as a tuple, as the transforms give them.
template <class... In, class Bars>
auto typed_bars(Bars bars) {
  if constexpr (sizeof...(In) == 1) {
    return (In(std::move(bars)), ...);
  } else {
    return std::apply([](auto&... bar) { return std::tuple<In...>(In(std::move(bar))...); }, bars);
  }
}

}  // namespace detail

template <class In>
concept TypedValue = detail::is_typed_value<In>;

/// What f returns, which must be one typed variable.
template <class F, TypedValue... In>
  requires TypedValue<std::invoke_result_t<const F&, const In&...>>
using TypedResultOf = std::invoke_result_t<const F&, const In&...>;

template <class F, TypedValue... In>
  requires(sizeof...(In) > 0)
auto vjp(const F& f, const In&... in) {
  using Y = TypedResultOf<F, In...>;
  auto [y, pullback] = vjp(f, graph::OperandTraits<In>::untyped(in)...);
  auto typed_pullback = [pullback = std::move(pullback)](const Y& y_bar) {
    return detail::typed_bars<In...>(pullback(y_bar));
  };
  return std::pair(Y(std::move(y)), std::move(typed_pullback));
}

template <class F, TypedValue... In>
  requires(sizeof...(In) > 0)
auto value_and_grad(const F& f, const In&... in) {
  using Y = TypedResultOf<F, In...>;
  static_assert(Y::static_shape.elements() == 1,
                "fenestra: value_and_grad needs a function whose result is a single element");
  auto [y, bars] = value_and_grad(f, graph::OperandTraits<In>::untyped(in)...);
  return std::pair(Y(std::move(y)), detail::typed_bars<In...>(std::move(bars)));
}

template <class F, TypedValue... In>
  requires(sizeof...(In) > 0)
auto grad(const F& f, const In&... in) {
  return value_and_grad(f, in...).second;
}

/// A tangent has the type of its primal.
template <class F, TypedValue... In>
auto jvp(const F& f, const Primals<In...>& at, const Tangents<In...>& along) {
  using Y = TypedResultOf<F, In...>;
  const auto untyped = [](const auto&... value) {
    return std::tuple(
        graph::OperandTraits<std::remove_cvref_t<decltype(value)>>::untyped(value)...);
  };
  const auto points =
      std::apply([&](const auto&... x) { return primals(x...); }, std::apply(untyped, at.trees));
  const auto direction = std::apply([&](const auto&... x) { return tangents(x...); },
                                    std::apply(untyped, along.trees));
  auto [y, y_dot] = jvp(f, points, direction);
  return std::pair(Y(std::move(y)), Y(std::move(y_dot)));
}

}  // namespace fenestra

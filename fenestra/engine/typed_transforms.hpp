// Derivatives of callables at typed graph variables: the transforms of transforms.hpp, their
// results typed like what they belong to.
//
// The callable is typed on its arguments, which checks it, and then called on values of the same
// nodes; it must be generic. A result that is not typed, because the callable mixes in shapes
// known at run time, stays so; gradients are typed like the arguments.
#pragma once

#include <fenestra/engine/transforms.hpp>
#include <fenestra/engine/typed.hpp>

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

/// A typed variable as a value.
template <class T>
Value<T> lifted(const graph::Value<T>& handle) {
  return handle;
}
/// And back.
template <class T>
graph::Value<T> handle_of(const Value<T>& value) {
  const auto* traced = value.template as<graph::Value<T>>();
  return traced != nullptr ? *traced : graph::Value<T>(value.plain());
}

/// One gradient alone, several as a tuple, as the transforms give them.
template <class... In, class Bars>
auto typed_bars(const Bars& bars) {
  if constexpr (sizeof...(In) == 1) {
    return (In(handle_of(bars)), ...);
  } else {
    return std::apply([](const auto&... bar) { return std::tuple<In...>(In(handle_of(bar))...); },
                      bars);
  }
}

}  // namespace detail

template <class In>
concept TypedValue = detail::is_typed_value<In>;

namespace detail {

/// `y` as what f returns on these arguments, typed where that is.
template <class F, class... In, class T>
auto typed_result(const Value<T>& y) {
  using Result = std::invoke_result_t<const F&, const In&...>;
  if constexpr (TypedValue<Result>) {
    return Result(handle_of(y));
  } else {
    return handle_of(y);
  }
}

}  // namespace detail

template <class F, TypedValue... In>
  requires SomeArguments<In...>
auto vjp(const F& f, const In&... in) {
  auto [value, pullback] = vjp(f, detail::lifted(graph::OperandTraits<In>::untyped(in))...);
  auto y = detail::typed_result<F, In...>(value);
  auto typed_pullback = [pullback = std::move(pullback)](const decltype(y)& y_bar) {
    return detail::typed_bars<In...>(pullback(detail::lifted(y_bar)));
  };
  return std::pair(std::move(y), std::move(typed_pullback));
}

template <class F, TypedValue... In>
  requires SomeArguments<In...>
auto value_and_grad(const F& f, const In&... in) {
  using Y = std::invoke_result_t<const F&, const In&...>;
  if constexpr (TypedValue<Y>) {
    static_assert(Y::static_shape.elements() == 1,
                  "fenestra: value_and_grad needs a function whose result is a single element");
  }
  const auto [y, bars] =
      value_and_grad(f, detail::lifted(graph::OperandTraits<In>::untyped(in))...);
  return std::pair(detail::typed_result<F, In...>(y), detail::typed_bars<In...>(bars));
}

template <class F, TypedValue... In>
  requires SomeArguments<In...>
auto grad(const F& f, const In&... in) {
  return value_and_grad(f, in...).second;
}

/// A tangent has the type of its primal.
template <class F, TypedValue... In>
auto jvp(const F& f, const Primals<In...>& at, const Tangents<In...>& along) {
  const auto values = [&](const auto&... handle) {
    return std::tuple(detail::lifted(
        graph::OperandTraits<std::remove_cvref_t<decltype(handle)>>::untyped(handle))...);
  };
  const auto points =
      std::apply([&](const auto&... x) { return primals(x...); }, std::apply(values, at.trees));
  const auto direction =
      std::apply([&](const auto&... x) { return tangents(x...); }, std::apply(values, along.trees));
  const auto [y, y_dot] = jvp(f, points, direction);
  return std::pair(detail::typed_result<F, In...>(y), detail::typed_result<F, In...>(y_dot));
}

}  // namespace fenestra

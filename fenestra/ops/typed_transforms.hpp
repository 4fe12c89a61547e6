// Derivatives of callables at typed graph variables: the transforms of transforms.hpp, their
// results typed like what they belong to.
//
// The callable is typed on its arguments, which checks it, and then called on variables or jets
// over untyped ones; it must be generic, as for every transform. A result that is not typed,
// because the callable mixes in shapes known at run time, stays so; gradients are typed like the
// arguments.
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

namespace detail {

/// `y` as what f returns on these arguments, where that is typed.
template <class F, class... In, class Y>
auto typed_result(Y y) {
  using Result = std::invoke_result_t<const F&, const In&...>;
  if constexpr (TypedValue<Result>) {
    return Result(std::move(y));
  } else {
    return y;
  }
}

}  // namespace detail

template <class F, TypedValue... In>
  requires SomeArguments<In...>
auto vjp(const F& f, const In&... in) {
  auto [value, pullback] = vjp(f, graph::OperandTraits<In>::untyped(in)...);
  auto y = detail::typed_result<F, In...>(std::move(value));
  auto typed_pullback = [pullback = std::move(pullback)](const decltype(y)& y_bar) {
    return detail::typed_bars<In...>(pullback(y_bar));
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
  auto [y, bars] = value_and_grad(f, graph::OperandTraits<In>::untyped(in)...);
  return std::pair(detail::typed_result<F, In...>(std::move(y)),
                   detail::typed_bars<In...>(std::move(bars)));
}

template <class F, TypedValue... In>
  requires SomeArguments<In...>
auto grad(const F& f, const In&... in) {
  return value_and_grad(f, in...).second;
}

/// A tangent has the type of its primal.
template <class F, TypedValue... In>
auto jvp(const F& f, const Primals<In...>& at, const Tangents<In...>& along) {
  const auto untyped = [](const auto&... value) {
    return std::tuple(
        graph::OperandTraits<std::remove_cvref_t<decltype(value)>>::untyped(value)...);
  };
  const auto points =
      std::apply([&](const auto&... x) { return primals(x...); }, std::apply(untyped, at.trees));
  const auto direction = std::apply([&](const auto&... x) { return tangents(x...); },
                                    std::apply(untyped, along.trees));
  auto [y, y_dot] = jvp(f, points, direction);
  return std::pair(detail::typed_result<F, In...>(std::move(y)),
                   detail::typed_result<F, In...>(std::move(y_dot)));
}

}  // namespace fenestra

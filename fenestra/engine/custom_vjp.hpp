// custom_vjp: a function with a pullback of your own.
//
//   const auto straight_through = custom_vjp(
//       [](const auto& x) { return round(x); },
//       [](const auto& x) { return std::pair(round(x), std::tuple()); },
//       [](const auto& residuals, const auto& y_bar) { return y_bar; });
//   auto y = straight_through(x);
//
// `f` computes where nobody differentiates; `forward` computes where somebody does and says what
// the pullback keeps (residuals, of any type); `backward` takes the residuals and the cotangent of
// the result, and returns a cotangent for each argument: a value, or a tuple or vector of them. It
// is made of operators, so it is differentiated in its turn: grad of grad, and forward mode, which
// is the transpose of the pullback, work on every level. So do vmap, on either side of the
// derivative, and programs, differentiated by grad inside or by CompileOptions; there `forward` is
// traced again where its residuals are needed, and the passes merge what is computed twice.
//
// Functions return one value. What `f` takes from around it are constants.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/transforms.hpp>

#include <any>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace fenestra {

namespace detail {

/// The two functions that derivatives ask for, on values.
template <class T>
struct CustomRule {
  using V = Value<T>;
  std::function<std::pair<V, std::any>(std::span<const V> args)> forward;
  std::function<std::vector<V>(const std::any& residuals, const V& y_bar)> backward;
};

/// Numbers that nobody differentiates and no graph hides.
template <class T>
bool is_settled(const Value<T>& value) {
  if (const auto* batch = value.template as<typename Value<T>::Batch>()) {
    return is_settled(batch->value());
  }
  return value.level() == 0;
}

/// The value of a rule at the arguments, as a function of them. Defined in custom_primitive.hpp,
/// compiled in the library for float and double.
template <class T>
FENESTRA_API Value<T> apply_custom(std::shared_ptr<const CustomRule<T>> rule,
                                   const std::vector<Value<T>>& args);

/// f(args[0], args[1], ...)
template <std::size_t count, class F, class V>
auto call_with(const F& f, std::span<const V> args) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return std::invoke(f, args[i]...);
  }(std::make_index_sequence<count>{});
}

}  // namespace detail

/// See the head of the file. The function that is returned takes tensors and values.
template <class F, class Forward, class Backward>
auto custom_vjp(F f, Forward forward, Backward backward) {
  return [f = std::move(f),
          forward = std::move(forward),
          backward = std::move(backward)]<AnyValue... Args>(const Args&... args) {
    using Asked = CommonValue<Args...>;
    using T = ScalarOf<Asked>;
    using V = Value<T>;
    constexpr std::size_t count = sizeof...(Args);
    if constexpr (std::is_same_v<Asked, Tensor<T>>) {
      return Tensor<T>(std::invoke(f, args...));
    } else {
      const std::vector<V> values{V(args)...};
      bool settled = true;
      for (const V& value : values) {
        settled = settled && detail::is_settled(value);
      }
      if (settled) {
        return V(detail::call_with<count>(f, std::span<const V>(values)));
      }
      auto rule = std::make_shared<detail::CustomRule<T>>();
      rule->forward = [forward](std::span<const V> in) {
        auto [y, residuals] = detail::call_with<count>(forward, in);
        return std::pair<V, std::any>(V(y), std::any(std::move(residuals)));
      };
      using Residuals = std::remove_cvref_t<
          decltype(detail::call_with<count>(forward, std::span<const V>()).second)>;
      rule->backward = [backward](const std::any& residuals, const V& y_bar) {
        return detail::values_of<T>(
            std::invoke(backward, std::any_cast<const Residuals&>(residuals), y_bar));
      };
      return detail::apply_custom<T>(std::move(rule), values);
    }
  };
}

}  // namespace fenestra

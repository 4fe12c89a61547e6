// Normalisation on typed graph variables: `batch_norm<NormOptions{...}>(x, gamma, beta)`,
// `group_norm<4>(x, ...)`.
#pragma once

#include <fenestra/ops/normalise/normalise.hpp>
#include <fenestra/ops/typed.hpp>

#include <utility>

namespace fenestra {

/// Normalised values and the statistics they were made with.
template <class Y, class S>
struct TypedNormalised {
  Y y;
  S mean;
  S var;
};

template <NormOptions options = NormOptions{}, graph::Operand... In>
auto batch_norm(const In&... in) {
  const auto y_of = [](const auto&... v) { return batch_norm(v..., options).y; };
  const auto mean_of = [](const auto&... v) { return batch_norm(v..., options).mean; };
  using Call = graph::TypedCall<"batch_norm", "x", "gamma", "beta">;
  auto result = batch_norm(graph::OperandTraits<In>::untyped(in)..., options);
  if constexpr (graph::AllTyped<In...>) {
    using Y = typename Call::template Result<decltype(y_of), graph::NoFault, In...>;
    using S = typename Call::template Result<decltype(mean_of), graph::NoFault, In...>;
    return TypedNormalised<Y, S>{
        Y(std::move(result.y)), S(std::move(result.mean)), S(std::move(result.var))};
  } else {
    return result;
  }
}
template <NormOptions options = NormOptions{}, graph::Operand... In>
auto batch_norm_inference(const In&... in) {
  return graph::typed<"batch_norm_inference", "x", "mean", "var", "gamma", "beta">(
      [](const auto&... v) { return batch_norm_inference(v..., options); }, in...);
}
template <Index groups, NormOptions options = NormOptions{}, graph::Operand X, graph::Operand... In>
auto group_norm(const X& x, const In&... parameters) {
  return graph::typed<"group_norm", "x", "gamma", "beta">(
      [](const auto& v, const auto&... p) { return group_norm(v, groups, p..., options); },
      x,
      parameters...);
}
template <class X, class G, class B>
  requires graph::SomeTyped<X, G, B>
auto layer_norm(const X& x, const G& gamma, const B& beta, double eps = 1e-5) {
  return graph::typed<"layer_norm", "x", "gamma", "beta">(
      [](const auto& v, const auto& g, const auto& b, double e) { return layer_norm(v, g, b, e); },
      x,
      gamma,
      beta,
      eps);
}
/// Over the last `axes` axes, without parameters.
template <int axes, graph::Operand X>
auto layer_norm(const X& x, double eps = 1e-5) {
  return graph::typed<"layer_norm", "x">(
      [](const auto& v, double e) { return layer_norm(v, axes, e); }, x, eps);
}
template <graph::Typed X>
auto layer_norm(const X& x) {
  return layer_norm<1>(x);
}

}  // namespace fenestra

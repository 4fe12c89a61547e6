// Normalisation on typed graph variables: `batch_norm<NormOptions{...}>(x, gamma, beta)`,
// `group_norm<4>(x, ...)`.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/normalise/normalise.hpp>

#include <utility>

namespace fenestra {

/// Normalised values and the statistics they were made with.
template <class Y, class S>
struct TypedNormalised {
  Y y;
  S mean;
  S var;
};

namespace detail {

/// The first of a resolution's own fault and those of the parameters (gamma, beta), if any.
constexpr Fault norm_fault(const Resolved<NormGeometry>& resolved) { return resolved.fault; }
constexpr Fault norm_fault(const Resolved<NormGeometry>& resolved,
                           const Shape& gamma,
                           const Shape& beta) {
  if (resolved.fault) {
    return resolved.fault;
  }
  const Fault fault = check_parameters(Argument::gamma, gamma, resolved.geometry);
  return fault ? fault : check_parameters(Argument::beta, beta, resolved.geometry);
}

template <NormOptions options>
inline constexpr auto batch_norm_fault = [](const Shape& x, const auto&... parameters) {
  return norm_fault(resolve_batch_norm(x, options), parameters...);
};
template <NormOptions options>
inline constexpr auto batch_norm_inference_fault =
    [](const Shape& x, const Shape& mean, const Shape& var, const auto&... parameters) {
      const Resolved<NormGeometry> resolved = resolve_batch_norm(x, options);
      Fault fault = resolved.fault;
      fault = fault ? fault : check_parameters(Argument::mean, mean, resolved.geometry);
      fault = fault ? fault : check_parameters(Argument::var, var, resolved.geometry);
      return fault ? fault : norm_fault(resolved, parameters...);
    };

}  // namespace detail

template <NormOptions options = NormOptions{}, graph::Operand... In>
auto batch_norm(const In&... in) {
  auto result = batch_norm(graph::OperandTraits<In>::untyped(in)..., options);
  if constexpr (graph::AllTyped<In...>) {
    const auto y_of = [](const auto&... v) { return batch_norm(v..., options).y; };
    const auto mean_of = [](const auto&... v) { return batch_norm(v..., options).mean; };
    using Call = graph::TypedCall<"batch_norm", "x", "gamma", "beta">;
    using Faulty = decltype(detail::batch_norm_fault<options>);
    if constexpr (Call::template check<decltype(y_of), Faulty, In...>()) {
      using Y = typename Call::template Result<decltype(y_of), In...>;
      using S = typename Call::template Result<decltype(mean_of), In...>;
      return TypedNormalised<Y, S>{
          Y(std::move(result.y)), S(std::move(result.mean)), S(std::move(result.var))};
    } else {
      return result;
    }
  } else {
    return result;
  }
}
template <NormOptions options = NormOptions{}, graph::Operand... In>
auto batch_norm_inference(const In&... in) {
  return graph::typed<"batch_norm_inference", "x", "mean", "var", "gamma", "beta">(
      [](const auto&... v) { return batch_norm_inference(v..., options); },
      detail::batch_norm_inference_fault<options>,
      in...);
}
template <Index groups, NormOptions options = NormOptions{}, graph::Operand X, graph::Operand... In>
auto group_norm(const X& x, const In&... parameters) {
  return graph::typed<"group_norm", "x", "gamma", "beta">(
      [](const auto& v, const auto&... p) { return group_norm(v, groups, p..., options); },
      [](const Shape& v, const auto&... p) {
        return detail::norm_fault(resolve_group_norm(v, groups, options), p...);
      },
      x,
      parameters...);
}
template <class X, class G, class B>
  requires graph::SomeTyped<X, G, B>
auto layer_norm(const X& x, const G& gamma, const B& beta, double eps = 1e-5) {
  return graph::typed<"layer_norm", "x", "gamma", "beta", "eps">(
      [](const auto& v, const auto& g, const auto& b, double e) { return layer_norm(v, g, b, e); },
      [](const Shape& v, const Shape& g, const Shape& b) {
        return detail::norm_fault(resolve_layer_norm(v, g.rank(), 0), g, b);
      },
      x,
      gamma,
      beta,
      eps);
}
/// Over the last `axes` axes, without parameters.
template <int axes, graph::Operand X>
auto layer_norm(const X& x, double eps = 1e-5) {
  return graph::typed<"layer_norm", "x", "eps">(
      [](const auto& v, double e) { return layer_norm(v, axes, e); },
      [](const Shape& v) { return resolve_layer_norm(v, axes, 0).fault; },
      x,
      eps);
}
template <graph::Typed X>
auto layer_norm(const X& x) {
  return layer_norm<1>(x);
}

}  // namespace fenestra

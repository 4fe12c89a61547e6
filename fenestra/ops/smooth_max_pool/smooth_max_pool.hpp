// Smooth max pooling on any value type, and the closed family of its derivatives.
//
// With p = softmax(beta*x) in each window, S(v) = sum p*v (mix) and A(u) = the p-weighted spread of
// u back to the cells:
//   y:  x_bar = A(y_bar), y_dot = S(x_dot), dy/dbeta = D
//   dD = S(x*dx) - S(x)*S(dx) + dbeta*C
//   dC = S(x^2*dx) - 2*S(x)*S(x*dx) + (2*S(x)^2 - S(x^2))*S(dx) + dbeta*(K - 3*C)/beta,
//        K = S(x^3) - 3*S(x^2)*S(x) + 2*S(x)^3
//   dS(v) = S(dv) + beta*(S(v*dx) - S(v)*S(dx)) + dbeta*(S(v*x) - S(v)*S(x))
//   dA(u) = A(du) + beta*(dx*A(u) - A(u*S(dx))) + dbeta*(x*A(u) - A(u*S(x)))
// so mix, spread, slope D, curve C and products are enough for every order, and no weight is ever
// stored. D and C are kernels because their formulas by mixes, (S(x) - y)/beta and so on, cancel
// for small beta; the third derivative by beta alone is such a formula.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/apply.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/with_kernel.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/kernel_choice.hpp>
#include <fenestra/ops/reduce/reduce.hpp>
#include <fenestra/ops/smooth_max_pool/geometry.hpp>
#include <fenestra/ops/smooth_max_pool/spec.hpp>
#include <fenestra/tensor/condition.hpp>

namespace fenestra {

/// Every candidate of every direction, for float and double.
FENESTRA_API std::vector<KernelChoice> smooth_max_pool_kernels(const SmoothMaxPoolGeometry& g);

struct SmoothProblem;
template <class T>
struct SmoothArguments;
template <class T>
using SmoothKernel = kernels::Candidate<SmoothProblem, SmoothArguments<T>>;

/// Chooses a candidate, and runs one; compiled for float and double. `v` is null where nothing is
/// linear in it. `out` is overwritten whole.
template <KernelScalar T>
FENESTRA_API const SmoothKernel<T>& choose_smooth_max_pool(SmoothDirection direction,
                                                           const SmoothMaxPoolGeometry& g);
template <KernelScalar T>
FENESTRA_API void run_smooth_max_pool(const SmoothKernel<T>& kernel,
                                      SmoothDirection direction,
                                      const SmoothMaxPoolGeometry& g,
                                      const T* x,
                                      const T* v,
                                      T beta,
                                      T* out);

/// Inputs: x, beta, and for mix and spread the linear argument.
struct SmoothMaxPoolPrimitive {
  static constexpr std::string_view name = "smooth_max_pool";
  SmoothDirection direction = SmoothDirection::forward;
  SmoothMaxPoolGeometry g;

  std::string_view display_name() const {
    switch (direction) {
      case SmoothDirection::forward: return name;
      case SmoothDirection::mix: return "smooth_max_pool_mix";
      case SmoothDirection::spread: return "smooth_max_pool_spread";
      case SmoothDirection::slope: return "smooth_max_pool_slope";
      case SmoothDirection::curve: return "smooth_max_pool_curve";
    }
    return name;
  }
  constexpr Shape result_shape(const Shape&) const {
    return direction == SmoothDirection::spread ? g.pool.x_shape() : g.pool.y_shape();
  }
  template <class T>
  void run(std::span<const Tensor<T>> in, std::span<const Selection> data, T* out) const {
    if constexpr (KernelScalar<T>) {
      run_with(choose_smooth_max_pool<T>(direction, g), in, data, out, {});
    } else if constexpr (Transcendental<T>) {
      switch (direction) {
        case SmoothDirection::forward:
        case SmoothDirection::slope:
        case SmoothDirection::curve:
          return store(spec::smooth_max_pool(in[0], in[1], g, direction), out);
        case SmoothDirection::mix: return store(spec::smooth_mix(in[0], in[1], in[2], g), out);
        case SmoothDirection::spread:
          return store(spec::smooth_spread(in[0], in[1], in[2], g), out);
      }
    } else {
      throw Error(ErrorCode::dtype_mismatch,
                  "smooth_max_pool: this scalar has no exp and log\n  fix: float or double");
    }
  }

  template <KernelScalar T>
  void run_with(const SmoothKernel<T>& kernel,
                std::span<const Tensor<T>> in,
                std::span<const Selection>,
                T* out,
                const SelectionBuffer&) const {
    const T* v = is_linear(direction) ? in[2].data() : nullptr;
    run_smooth_max_pool(kernel, direction, g, in[0].data(), v, in[1][0], out);
  }
  template <KernelScalar T>
  WithKernel<SmoothMaxPoolPrimitive, SmoothKernel<T>> prepare() const {
    return {*this, &choose_smooth_max_pool<T>(direction, g)};
  }
  /// Beta is read whole.
  std::optional<Split> split(std::span<const Shape> in) const {
    std::optional<Split> split = split_all(in.size(), g.pool.batched);
    if (split) {
      split->in[1] = false;
    }
    return split;
  }
  SmoothMaxPoolPrimitive piece(Index count) const { return pool_piece(*this, count); }
  std::string attributes() const { return to_string(g); }
  std::optional<Condition> condition(int i) const {
    return i == 1 ? std::optional(Condition{check_beta, "finite and not 0"}) : std::nullopt;
  }

  template <class V>
  V vjp(int i, const Saved<V>& s, const V& bar) const {
    const V& x = s[0];
    const V& beta = s[1];
    const auto mix = [&](const V& v) { return member(SmoothDirection::mix, x, beta, v); };
    const auto spread = [&](const V& u) { return member(SmoothDirection::spread, x, beta, u); };
    switch (direction) {
      case SmoothDirection::forward:
        return i == 0 ? spread(bar) : sum(mul(bar, of_beta(SmoothDirection::slope, s)));
      case SmoothDirection::slope:
        if (i == 1) {
          return sum(mul(bar, of_beta(SmoothDirection::curve, s)));
        }
        return sub(mul(x, spread(bar)), spread(mul(bar, mix(x))));
      case SmoothDirection::curve: {
        if (i == 1) {
          return sum(mul(bar, third(s)));
        }
        const V mean = mix(x);
        const V rest = sub(scale(mul(mean, mean), 2), mix(mul(x, x)));
        return add(sub(mul(mul(x, x), spread(bar)), mul(scale(x, 2), spread(mul(bar, mean)))),
                   spread(mul(bar, rest)));
      }
      case SmoothDirection::mix: {
        const V& v = s[2];
        if (i == 2) {
          return spread(bar);
        }
        if (i == 0) {
          return mul(beta, sub(mul(v, spread(bar)), spread(mul(bar, mix(v)))));
        }
        return sum(mul(bar, sub(mix(mul(v, x)), mul(mix(v), mix(x)))));
      }
      case SmoothDirection::spread: {
        const V& u = s[2];
        if (i == 2) {
          return mix(bar);
        }
        if (i == 0) {
          return mul(beta, sub(mul(bar, spread(u)), spread(mul(u, mix(bar)))));
        }
        return sum(mul(bar, sub(mul(x, spread(u)), spread(mul(u, mix(x))))));
      }
    }
    return bar;
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& s, std::span<const std::optional<V>> dots) const {
    const V& x = s[0];
    const V& beta = s[1];
    const auto mix = [&](const V& v) { return member(SmoothDirection::mix, x, beta, v); };
    const auto spread = [&](const V& u) { return member(SmoothDirection::spread, x, beta, u); };
    OptionalSum<V> total;
    switch (direction) {
      case SmoothDirection::forward:
        if (dots[0]) {
          total.add_term(mix(*dots[0]));
        }
        if (dots[1]) {
          total.add_term(mul(*dots[1], of_beta(SmoothDirection::slope, s)));
        }
        break;
      case SmoothDirection::slope:
        if (dots[0]) {
          total.add_term(sub(mix(mul(x, *dots[0])), mul(mix(x), mix(*dots[0]))));
        }
        if (dots[1]) {
          total.add_term(mul(*dots[1], of_beta(SmoothDirection::curve, s)));
        }
        break;
      case SmoothDirection::curve:
        if (dots[0]) {
          const V mean = mix(x);
          const V rest = sub(scale(mul(mean, mean), 2), mix(mul(x, x)));
          total.add_term(
              add(sub(mix(mul(mul(x, x), *dots[0])), mul(scale(mean, 2), mix(mul(x, *dots[0])))),
                  mul(rest, mix(*dots[0]))));
        }
        if (dots[1]) {
          total.add_term(mul(*dots[1], third(s)));
        }
        break;
      case SmoothDirection::mix: {
        const V& v = s[2];
        if (dots[2]) {
          total.add_term(mix(*dots[2]));
        }
        if (dots[0]) {
          total.add_term(mul(beta, sub(mix(mul(v, *dots[0])), mul(mix(v), mix(*dots[0])))));
        }
        if (dots[1]) {
          total.add_term(mul(*dots[1], sub(mix(mul(v, x)), mul(mix(v), mix(x)))));
        }
        break;
      }
      case SmoothDirection::spread: {
        const V& u = s[2];
        if (dots[2]) {
          total.add_term(spread(*dots[2]));
        }
        if (dots[0]) {
          total.add_term(mul(beta, sub(mul(*dots[0], spread(u)), spread(mul(u, mix(*dots[0]))))));
        }
        if (dots[1]) {
          total.add_term(mul(*dots[1], sub(mul(x, spread(u)), spread(mul(u, mix(x))))));
        }
        break;
      }
    }
    return total.take();
  }
  static constexpr bool needs(int, int what) { return what != kOutput; }
  friend bool operator==(const SmoothMaxPoolPrimitive&, const SmoothMaxPoolPrimitive&) = default;

 private:
  template <class V>
  V member(SmoothDirection to, const V& x, const V& beta, const V& v) const {
    return apply(SmoothMaxPoolPrimitive{to, g}, {x, beta, v});
  }
  template <class V>
  V of_beta(SmoothDirection to, const Saved<V>& s) const {
    return apply(SmoothMaxPoolPrimitive{to, g}, {s[0], s[1]});
  }
  /// d^3y/dbeta^3
  template <class V>
  V third(const Saved<V>& s) const {
    const V& x = s[0];
    const auto mix = [&](const V& v) { return member(SmoothDirection::mix, x, s[1], v); };
    const V mean = mix(x);
    const V square = mul(x, x);
    const V cumulant = add(sub(mix(mul(square, x)), scale(mul(mix(square), mean), 3)),
                           scale(mul(mean, mul(mean, mean)), 2));
    const V curve = of_beta(SmoothDirection::curve, s);
    return div(sub(cumulant, scale(curve, 3)), s[1]);
  }
};

namespace detail {

/// A sharpness for each channel: scaled by it, all of them have the sharpness 1. By beta the
/// derivative is that of a quotient, which cancels for small beta where the kernel's does not.
template <AnyValue V>
constexpr V smooth_max_pool_by_channel(const V& x,
                                       const V& beta,
                                       SmoothMaxPoolOptions options,
                                       int named_rank) {
  options.beta = 1;
  const auto g = smooth_max_pool_geometry(x.shape(), options, named_rank);
  require_shape("smooth_max_pool", "beta", beta, Shape{g.pool.channels});
  if constexpr (std::floating_point<ScalarOf<V>> && ValueTraits<V>::has_elements) {
    if (has_elements(beta)) {
      const auto& numbers = bottom(beta);
      for (Index i = 0; i < numbers.size(); ++i) {
        options.beta = static_cast<double>(numbers[i]);  // checked as a sharpness of its own
        (void)smooth_max_pool_geometry(x.shape(), options, named_rank);
      }
    }
  }
  Shape factors{g.pool.channels};
  if (g.pool.layout == Layout::channels_first) {
    for (int axis = 0; axis < g.pool.rank(); ++axis) {
      factors.push_back(1);
    }
  }
  const V factor = reshape(beta, factors);
  const V y = apply(SmoothMaxPoolPrimitive{SmoothDirection::forward, g},
                    {mul(x, factor), scalar_constant<V>(ScalarOf<V>(1))});
  return div(y, factor);
}

}  // namespace detail

/// With a differentiable sharpness, which wins over `options.beta`: a value of rank 0, or of shape
/// (C,), one for each channel.
template <AnyValue X, AnyValue B>
constexpr CommonValue<X, B> smooth_max_pool(const X& x,
                                            const B& beta,
                                            SmoothMaxPoolOptions options,
                                            int named_rank = 0) {
  using V = CommonValue<X, B>;
  if (beta.shape().rank() == 1) {
    return detail::smooth_max_pool_by_channel(V(x), V(beta), options, named_rank);
  }
  require_shape("smooth_max_pool", "beta", beta, Shape{});
  // A graph knows no value yet; programs check what they are given.
  options.beta = 1;
  if constexpr (std::floating_point<ScalarOf<V>> && ValueTraits<B>::has_elements) {
    if (has_elements(beta)) {
      options.beta = static_cast<double>(bottom(beta)[0]);
    }
  }
  const auto g = smooth_max_pool_geometry(x.shape(), options, named_rank);
  return apply(SmoothMaxPoolPrimitive{SmoothDirection::forward, g}, {V(x), V(beta)});
}

/// (1/beta) log(sum of exp(beta*x)) over each window; see SmoothMaxPoolOptions.
template <AnyValue V>
constexpr V smooth_max_pool(const V& x, const SmoothMaxPoolOptions& options, int named_rank = 0) {
  const auto g = smooth_max_pool_geometry(x.shape(), options, named_rank);
  return apply(SmoothMaxPoolPrimitive{SmoothDirection::forward, g},
               {x, scalar_constant<V>(from_double<ScalarOf<V>>(options.beta))});
}

template <AnyValue V>
constexpr V smooth_max_pool1d(const V& x, const SmoothMaxPoolOptions& options) {
  return smooth_max_pool(x, options, 1);
}
template <AnyValue V>
constexpr V smooth_max_pool2d(const V& x, const SmoothMaxPoolOptions& options) {
  return smooth_max_pool(x, options, 2);
}
template <AnyValue V>
constexpr V smooth_max_pool3d(const V& x, const SmoothMaxPoolOptions& options) {
  return smooth_max_pool(x, options, 3);
}

}  // namespace fenestra

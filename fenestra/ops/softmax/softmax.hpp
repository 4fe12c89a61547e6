// Softmax, log-softmax and log-sum-exp over one axis, on any value type.
//
// All three subtract the largest element first, so nothing overflows that need not. Derivatives are
// written with the results: p the softmax, u a tangent or cotangent,
//   softmax      p * (u - sum(p * u))           both ways, the Jacobian is symmetric
//   log_softmax  u - p * sum(u)                 and forward u - sum(p * u)
//   logsumexp    p * u                          and forward sum(p * u)
#pragma once

#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/ops/axis.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/elementwise/sum_to.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/ops/softmax/call.hpp>
#include <fenestra/spec/options.hpp>
#include <fenestra/tensor/split.hpp>

#include <cmath>
#include <string>
#include <utility>

namespace fenestra {

enum class SoftmaxFunction {
  softmax,
  log_softmax,
  logsumexp,
  weights,  ///< softmax, but 0 where every element is -infinity: the gradient of logsumexp
};

/// What softmax and log_softmax can be told.
struct SoftmaxOptions {
  int axis = -1;

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    field("axis", &SoftmaxOptions::axis, {.alias = "dim"});
  }
};

/// What logsumexp can be told.
struct LogSumExpOptions {
  int axis = -1;
  bool keep = false;

  friend constexpr bool operator==(const LogSumExpOptions&, const LogSumExpOptions&) = default;

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    using O = LogSumExpOptions;
    field("axis", &O::axis, {.help = help::kAxis, .always_printed = true, .alias = "dim"});
    field("keep", &O::keep, {.help = help::kKeep, .argument = "keepdims"});
  }
};

namespace spec {

/// One line of elements, `step` apart; `out` likewise, or one element for logsumexp.
template <OrderedScalar T>
void softmax_line(SoftmaxFunction f, const T* x, Index n, Index step, T* out) {
  if constexpr (Transcendental<T>) {
    // Constants near the elements: the shift cancels, so derivatives need not follow it, and there
    // is never a doubt which is greatest.
    T greatest = representative(x[0]);
    for (Index k = 1; k < n; ++k) {
      greatest = scalar_max(greatest, representative(x[k * step]));
    }
    if constexpr (std::floating_point<T>) {
      if (std::isinf(greatest) && f == SoftmaxFunction::logsumexp) {
        *out = greatest;
        return;
      }
      if (std::isinf(greatest) && greatest < 0 && f == SoftmaxFunction::weights) {
        for (Index k = 0; k < n; ++k) {
          out[k * step] = T(0);
        }
        return;
      }
    }
    T sum(0);
    for (Index k = 0; k < n; ++k) {
      sum = sum + scalar_exp(T(x[k * step] - greatest));
    }
    if (f == SoftmaxFunction::logsumexp) {
      *out = greatest + scalar_log(sum);
      return;
    }
    const T log_sum = f == SoftmaxFunction::log_softmax ? scalar_log(sum) : T(0);
    for (Index k = 0; k < n; ++k) {
      const T shifted = x[k * step] - greatest;
      out[k * step] =
          f == SoftmaxFunction::log_softmax ? T(shifted - log_sum) : T(scalar_exp(shifted) / sum);
    }
  } else {
    detail::throw_no_function("softmax");
  }
}

}  // namespace spec

// Compiled for float and double in kernels/lines.cpp. The axis is not empty.
template <KernelScalar T>
void softmax_kernel(SoftmaxFunction f, const T* x, T* out, const AxisView& view);

template <AnyValue V>
constexpr V apply_softmax(SoftmaxFunction f, const V& x, int axis);

struct SoftmaxPrimitive : PrimitiveBase<SoftmaxPrimitive> {
  static constexpr std::string_view name = "softmax";
  SoftmaxFunction f = SoftmaxFunction::softmax;
  Shape x;
  int axis = 0;

  std::string_view display_name() const {
    switch (f) {
      case SoftmaxFunction::softmax: return name;
      case SoftmaxFunction::log_softmax: return "log_softmax";
      case SoftmaxFunction::logsumexp: return "logsumexp";
      case SoftmaxFunction::weights: return "softmax_weights";
    }
    return name;
  }
  std::string attributes() const { return "axis=" + std::to_string(axis); }
  /// x with 1 on the axis.
  constexpr Shape reduced() const {
    Shape shape = x;
    shape[axis] = 1;
    return shape;
  }

  constexpr Shape result_shape(const Shape&) const {
    return f == SoftmaxFunction::logsumexp ? reduced() : x;
  }
  std::optional<Split> split(std::span<const Shape> in) const {
    return split_all(in.size(), axis != 0);
  }
  SoftmaxPrimitive piece(Index count) const { return {{}, f, with_samples(x, count), axis}; }
  std::optional<TileOf<SoftmaxPrimitive>> tile(std::span<const Shape> in, const Box& box) const {
    if (in.size() != 1 || box[axis] != IndexRange{0, result_shape(x)[axis]}) {
      return std::nullopt;
    }
    Box part = box;
    part.set(axis, {0, x[axis]});
    return TileOf<SoftmaxPrimitive>{
        box, {part}, {{}, f, part.shape(), axis}, {.from = {}, .mixed = 1U << axis}};
  }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    if (in[0].size() == 0) {
      return;
    }
    const AxisView view = axis_view(x, axis);
    if constexpr (KernelScalar<T>) {
      softmax_kernel(f, in[0].data(), out, view);
    } else {
      for (Index o = 0; o < view.outer; ++o) {
        for (Index i = 0; i < view.inner; ++i) {
          const Index at = o * view.extent * view.inner + i;
          spec::softmax_line(f,
                             in[0].data() + at,
                             view.extent,
                             view.inner,
                             out + (f == SoftmaxFunction::logsumexp ? o * view.inner + i : at));
        }
      }
    }
  }
  template <class V>
  V vjp(int, const Saved<V>& saved, const V& u) const {
    if (f != SoftmaxFunction::logsumexp && x.elements() == 0) {
      return u;  // sums over an empty axis would be there nevertheless
    }
    switch (f) {
      case SoftmaxFunction::log_softmax: return sub(u, mul(exp(*saved.y), sum_to(u, reduced())));
      case SoftmaxFunction::logsumexp:
        return mul(apply_softmax(SoftmaxFunction::weights, saved[0], axis), u);
      default: return mul(*saved.y, sub(u, sum_to(mul(*saved.y, u), reduced())));
    }
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    if (f != SoftmaxFunction::logsumexp && x.elements() == 0) {
      return *dots[0];
    }
    switch (f) {
      case SoftmaxFunction::log_softmax:
        return sub(*dots[0], sum_to(mul(exp(*saved.y), *dots[0]), reduced()));
      case SoftmaxFunction::logsumexp:
        return sum_to(mul(apply_softmax(SoftmaxFunction::weights, saved[0], axis), *dots[0]),
                      reduced());
      default: return vjp(0, saved, *dots[0]);
    }
  }
  bool needs(int, int what) const {
    return f == SoftmaxFunction::logsumexp ? what == 0 : what == kOutput;
  }
  friend bool operator==(const SoftmaxPrimitive&, const SoftmaxPrimitive&) = default;
};

/// `axis` is resolved.
template <AnyValue V>
constexpr V apply_softmax(SoftmaxFunction f, const V& x, int axis) {
  return apply(SoftmaxPrimitive{{}, f, x.shape(), axis}, x);
}

inline namespace generic {

template <AnyValue V>
constexpr V softmax(const V& x, int axis = -1) {
  return apply_softmax(SoftmaxFunction::softmax, x, resolved_axis("softmax", x.shape(), axis));
}

template <AnyValue V>
constexpr V log_softmax(const V& x, int axis = -1) {
  return apply_softmax(
      SoftmaxFunction::log_softmax, x, resolved_axis("log_softmax", x.shape(), axis));
}

template <AnyValue V>
constexpr V logsumexp(const V& x, int axis = -1, bool keep = false) {
  const int at = resolved_axis("logsumexp", x.shape(), axis);
  if (x.shape()[at] == 0) {
    throw Error("logsumexp",
                {.code = ErrorCode::invalid_extent, .argument = Argument::x, .axis = at},
                "logsumexp: x = " + to_string(x.shape()) + " is empty along axis " +
                    std::to_string(at) + "\n  fix: at least one element there");
  }
  const V kept = apply_softmax(SoftmaxFunction::logsumexp, x, at);
  if (keep) {
    return kept;
  }
  Shape shape;
  for (int i = 0; i < x.shape().rank(); ++i) {
    if (i != at) {
      shape.push_back(x.shape()[i]);
    }
  }
  return reshape(kept, shape);
}

}  // namespace generic

}  // namespace fenestra

// The elementwise operators on any value type, with broadcasting: functions, derivative rules and
// operators.
//
// A derivative is written with the same functions, so all orders follow. `gate` is the derivative
// of relu, clip and their like; `winner_gate` of min and max, whose ties go to the first argument.
#pragma once

#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/ops/elementwise/broadcast.hpp>
#include <fenestra/ops/elementwise/call.hpp>
#include <fenestra/ops/elementwise/functions.hpp>
#include <fenestra/ops/elementwise/spec.hpp>
#include <fenestra/ops/elementwise/sum_to.hpp>
#include <fenestra/spec/problem.hpp>
#include <fenestra/tensor/split.hpp>

#include <concepts>
#include <limits>
#include <string>
#include <tuple>

namespace fenestra {

namespace detail {

template <AnyValue V, class N>
V number_constant(N number) {
  using T = ScalarOf<V>;
  if constexpr (std::is_integral_v<N>) {
    return scalar_constant<V>(from_index<T>(static_cast<Index>(number)));
  } else {
    return scalar_constant<V>(T(static_cast<double>(number)));
  }
}

}  // namespace detail

inline namespace generic {

template <AnyValue V>
constexpr V unary(const UnaryCall& call, const V& x);
template <AnyValue V>
constexpr V binary_values(BinaryFunction f, const V& a, const V& b);

}  // namespace generic

template <AnyValue V>
constexpr V gate(const GateCall& call, const V& u, const V& x);

/// x / n for a count n, exact in every field.
template <AnyValue V>
constexpr V divide_by_count(const V& x, Index n) {
  return div(x, scalar_constant<V>(from_index<ScalarOf<V>>(n)));
}

// --- Primitives ------------------------------

/// u * [x inside], see GateCall. Linear in u; constant in x almost everywhere.
struct GatePrimitive : PrimitiveBase<GatePrimitive> {
  static constexpr std::string_view name = "gate";
  GateCall call;

  constexpr Shape result_shape(const Shape& u) const { return u; }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    evaluate_gate(call, in[0], in[1], out);
  }
  static constexpr bool may_overwrite(int) { return true; }
  static std::optional<Split> split(std::span<const Shape> in) {
    return split_broadcast(in, in[0]);
  }
  GatePrimitive piece(Index) const { return *this; }
  std::string attributes() const {
    return "low=" + problem_text(call.low) + " high=" + problem_text(call.high) +
           (call.outside != 0 ? " outside=" + problem_text(call.outside) : "") +
           (call.closed ? " closed" : "");
  }
  template <class V>
  V vjp(int i, const Saved<V>& saved, const V& y_bar) const {
    return i == 0 ? gate(call, y_bar, saved[1]) : zeros_like(y_bar);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    if (!dots[0]) {
      return std::nullopt;
    }
    return gate(call, *dots[0], saved[1]);
  }
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  static constexpr bool needs(int i, int what) { return i == 0 && what == 1; }
  friend bool operator==(const GatePrimitive&, const GatePrimitive&) = default;
};

struct UnaryPrimitive : PrimitiveBase<UnaryPrimitive> {
  static constexpr std::string_view name = "unary";
  UnaryCall call;

  std::string_view display_name() const { return function_name(call.f); }

  constexpr Shape result_shape(const Shape& x) const { return x; }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    evaluate_unary(call, in[0], out);
  }
  static constexpr bool may_overwrite(int) { return true; }
  static std::optional<Split> split(std::span<const Shape> in) {
    return split_broadcast(in, in[0]);
  }
  UnaryPrimitive piece(Index) const { return *this; }
  std::optional<TileOf<UnaryPrimitive>> tile(std::span<const Shape>, const Box& box) const {
    return TileOf<UnaryPrimitive>{box, {box}, *this};
  }
  std::string attributes() const {
    switch (call.f) {
      case UnaryFunction::leaky_relu:
      case UnaryFunction::power:
      case UnaryFunction::elu:
      case UnaryFunction::scale: return problem_text(call.a);
      case UnaryFunction::clip: return problem_text(call.a) + " to " + problem_text(call.b);
      default: return {};
    }
  }
  /// f'(x) * u: the Jacobian is diagonal, so this is both the VJP and the JVP. Empty for zero.
  template <class V>
  std::optional<V> times_slope(const Saved<V>& s, const V& u) const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const auto one = [] { return scalar_constant<V>(ScalarOf<V>(1)); };
    switch (call.f) {
      case UnaryFunction::neg: return neg(u);
      case UnaryFunction::exp: return mul(u, *s.y);
      case UnaryFunction::log: return div(u, s[0]);
      case UnaryFunction::sqrt: return div(u, scale(*s.y, 2));
      case UnaryFunction::abs: return mul(u, sign(s[0]));
      case UnaryFunction::sign:
      case UnaryFunction::floor:
      case UnaryFunction::ceil:
      case UnaryFunction::round:
      case UnaryFunction::stop_gradient: return std::nullopt;
      case UnaryFunction::relu: return gate({.low = 0, .high = kInfinity}, u, *s.y);
      case UnaryFunction::leaky_relu:
        return gate({.low = 0, .high = kInfinity, .outside = call.a}, u, s[0]);
      case UnaryFunction::sigmoid: return mul(u, mul(*s.y, sub(one(), *s.y)));
      case UnaryFunction::tanh: return mul(u, sub(one(), mul(*s.y, *s.y)));
      case UnaryFunction::normal_cdf: return mul(u, density(s[0]));
      case UnaryFunction::gelu: return mul(u, add(normal_cdf(s[0]), mul(s[0], density(s[0]))));
      case UnaryFunction::silu: {
        const V y = sigmoid(s[0]);
        return mul(u, mul(y, add(one(), mul(s[0], sub(one(), y)))));
      }
      case UnaryFunction::hard_sigmoid:
        return divide_by_count(gate({.low = -3, .high = 3}, u, s[0]), 6);
      case UnaryFunction::clip:
        return gate({.low = call.a, .high = call.b, .closed = true}, u, s[0]);
      case UnaryFunction::power:
        if (call.a == 0) {
          return std::nullopt;
        }
        if (call.a == 1) {
          return u;
        }
        return mul(u, scale(power(s[0], call.a - 1), call.a));
      case UnaryFunction::scale: return scale(u, call.a);
      case UnaryFunction::softplus: return mul(u, sigmoid(s[0]));
      case UnaryFunction::sin: return mul(u, cos(s[0]));
      case UnaryFunction::cos: return neg(mul(u, sin(s[0])));
      case UnaryFunction::erf: return mul(u, error_density(s[0]));
      case UnaryFunction::elu:
        // exp only of what is below zero: above, the slope is exp(0).
        return mul(gate({.low = 0, .high = kInfinity, .outside = call.a}, u, s[0]),
                   exp(clip(s[0], -kInfinity, 0)));
    }
    return u;
  }
  template <class V>
  std::optional<V> vjp(int, const Saved<V>& saved, const V& y_bar) const {
    return times_slope(saved, y_bar);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    return times_slope(saved, *dots[0]);
  }
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  bool needs(int, int what) const {
    if (is_flat(call.f)) {
      return false;
    }
    switch (call.f) {
      case UnaryFunction::neg:
      case UnaryFunction::scale: return false;
      case UnaryFunction::exp:
      case UnaryFunction::sqrt:
      case UnaryFunction::relu:
      case UnaryFunction::sigmoid:
      case UnaryFunction::tanh: return what == kOutput;
      default: return what == 0;
    }
  }
  friend bool operator==(const UnaryPrimitive&, const UnaryPrimitive&) = default;

 private:
  /// exp(-x^2/2)/sqrt(2 pi)
  template <class V>
  static V density(const V& x) {
    using T = ScalarOf<V>;
    if constexpr (detail::HasSqrt<T> && Transcendental<T>) {
      const T factor = inv_sqrt_pi<T>() * scalar_sqrt(T(T(1) / T(2)));
      return mul(exp(scale(mul(x, x), -0.5)), scalar_constant<V>(factor));
    } else {
      spec::detail::throw_no_function("normal_cdf");
    }
  }
  /// 2/sqrt(pi) exp(-x^2)
  template <class V>
  static V error_density(const V& x) {
    using T = ScalarOf<V>;
    if constexpr (Transcendental<T>) {
      const T factor = inv_sqrt_pi<T>() + inv_sqrt_pi<T>();
      return mul(exp(neg(mul(x, x))), scalar_constant<V>(factor));
    } else {
      spec::detail::throw_no_function("erf");
    }
  }
};

/// u where the chosen argument of a minimum or maximum won, 0 elsewhere. Linear in u.
struct WinnerGatePrimitive : PrimitiveBase<WinnerGatePrimitive> {
  static constexpr std::string_view name = "winner_gate";
  BinaryFunction f = BinaryFunction::max;
  bool first = true;

  constexpr Shape result_shape(const Shape& u) const { return u; }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    const auto& [u, a, b] = std::tie(in[0], in[1], in[2]);
    const BroadcastLoop<2> loop(u.shape(), {a.shape(), b.shape()});
    const Index n = u.size() == 0 ? 0 : loop.inner();
    for (Index run = 0; n > 0 && run < loop.outer(); ++run) {
      const T* from_a = a.data() + loop.offset(0, run);
      const T* from_b = b.data() + loop.offset(1, run);
      for (Index i = 0; i < n; ++i) {
        const T& p = from_a[i * loop.inner_step(0)];
        const T& q = from_b[i * loop.inner_step(1)];
        const bool second_wins = f == BinaryFunction::max ? beats(q, p) : beats(T(-q), T(-p));
        out[run * n + i] = second_wins == first ? T(0) : u[run * n + i];
      }
    }
  }
  static constexpr bool may_overwrite(int i) { return i == 0; }
  static std::optional<Split> split(std::span<const Shape> in) {
    return split_broadcast(in, in[0]);
  }
  WinnerGatePrimitive piece(Index) const { return *this; }
  std::string attributes() const {
    return std::string(function_name(f)) + (first ? " first" : " second");
  }
  template <class V>
  V vjp(int i, const Saved<V>& saved, const V& y_bar) const {
    if (i == 0) {
      return apply(*this, {y_bar, saved[1], saved[2]});
    }
    return zeros_like(saved[i]);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    if (!dots[0]) {
      return std::nullopt;
    }
    return apply(*this, {*dots[0], saved[1], saved[2]});
  }
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  static constexpr bool needs(int i, int what) {
    return what == 1 || what == 2 || (i != 0 && what == i);
  }
  friend bool operator==(const WinnerGatePrimitive&, const WinnerGatePrimitive&) = default;
};

struct BinaryPrimitive : PrimitiveBase<BinaryPrimitive> {
  static constexpr std::string_view name = "binary";
  BinaryFunction f = BinaryFunction::add;
  Shape a;
  Shape b;
  Shape shape;

  std::string_view display_name() const { return function_name(f); }

  constexpr Shape result_shape(const Shape&) const { return shape; }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    evaluate_binary(f, in[0], in[1], shape, out);
  }
  bool may_overwrite(int i) const { return (i == 0 ? a : b) == shape; }
  std::optional<Split> split(std::span<const Shape> in) const { return split_broadcast(in, shape); }
  BinaryPrimitive piece(Index count) const {
    const auto cut = [&](const Shape& of) {
      return of.rank() == shape.rank() && of[0] == shape[0] ? with_samples(of, count) : of;
    };
    return {{}, f, cut(a), cut(b), cut(shape)};
  }
  std::optional<TileOf<BinaryPrimitive>> tile(std::span<const Shape>, const Box& box) const {
    const Box left = broadcast_box(a, shape, box);
    const Box right = broadcast_box(b, shape, box);
    return TileOf<BinaryPrimitive>{
        box, {left, right}, {{}, f, left.shape(), right.shape(), box.shape()}};
  }
  /// u times the partial derivative by argument i, in the broadcast shape; not of flat functions.
  /// `u` may itself be of an argument's shape.
  template <class V>
  V times_slope(int i, const Saved<V>& s, const V& u) const {
    const bool first = i == 0;
    switch (f) {
      case BinaryFunction::add: return u;
      case BinaryFunction::sub: return first ? u : neg(u);
      case BinaryFunction::mul: return mul(u, s[first ? 1 : 0]);
      case BinaryFunction::div: return first ? div(u, s[1]) : neg(mul(u, div(*s.y, s[1])));
      case BinaryFunction::pow:
        return first ? mul(u, mul(s[1], pow(s[0], sub(s[1], scalar_constant<V>(ScalarOf<V>(1))))))
                     : mul(u, mul(*s.y, log(s[0])));
      case BinaryFunction::min:
      case BinaryFunction::max:
        return apply(WinnerGatePrimitive{{}, f, first}, {broadcast_to(u, shape), s[0], s[1]});
      case BinaryFunction::mod: return first ? u : neg(mul(u, floor_divide(s[0], s[1])));
      default: break;
    }
    return u;
  }
  template <class V>
  std::optional<V> vjp(int i, const Saved<V>& saved, const V& y_bar) const {
    if (is_flat(f)) {
      return std::nullopt;
    }
    return sum_to(times_slope(i, saved, y_bar), i == 0 ? a : b);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    OptionalSum<V> sum;
    for (int i = 0; i < 2; ++i) {
      const auto& dot = dots[static_cast<std::size_t>(i)];
      if (dot && !is_flat(f)) {
        sum.add_term(broadcast_to(times_slope(i, saved, *dot), shape));
      }
    }
    return sum.take();
  }
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  bool needs(int i, int what) const {
    switch (f) {
      case BinaryFunction::add:
      case BinaryFunction::sub: return false;
      case BinaryFunction::mul: return what == 1 - i;
      case BinaryFunction::div: return i == 0 ? what == 1 : what == 1 || what == kOutput;
      case BinaryFunction::pow: return i == 0 ? what != kOutput : what == 0 || what == kOutput;
      case BinaryFunction::min:
      case BinaryFunction::max: return what != kOutput;
      case BinaryFunction::mod: return i == 1 && what != kOutput;
      default: return false;
    }
  }
  friend bool operator==(const BinaryPrimitive&, const BinaryPrimitive&) = default;
};

template <AnyValue V>
constexpr V gate(const GateCall& call, const V& u, const V& x) {
  return apply(GatePrimitive{{}, call}, {u, x});
}

inline namespace generic {

template <AnyValue V>
constexpr V unary(const UnaryCall& call, const V& x) {
  return apply(UnaryPrimitive{{}, call}, x);
}

template <AnyValue V>
constexpr V binary_values(BinaryFunction f, const V& a, const V& b) {
  const Shape shape = broadcast_shape(function_name(f), a.shape(), b.shape());
  return apply(BinaryPrimitive{{}, f, a.shape(), b.shape(), shape}, {a, b});
}

}  // namespace generic

}  // namespace fenestra

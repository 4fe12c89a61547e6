// The elementwise functions and operators on values, with broadcasting, for those who call them.
// Derivatives and other scalars: elementwise.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/ops/elementwise/names.hpp>

#include <concepts>
#include <type_traits>

namespace fenestra {

/// A constant of rank 0 on the level of V.
template <AnyValue V>
constexpr V scalar_constant(const ScalarOf<V>& value) {
  if constexpr (std::constructible_from<V, Tensor<ScalarOf<V>>>) {
    return V(Tensor<ScalarOf<V>>(Shape{}, value));
  } else {
    return V(Shape{});
  }
}

template <CompiledValue V>
FENESTRA_API V unary(const UnaryCall& call, const V& x);
template <CompiledValue V>
FENESTRA_API V binary_values(BinaryFunction f, const V& a, const V& b);

template <AnyValue A, AnyValue B>
constexpr CommonValue<A, B> binary(BinaryFunction f, const A& a, const B& b) {
  return binary_values<CommonValue<A, B>>(f, a, b);
}

// --- The functions ------------------------------

template <AnyValue V>
constexpr V neg(const V& x) {
  return unary(UnaryCall{UnaryFunction::neg}, x);
}
template <AnyValue V>
constexpr V exp(const V& x) {
  return unary(UnaryCall{UnaryFunction::exp}, x);
}
template <AnyValue V>
constexpr V log(const V& x) {
  return unary(UnaryCall{UnaryFunction::log}, x);
}
template <AnyValue V>
constexpr V sqrt(const V& x) {
  return unary(UnaryCall{UnaryFunction::sqrt}, x);
}
template <AnyValue V>
constexpr V abs(const V& x) {
  return unary(UnaryCall{UnaryFunction::abs}, x);
}
/// -1, 0 or 1; its derivative is 0 everywhere.
template <AnyValue V>
constexpr V sign(const V& x) {
  return unary(UnaryCall{UnaryFunction::sign}, x);
}
template <AnyValue V>
constexpr V relu(const V& x) {
  return unary(UnaryCall{UnaryFunction::relu}, x);
}
template <AnyValue V>
constexpr V leaky_relu(const V& x, double negative_slope = 0.01) {
  return unary(UnaryCall{UnaryFunction::leaky_relu, negative_slope}, x);
}
template <AnyValue V>
constexpr V sigmoid(const V& x) {
  return unary(UnaryCall{UnaryFunction::sigmoid}, x);
}
template <AnyValue V>
constexpr V tanh(const V& x) {
  return unary(UnaryCall{UnaryFunction::tanh}, x);
}
template <AnyValue V>
constexpr V normal_cdf(const V& x) {
  return unary(UnaryCall{UnaryFunction::normal_cdf}, x);
}
/// x * normal_cdf(x), the exact form.
template <AnyValue V>
constexpr V gelu(const V& x) {
  return unary(UnaryCall{UnaryFunction::gelu}, x);
}
template <AnyValue V>
constexpr V silu(const V& x) {
  return unary(UnaryCall{UnaryFunction::silu}, x);
}
template <AnyValue V>
constexpr V hard_sigmoid(const V& x) {
  return unary(UnaryCall{UnaryFunction::hard_sigmoid}, x);
}
/// log(1 + exp(x)) without overflow.
template <AnyValue V>
constexpr V softplus(const V& x) {
  return unary(UnaryCall{UnaryFunction::softplus}, x);
}
template <AnyValue V>
constexpr V sin(const V& x) {
  return unary(UnaryCall{UnaryFunction::sin}, x);
}
template <AnyValue V>
constexpr V cos(const V& x) {
  return unary(UnaryCall{UnaryFunction::cos}, x);
}
/// 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.
template <AnyValue V>
constexpr V erf(const V& x) {
  return unary(UnaryCall{UnaryFunction::erf}, x);
}
/// x above zero, alpha (exp(x) - 1) below.
template <AnyValue V>
constexpr V elu(const V& x, double alpha = 1) {
  return unary(UnaryCall{UnaryFunction::elu, alpha}, x);
}
// The derivatives of these are 0 everywhere.
template <AnyValue V>
constexpr V floor(const V& x) {
  return unary(UnaryCall{UnaryFunction::floor}, x);
}
template <AnyValue V>
constexpr V ceil(const V& x) {
  return unary(UnaryCall{UnaryFunction::ceil}, x);
}
/// The nearest integer, the even one of two.
template <AnyValue V>
constexpr V round(const V& x) {
  return unary(UnaryCall{UnaryFunction::round}, x);
}
/// x as a constant: no derivative passes, in programs neither.
template <AnyValue V>
constexpr V stop_gradient(const V& x) {
  return unary(UnaryCall{UnaryFunction::stop_gradient}, x);
}
[[noreturn]] FENESTRA_API void throw_clip_bounds(double least, double largest);
constexpr void require_clip_bounds(double least, double largest) {
  if (!(least <= largest)) {
    throw_clip_bounds(least, largest);
  }
}
/// min(max(x, least), largest); an infinite bound is none.
template <AnyValue V>
constexpr V clip(const V& x, double least, double largest) {
  require_clip_bounds(least, largest);
  return unary(UnaryCall{UnaryFunction::clip, least, largest}, x);
}
/// x^p with a constant exponent.
template <AnyValue V>
constexpr V power(const V& x, double p) {
  return unary(UnaryCall{UnaryFunction::power, p}, x);
}
/// x times a constant.
template <AnyValue V>
constexpr V scale(const V& x, double factor) {
  return unary(UnaryCall{UnaryFunction::scale, factor}, x);
}

template <AnyValue A, AnyValue B>
constexpr auto add(const A& a, const B& b) {
  return binary(BinaryFunction::add, a, b);
}
template <AnyValue A, AnyValue B>
constexpr auto sub(const A& a, const B& b) {
  return binary(BinaryFunction::sub, a, b);
}
template <AnyValue A, AnyValue B>
constexpr auto mul(const A& a, const B& b) {
  return binary(BinaryFunction::mul, a, b);
}
template <AnyValue A, AnyValue B>
constexpr auto div(const A& a, const B& b) {
  return binary(BinaryFunction::div, a, b);
}
template <AnyValue A, AnyValue B>
constexpr auto pow(const A& a, const B& b) {
  return binary(BinaryFunction::pow, a, b);
}
/// Elementwise; the first argument wins ties, NaN wins over numbers.
template <AnyValue A, AnyValue B>
constexpr auto minimum(const A& a, const B& b) {
  return binary(BinaryFunction::min, a, b);
}
template <AnyValue A, AnyValue B>
constexpr auto maximum(const A& a, const B& b) {
  return binary(BinaryFunction::max, a, b);
}

/// a - b * floor(a/b), as Python's %: of the sign of b.
template <AnyValue A, AnyValue B>
constexpr auto mod(const A& a, const B& b) {
  return binary(BinaryFunction::mod, a, b);
}
/// floor(a/b), as Python's //; its derivative is 0.
template <AnyValue A, AnyValue B>
constexpr auto floor_divide(const A& a, const B& b) {
  return binary(BinaryFunction::floor_divide, a, b);
}
// Comparisons: 1 where it is so, else 0, and no derivative. NaN is neither less, greater nor equal.
template <AnyValue A, AnyValue B>
constexpr auto less(const A& a, const B& b) {
  return binary(BinaryFunction::less, a, b);
}
template <AnyValue A, AnyValue B>
constexpr auto less_equal(const A& a, const B& b) {
  return binary(BinaryFunction::less_equal, a, b);
}
template <AnyValue A, AnyValue B>
constexpr auto greater(const A& a, const B& b) {
  return binary(BinaryFunction::less, b, a);
}
template <AnyValue A, AnyValue B>
constexpr auto greater_equal(const A& a, const B& b) {
  return binary(BinaryFunction::less_equal, b, a);
}
template <AnyValue A, AnyValue B>
constexpr auto equal(const A& a, const B& b) {
  return binary(BinaryFunction::equal, a, b);
}
template <AnyValue A, AnyValue B>
constexpr auto not_equal(const A& a, const B& b) {
  using V = CommonValue<A, B>;
  return sub(scalar_constant<V>(ScalarOf<V>(1)), equal(a, b));
}

template <AnyValue V>
V operator-(const V& x) {
  return neg(x);
}
template <AnyValue A, AnyValue B>
auto operator+(const A& a, const B& b) {
  return add(a, b);
}
template <AnyValue A, AnyValue B>
auto operator-(const A& a, const B& b) {
  return sub(a, b);
}
template <AnyValue A, AnyValue B>
auto operator*(const A& a, const B& b) {
  return mul(a, b);
}
template <AnyValue A, AnyValue B>
auto operator/(const A& a, const B& b) {
  return div(a, b);
}

template <AnyValue A, AnyValue B>
auto operator%(const A& a, const B& b) {
  return mod(a, b);
}

namespace detail {

/// A number as a constant on the level of V: exact where it is a count, rounded once where not.
template <AnyValue V, class N>
V number_constant(N number);
template <CompiledValue V, class N>
V number_constant(N number) {
  using Exact = std::conditional_t<std::is_integral_v<N>, Index, double>;
  return scalar_constant<V>(static_cast<ScalarOf<V>>(static_cast<Exact>(number)));
}

template <class N>
concept Number = std::is_arithmetic_v<N> && !std::is_same_v<N, bool>;

}  // namespace detail

// Values with numbers: 2 * x, x + 1, 1 - x, x / 3.
template <AnyValue V, detail::Number N>
V operator+(const V& x, N n) {
  return add(x, detail::number_constant<V>(n));
}
template <AnyValue V, detail::Number N>
V operator+(N n, const V& x) {
  return add(detail::number_constant<V>(n), x);
}
template <AnyValue V, detail::Number N>
V operator-(const V& x, N n) {
  return sub(x, detail::number_constant<V>(n));
}
template <AnyValue V, detail::Number N>
V operator-(N n, const V& x) {
  return sub(detail::number_constant<V>(n), x);
}
template <AnyValue V, detail::Number N>
V operator*(const V& x, N n) {
  return mul(x, detail::number_constant<V>(n));
}
template <AnyValue V, detail::Number N>
V operator*(N n, const V& x) {
  return mul(detail::number_constant<V>(n), x);
}
template <AnyValue V, detail::Number N>
V operator/(const V& x, N n) {
  return div(x, detail::number_constant<V>(n));
}
template <AnyValue V, detail::Number N>
V operator/(N n, const V& x) {
  return div(detail::number_constant<V>(n), x);
}

template <AnyValue V, detail::Number N>
V operator%(const V& x, N n) {
  return mod(x, detail::number_constant<V>(n));
}

/// The sum of x over the axes in which `shape` is 1 or missing.
template <CompiledValue V>
FENESTRA_API V sum_to(const V& x, const Shape& shape);
/// x repeated along the axes in which it is 1 or which it lacks.
template <CompiledValue V>
FENESTRA_API V broadcast_to(const V& x, const Shape& shape);

}  // namespace fenestra

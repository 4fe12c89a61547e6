// The elementwise operators on typed graph variables, with broadcasting. Numbers beside them are
// given at run time: they decide no shape.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>

namespace fenestra {

template <graph::Typed X>
auto neg(const X& x) {
  return graph::typed<"neg", "x">([](const auto& v) { return neg(v); }, x);
}
template <graph::Typed X>
auto exp(const X& x) {
  return graph::typed<"exp", "x">([](const auto& v) { return exp(v); }, x);
}
template <graph::Typed X>
auto log(const X& x) {
  return graph::typed<"log", "x">([](const auto& v) { return log(v); }, x);
}
template <graph::Typed X>
auto sqrt(const X& x) {
  return graph::typed<"sqrt", "x">([](const auto& v) { return sqrt(v); }, x);
}
template <graph::Typed X>
auto abs(const X& x) {
  return graph::typed<"abs", "x">([](const auto& v) { return abs(v); }, x);
}
template <graph::Typed X>
auto sign(const X& x) {
  return graph::typed<"sign", "x">([](const auto& v) { return sign(v); }, x);
}
template <graph::Typed X>
auto relu(const X& x) {
  return graph::typed<"relu", "x">([](const auto& v) { return relu(v); }, x);
}
template <graph::Typed X>
auto sigmoid(const X& x) {
  return graph::typed<"sigmoid", "x">([](const auto& v) { return sigmoid(v); }, x);
}
template <graph::Typed X>
auto tanh(const X& x) {
  return graph::typed<"tanh", "x">([](const auto& v) { return tanh(v); }, x);
}
template <graph::Typed X>
auto normal_cdf(const X& x) {
  return graph::typed<"normal_cdf", "x">([](const auto& v) { return normal_cdf(v); }, x);
}
template <graph::Typed X>
auto gelu(const X& x) {
  return graph::typed<"gelu", "x">([](const auto& v) { return gelu(v); }, x);
}
template <graph::Typed X>
auto silu(const X& x) {
  return graph::typed<"silu", "x">([](const auto& v) { return silu(v); }, x);
}
template <graph::Typed X>
auto hard_sigmoid(const X& x) {
  return graph::typed<"hard_sigmoid", "x">([](const auto& v) { return hard_sigmoid(v); }, x);
}
template <graph::Typed X>
auto softplus(const X& x) {
  return graph::typed<"softplus", "x">([](const auto& v) { return softplus(v); }, x);
}
template <graph::Typed X>
auto sin(const X& x) {
  return graph::typed<"sin", "x">([](const auto& v) { return sin(v); }, x);
}
template <graph::Typed X>
auto cos(const X& x) {
  return graph::typed<"cos", "x">([](const auto& v) { return cos(v); }, x);
}
template <graph::Typed X>
auto erf(const X& x) {
  return graph::typed<"erf", "x">([](const auto& v) { return erf(v); }, x);
}
template <graph::Typed X>
auto floor(const X& x) {
  return graph::typed<"floor", "x">([](const auto& v) { return floor(v); }, x);
}
template <graph::Typed X>
auto ceil(const X& x) {
  return graph::typed<"ceil", "x">([](const auto& v) { return ceil(v); }, x);
}
template <graph::Typed X>
auto round(const X& x) {
  return graph::typed<"round", "x">([](const auto& v) { return round(v); }, x);
}
template <graph::Typed X>
auto stop_gradient(const X& x) {
  return graph::typed<"stop_gradient", "x">([](const auto& v) { return stop_gradient(v); }, x);
}
template <graph::Typed X>
auto elu(const X& x, double alpha = 1) {
  return graph::typed<"elu", "x", "alpha">(
      [](const auto& v, double a) { return elu(v, a); }, x, alpha);
}
template <graph::Typed X>
auto leaky_relu(const X& x, double negative_slope = 0.01) {
  return graph::typed<"leaky_relu", "x", "negative_slope">(
      [](const auto& v, double a) { return leaky_relu(v, a); }, x, negative_slope);
}
template <graph::Typed X>
auto power(const X& x, double p) {
  return graph::typed<"power", "x", "p">([](const auto& v, double a) { return power(v, a); }, x, p);
}
template <graph::Typed X>
auto scale(const X& x, double factor) {
  return graph::typed<"scale", "x", "factor">(
      [](const auto& v, double a) { return scale(v, a); }, x, factor);
}
template <graph::Typed X>
auto clip(const X& x, double least, double largest) {
  return graph::typed<"clip", "x", "least", "largest">(
      [](const auto& v, double a, double b) { return clip(v, a, b); }, x, least, largest);
}

template <class A, class B>
  requires graph::SomeTyped<A, B>
auto add(const A& a, const B& b) {
  return graph::typed<"add", "a", "b">(
      [](const auto& p, const auto& q) { return add(p, q); },
      [](const Shape& p, const Shape& q) { return check_broadcast(p, q); },
      a,
      b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto sub(const A& a, const B& b) {
  return graph::typed<"sub", "a", "b">(
      [](const auto& p, const auto& q) { return sub(p, q); },
      [](const Shape& p, const Shape& q) { return check_broadcast(p, q); },
      a,
      b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto mul(const A& a, const B& b) {
  return graph::typed<"mul", "a", "b">(
      [](const auto& p, const auto& q) { return mul(p, q); },
      [](const Shape& p, const Shape& q) { return check_broadcast(p, q); },
      a,
      b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto div(const A& a, const B& b) {
  return graph::typed<"div", "a", "b">(
      [](const auto& p, const auto& q) { return div(p, q); },
      [](const Shape& p, const Shape& q) { return check_broadcast(p, q); },
      a,
      b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto pow(const A& a, const B& b) {
  return graph::typed<"pow", "a", "b">(
      [](const auto& p, const auto& q) { return pow(p, q); },
      [](const Shape& p, const Shape& q) { return check_broadcast(p, q); },
      a,
      b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto minimum(const A& a, const B& b) {
  return graph::typed<"minimum", "a", "b">(
      [](const auto& p, const auto& q) { return minimum(p, q); },
      [](const Shape& p, const Shape& q) { return check_broadcast(p, q); },
      a,
      b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto maximum(const A& a, const B& b) {
  return graph::typed<"maximum", "a", "b">(
      [](const auto& p, const auto& q) { return maximum(p, q); },
      [](const Shape& p, const Shape& q) { return check_broadcast(p, q); },
      a,
      b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto mod(const A& a, const B& b) {
  return graph::typed<"mod", "a", "b">(
      [](const auto& p, const auto& q) { return mod(p, q); },
      [](const Shape& p, const Shape& q) { return check_broadcast(p, q); },
      a,
      b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto floor_divide(const A& a, const B& b) {
  return graph::typed<"floor_divide", "a", "b">(
      [](const auto& p, const auto& q) { return floor_divide(p, q); },
      [](const Shape& p, const Shape& q) { return check_broadcast(p, q); },
      a,
      b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto less(const A& a, const B& b) {
  return graph::typed<"less", "a", "b">(
      [](const auto& p, const auto& q) { return less(p, q); },
      [](const Shape& p, const Shape& q) { return check_broadcast(p, q); },
      a,
      b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto less_equal(const A& a, const B& b) {
  return graph::typed<"less_equal", "a", "b">(
      [](const auto& p, const auto& q) { return less_equal(p, q); },
      [](const Shape& p, const Shape& q) { return check_broadcast(p, q); },
      a,
      b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto greater(const A& a, const B& b) {
  return graph::typed<"greater", "a", "b">(
      [](const auto& p, const auto& q) { return greater(p, q); },
      [](const Shape& p, const Shape& q) { return check_broadcast(p, q); },
      a,
      b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto greater_equal(const A& a, const B& b) {
  return graph::typed<"greater_equal", "a", "b">(
      [](const auto& p, const auto& q) { return greater_equal(p, q); },
      [](const Shape& p, const Shape& q) { return check_broadcast(p, q); },
      a,
      b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto equal(const A& a, const B& b) {
  return graph::typed<"equal", "a", "b">(
      [](const auto& p, const auto& q) { return equal(p, q); },
      [](const Shape& p, const Shape& q) { return check_broadcast(p, q); },
      a,
      b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto not_equal(const A& a, const B& b) {
  return graph::typed<"not_equal", "a", "b">(
      [](const auto& p, const auto& q) { return not_equal(p, q); },
      [](const Shape& p, const Shape& q) { return check_broadcast(p, q); },
      a,
      b);
}

template <graph::Typed X>
auto operator-(const X& x) {
  return neg(x);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto operator+(const A& a, const B& b) {
  return add(a, b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto operator-(const A& a, const B& b) {
  return sub(a, b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto operator*(const A& a, const B& b) {
  return mul(a, b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto operator/(const A& a, const B& b) {
  return div(a, b);
}
template <class A, class B>
  requires graph::SomeTyped<A, B>
auto operator%(const A& a, const B& b) {
  return mod(a, b);
}

}  // namespace fenestra

// Which elementwise functions there are; what they are is in functions.hpp.
#pragma once

namespace fenestra {

enum class UnaryFunction {
  neg,
  exp,
  log,
  sqrt,
  abs,
  sign,
  relu,
  leaky_relu,  ///< a: slope below zero
  sigmoid,
  tanh,
  normal_cdf,    ///< the probability that a standard normal variable is below x
  gelu,          ///< x * normal_cdf(x)
  silu,          ///< x * sigmoid(x)
  hard_sigmoid,  ///< clip((x + 3)/6, 0, 1)
  clip,          ///< a: least, b: largest
  power,         ///< a: exponent
  scale,         ///< a: factor
  softplus,      ///< log(1 + exp(x))
  sin,
  cos,
  erf,
  floor,
  ceil,
  round,          ///< to the nearest integer, the even one of two
  elu,            ///< x above zero, a * (exp(x) - 1) below
  stop_gradient,  ///< x, with derivative 0
};

enum class BinaryFunction {
  add,
  sub,
  mul,
  div,
  pow,
  min,
  max,
  mod,           ///< a - b * floor(a/b): the sign is that of b
  floor_divide,  ///< floor(a/b)
  less,          ///< 1 where a < b, else 0; the others likewise
  less_equal,
  equal,
};

/// A unary function with its constants; comparable, so that it can be a node's attribute.
struct UnaryCall {
  UnaryFunction f = UnaryFunction::neg;
  double a = 0;
  double b = 0;
  friend constexpr bool operator==(const UnaryCall&, const UnaryCall&) = default;
};

}  // namespace fenestra

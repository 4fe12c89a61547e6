// The elementwise functions themselves, on one scalar: the specification of the family, for any
// scalar that has what the function needs. No tensors, no derivatives: see elementwise.hpp.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/ops/elementwise/names.hpp>
#include <fenestra/spec/real_functions.hpp>
#include <fenestra/spec/scalar.hpp>

#include <cmath>
#include <concepts>
#include <limits>
#include <numbers>
#include <string_view>

namespace fenestra {

constexpr std::string_view function_name(UnaryFunction f) {
  switch (f) {
    case UnaryFunction::neg: return "neg";
    case UnaryFunction::exp: return "exp";
    case UnaryFunction::log: return "log";
    case UnaryFunction::sqrt: return "sqrt";
    case UnaryFunction::abs: return "abs";
    case UnaryFunction::sign: return "sign";
    case UnaryFunction::relu: return "relu";
    case UnaryFunction::leaky_relu: return "leaky_relu";
    case UnaryFunction::sigmoid: return "sigmoid";
    case UnaryFunction::tanh: return "tanh";
    case UnaryFunction::normal_cdf: return "normal_cdf";
    case UnaryFunction::gelu: return "gelu";
    case UnaryFunction::silu: return "silu";
    case UnaryFunction::hard_sigmoid: return "hard_sigmoid";
    case UnaryFunction::clip: return "clip";
    case UnaryFunction::power: return "power";
    case UnaryFunction::scale: return "scale";
    case UnaryFunction::softplus: return "softplus";
    case UnaryFunction::sin: return "sin";
    case UnaryFunction::cos: return "cos";
    case UnaryFunction::erf: return "erf";
    case UnaryFunction::floor: return "floor";
    case UnaryFunction::ceil: return "ceil";
    case UnaryFunction::round: return "round";
    case UnaryFunction::elu: return "elu";
    case UnaryFunction::stop_gradient: return "stop_gradient";
  }
  return "";
}

constexpr std::string_view function_name(BinaryFunction f) {
  switch (f) {
    case BinaryFunction::add: return "add";
    case BinaryFunction::sub: return "sub";
    case BinaryFunction::mul: return "mul";
    case BinaryFunction::div: return "div";
    case BinaryFunction::pow: return "pow";
    case BinaryFunction::min: return "min";
    case BinaryFunction::max: return "max";
    case BinaryFunction::mod: return "mod";
    case BinaryFunction::floor_divide: return "floor_divide";
    case BinaryFunction::less: return "less";
    case BinaryFunction::less_equal: return "less_equal";
    case BinaryFunction::equal: return "equal";
  }
  return "";
}

/// Constant between jumps (or, of stop_gradient, taken to be so): the derivative is 0 everywhere.
constexpr bool is_flat(UnaryFunction f) {
  return f == UnaryFunction::sign || f == UnaryFunction::floor || f == UnaryFunction::ceil ||
         f == UnaryFunction::round || f == UnaryFunction::stop_gradient;
}
constexpr bool is_flat(BinaryFunction f) {
  return f == BinaryFunction::floor_divide || f == BinaryFunction::less ||
         f == BinaryFunction::less_equal || f == BinaryFunction::equal;
}

namespace spec {

namespace detail {

[[noreturn]] inline void throw_no_function(std::string_view f) {
  throw Error(ErrorCode::dtype_mismatch,
              std::string(f) +
                  ": this scalar does not have it\n  fix: float, double, or a scalar with exp, log "
                  "and pow");
}

/// 1/(1 + exp(-x)) without overflow. Where < may have no answer (intervals) the plain form
/// encloses.
template <Transcendental T>
T sigmoid(const T& x) {
  if constexpr (TotallyOrdered<T>) {
    if (x < T(0)) {
      const T e = scalar_exp(x);
      return e / (T(1) + e);
    }
  }
  return T(1) / (T(1) + scalar_exp(T(-x)));
}

/// log(1 + exp(x)), split like `sigmoid`; each branch has the derivative of the whole at 0.
template <Transcendental T>
T softplus(const T& x) {
  if constexpr (TotallyOrdered<T>) {
    if (T(0) < x) {
      return x + softplus(T(-x));
    }
  }
  if constexpr (std::floating_point<T>) {
    return std::log1p(std::exp(x));
  } else {
    return scalar_log(T(T(1) + scalar_exp(x)));
  }
}

/// erfc(-x/sqrt(2))/2, accurate in both tails.
template <class T>
T normal_cdf(const T& x) {
  if constexpr (std::floating_point<T>) {
    return std::erfc(-x * static_cast<T>(std::numbers::sqrt2_v<long double> / 2)) / T(2);
  } else if constexpr (fenestra::detail::HasErfc<T> && fenestra::detail::HasSqrt<T>) {
    return scalar_erfc(T(-x * scalar_sqrt(T(T(1) / T(2))))) / T(2);
  } else {
    throw_no_function("normal_cdf");
  }
}

/// 1 - erfc(x); floating point has a function that keeps small results.
template <class T>
T erf(const T& x) {
  if constexpr (std::floating_point<T>) {
    return std::erf(x);
  } else if constexpr (fenestra::detail::HasErfc<T>) {
    return T(1) - scalar_erfc(x);
  } else {
    throw_no_function("erf");
  }
}

template <class T>
T sine_or_cosine(UnaryFunction f, const T& x) {
  if constexpr (fenestra::detail::HasSinAndCos<T>) {
    return f == UnaryFunction::sin ? scalar_sin(x) : scalar_cos(x);
  } else {
    throw_no_function(function_name(f));
  }
}

/// exp(x) - 1 cancels near zero, so it is one function; 0 belongs to the curve.
template <Transcendental T>
T elu(double alpha, const T& x) {
  return T(0) < x ? x : T(from_double<T>(alpha) * scalar_expm1(x));
}

template <class T>
T whole_number(UnaryFunction f, const T& x) {
  if constexpr (fenestra::detail::HasFloorAndRint<T>) {
    switch (f) {
      case UnaryFunction::floor: return scalar_floor(x);
      case UnaryFunction::ceil: return -scalar_floor(T(-x));
      default: return scalar_rint(x);
    }
  } else {
    throw_no_function(function_name(f));
  }
}

/// floor(a/b). Of floating-point numbers it is what the remainder leaves, which is exact: a/b alone
/// may round up to the next integer.
template <Field T>
T floor_divide(const T& a, const T& b) {
  if constexpr (std::floating_point<T>) {
    if (b == T(0)) {
      return a / b;
    }
    const T rest = std::fmod(a, b);
    T quotient = (a - rest) / b;
    if (rest != T(0) && (rest < T(0)) != (b < T(0))) {
      quotient -= T(1);
    }
    return quotient == T(0) ? std::copysign(T(0), a / b) : std::rint(quotient);
  } else if constexpr (fenestra::detail::HasFloorAndRint<T>) {
    return scalar_floor(T(a / b));
  } else {
    throw_no_function("floor_divide");
  }
}

/// a - b * floor(a/b), exact in floating point unless the last sum rounds.
template <Field T>
T mod(const T& a, const T& b) {
  if constexpr (std::floating_point<T>) {
    const T rest = std::fmod(a, b);
    if (rest == T(0)) {
      return std::copysign(T(0), b);
    }
    return (rest < T(0)) != (b < T(0)) ? rest + b : rest;
  } else {
    return a - b * floor_divide(a, b);
  }
}

/// Where < may have no answer (intervals) it throws, as everywhere.
template <OrderedScalar T>
bool is_equal(const T& a, const T& b) {
  if constexpr (TotallyOrdered<T>) {
    return a == b;
  } else {
    return !is_nan(a) && !is_nan(b) && !(a < b) && !(b < a);
  }
}

template <Transcendental T>
  requires(!std::floating_point<T>)
T transcendental(const UnaryCall& call, const T& x) {
  switch (call.f) {
    case UnaryFunction::exp: return scalar_exp(x);
    case UnaryFunction::log: return scalar_log(x);
    case UnaryFunction::sqrt:
      if constexpr (fenestra::detail::HasSqrt<T>) {
        return scalar_sqrt(x);
      } else {
        return scalar_pow(x, from_double<T>(0.5));
      }
    case UnaryFunction::sigmoid: return sigmoid(x);
    case UnaryFunction::tanh: return T(2) * sigmoid(T(x + x)) - T(1);
    case UnaryFunction::normal_cdf: return normal_cdf(x);
    case UnaryFunction::gelu: return x * normal_cdf(x);
    case UnaryFunction::silu: return x * sigmoid(x);
    case UnaryFunction::softplus: return softplus(x);
    case UnaryFunction::sin:
    case UnaryFunction::cos: return sine_or_cosine(call.f, x);
    case UnaryFunction::erf: return erf(x);
    case UnaryFunction::elu: return elu(call.a, x);
    default: return scalar_pow(x, from_double<T>(call.a));
  }
}

/// Floating-point tanh, sqrt and log1p exist; use them.
template <std::floating_point T>
T transcendental(const UnaryCall& call, const T& x) {
  switch (call.f) {
    case UnaryFunction::exp: return std::exp(x);
    case UnaryFunction::log: return std::log(x);
    case UnaryFunction::sqrt: return std::sqrt(x);
    case UnaryFunction::sigmoid: return sigmoid(x);
    case UnaryFunction::tanh: return std::tanh(x);
    case UnaryFunction::normal_cdf: return normal_cdf(x);
    case UnaryFunction::gelu: return x * normal_cdf(x);
    case UnaryFunction::silu: return x * sigmoid(x);
    case UnaryFunction::softplus: return softplus(x);
    case UnaryFunction::sin: return std::sin(x);
    case UnaryFunction::cos: return std::cos(x);
    case UnaryFunction::erf: return erf(x);
    case UnaryFunction::elu: return elu(call.a, x);
    default: return std::pow(x, static_cast<T>(call.a));
  }
}

/// Exponents that are multiplied out.
constexpr bool is_small_integer(double p) {
  return p >= -8 && p <= 8 && static_cast<double>(static_cast<int>(p)) == p;
}

/// x^n by multiplication: exact in every ring, and x^0 = 1 everywhere.
template <Scalar T>
T integer_power(const T& x, int n) {
  if (n < 0) {
    if constexpr (Field<T>) {
      return T(1) / integer_power(x, -n);
    } else {
      throw_no_function("power");
    }
  }
  T result = n == 0 ? T(1) : x;
  for (int i = 1; i < n; ++i) {
    result = result * x;
  }
  return result;
}

}  // namespace detail

/// min(max(x, a), b); NaN stays NaN. An infinite bound is none, which exact scalars need.
template <OrderedScalar T>
T clip(const UnaryCall& call, const T& x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (call.a > -kInfinity) {
    if (const T low = from_double<T>(call.a); x < low) {
      return low;
    }
  }
  if (call.b < kInfinity) {
    if (const T high = from_double<T>(call.b); high < x) {
      return high;
    }
  }
  return x;
}

template <OrderedScalar T>
T unary(const UnaryCall& call, const T& x) {
  switch (call.f) {
    case UnaryFunction::neg: return -x;
    case UnaryFunction::abs: return scalar_abs(x);
    case UnaryFunction::sign: return sign_of(x);
    case UnaryFunction::relu: return T(0) < x || is_nan(x) ? x : T(0);
    case UnaryFunction::leaky_relu: return T(0) < x ? x : T(from_double<T>(call.a) * x);
    case UnaryFunction::scale: return from_double<T>(call.a) * x;
    case UnaryFunction::clip: return clip(call, x);
    case UnaryFunction::floor:
    case UnaryFunction::ceil:
    case UnaryFunction::round: return detail::whole_number(call.f, x);
    case UnaryFunction::stop_gradient: return x;
    case UnaryFunction::hard_sigmoid:
      if constexpr (Field<T>) {
        // The bends belong to the flat parts, as in the derivative.
        if (!(T(-3) < x) && !is_nan(x)) {
          return T(0);
        }
        return x < T(3) || is_nan(x) ? T((x + T(3)) / T(6)) : T(1);
      }
      break;
    case UnaryFunction::power:
      if (detail::is_small_integer(call.a)) {
        return detail::integer_power(x, static_cast<int>(call.a));
      }
      [[fallthrough]];
    default:
      if constexpr (Transcendental<T>) {
        return detail::transcendental(call, x);
      }
      break;
  }
  detail::throw_no_function(function_name(call.f));
}

template <OrderedScalar T>
T binary(BinaryFunction f, const T& a, const T& b) {
  switch (f) {
    case BinaryFunction::add: return a + b;
    case BinaryFunction::sub: return a - b;
    case BinaryFunction::mul: return a * b;
    case BinaryFunction::div:
      if constexpr (Field<T>) {
        return a / b;
      }
      break;
    case BinaryFunction::pow:
      if constexpr (Transcendental<T>) {
        return scalar_pow(a, b);
      }
      break;
    case BinaryFunction::mod:
      if constexpr (Field<T>) {
        return detail::mod(a, b);
      }
      break;
    case BinaryFunction::floor_divide:
      if constexpr (Field<T>) {
        return detail::floor_divide(a, b);
      }
      break;
    case BinaryFunction::less: return a < b ? T(1) : T(0);
    case BinaryFunction::less_equal: return a < b || detail::is_equal(a, b) ? T(1) : T(0);
    case BinaryFunction::equal: return detail::is_equal(a, b) ? T(1) : T(0);
    case BinaryFunction::max: return scalar_max(a, b);
    case BinaryFunction::min: return -scalar_max(T(-a), T(-b));
  }
  detail::throw_no_function(function_name(f));
}

}  // namespace spec

}  // namespace fenestra

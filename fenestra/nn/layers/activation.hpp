// Activations: functions of one element.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/nn/description.hpp>
#include <fenestra/nn/pass.hpp>

#include <string_view>

namespace fenestra::nn {

enum class FENESTRA_API Nonlinearity {
  relu,
  relu6,         ///< min(max(x, 0), 6)
  leaky_relu,    ///< x, or a * x below 0
  elu,           ///< x, or a * (exp(x) - 1) below 0
  sigmoid,       ///< 1/(1 + exp(-x))
  hard_sigmoid,  ///< min(max(x + 3, 0), 6)/6
  tanh,
  silu,        ///< x * sigmoid(x)
  hard_swish,  ///< x * hard_sigmoid(x)
  gelu,        ///< x * normal_cdf(x)
  mish,        ///< x * tanh(softplus(x))
  softplus,    ///< log(1 + exp(x))
};
inline constexpr int kNonlinearities = 12;

constexpr std::string_view nonlinearity_name(Nonlinearity f) {
  switch (f) {
    case Nonlinearity::relu: return "relu";
    case Nonlinearity::relu6: return "relu6";
    case Nonlinearity::leaky_relu: return "leaky_relu";
    case Nonlinearity::elu: return "elu";
    case Nonlinearity::sigmoid: return "sigmoid";
    case Nonlinearity::hard_sigmoid: return "hard_sigmoid";
    case Nonlinearity::tanh: return "tanh";
    case Nonlinearity::silu: return "silu";
    case Nonlinearity::hard_swish: return "hard_swish";
    case Nonlinearity::gelu: return "gelu";
    case Nonlinearity::mish: return "mish";
    case Nonlinearity::softplus: return "softplus";
  }
  return "";
}

constexpr bool has_slope(Nonlinearity f) {
  return f == Nonlinearity::leaky_relu || f == Nonlinearity::elu;
}

/// f(x); `a` is for those that have one.
template <class T>
FENESTRA_API Value<T> activate(Nonlinearity f, const Value<T>& x, double a = 1);

/// One of them as a layer: `Relu()`, `LeakyRelu(0.1)`, `Elu(1.0)`.
template <class T, Nonlinearity f>
class FENESTRA_API BasicActivation {
 public:
  using Scalar = T;
  static constexpr std::string_view kind = nonlinearity_name(f);

  BasicActivation() = default;
  explicit BasicActivation(double a)
    requires(has_slope(f))
      : a_(a) {}

  Value<T> operator()(const Value<T>& x) const { return activate(f, x, a_); }
  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const {
    return pass.observed(kind, x, activate(f, x, a_));
  }

  Description describe() const;
  static BasicActivation build(const Description& description);

 private:
  double a_ = f == Nonlinearity::leaky_relu ? 0.01 : 1;
};

using Relu = BasicActivation<float, Nonlinearity::relu>;
using Relu6 = BasicActivation<float, Nonlinearity::relu6>;
using LeakyRelu = BasicActivation<float, Nonlinearity::leaky_relu>;
using Elu = BasicActivation<float, Nonlinearity::elu>;
using Sigmoid = BasicActivation<float, Nonlinearity::sigmoid>;
using HardSigmoid = BasicActivation<float, Nonlinearity::hard_sigmoid>;
using Tanh = BasicActivation<float, Nonlinearity::tanh>;
using Silu = BasicActivation<float, Nonlinearity::silu>;
using HardSwish = BasicActivation<float, Nonlinearity::hard_swish>;
using Gelu = BasicActivation<float, Nonlinearity::gelu>;
using Mish = BasicActivation<float, Nonlinearity::mish>;
using Softplus = BasicActivation<float, Nonlinearity::softplus>;

}  // namespace fenestra::nn

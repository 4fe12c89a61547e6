// The elementwise functions for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/signature.hpp>

#include <limits>
#include <optional>

namespace fenestra {

struct ElementwiseSignature {
  template <class D>
  static void declare(D& declarer) {
    declare_unary(declarer);
    declare_with_constants(declarer);
    declare_binary(declarer);
  }

 private:
  static constexpr std::string_view kShapes = "input (any) -> (the same)";
  static constexpr std::string_view kBroadcast = "two that broadcast -> their common shape";

  struct Named {
    UnaryFunction f;
    std::string_view name;
    std::string_view text;
    std::string_view example;
  };
  struct NamedBinary {
    BinaryFunction f;
    std::string_view name;
    std::string_view text;
    std::string_view example;
    std::string_view second = "other";
  };

  template <class D>
  static void declare_unary(D& declarer) {
    using F = UnaryFunction;
    static constexpr Named kFunctions[] = {
        {F::neg, "neg", "-input", ">>> fn.neg(2.)\nTensor(-2., dtype=float64)"},
        {F::exp, "exp", "e to the power of input", ">>> fn.exp(0.)\nTensor(1., dtype=float64)"},
        {F::log, "log", "The natural logarithm", ">>> fn.log(1.)\nTensor(0., dtype=float64)"},
        {F::sqrt, "sqrt", "The square root", ">>> fn.sqrt(9.)\nTensor(3., dtype=float64)"},
        {F::abs, "abs", "The absolute value", ">>> fn.abs(-3.)\nTensor(3., dtype=float64)"},
        {F::sign,
         "sign",
         "-1, 0 or 1; its derivative is 0",
         ">>> fn.sign(-3.)\nTensor(-1., dtype=float64)"},
        {F::relu,
         "relu",
         "max(input, 0); the derivative at 0 is 0",
         ">>> fn.relu(fn.tensor([-1., 2.]))\nTensor([0., 2.], dtype=float64)"},
        {F::sigmoid,
         "sigmoid",
         "1/(1 + exp(-input))",
         ">>> fn.sigmoid(0.)\nTensor(0.5, dtype=float64)"},
        {F::tanh, "tanh", "The hyperbolic tangent", ">>> fn.tanh(0.)\nTensor(0., dtype=float64)"},
        {F::normal_cdf,
         "normal_cdf",
         "The distribution function of the standard normal",
         ">>> fn.normal_cdf(0.)\nTensor(0.5, dtype=float64)"},
        {F::gelu,
         "gelu",
         "input * normal_cdf(input), the exact form",
         ">>> fn.gelu(0.)\nTensor(0., dtype=float64)"},
        {F::silu, "silu", "input * sigmoid(input)", ">>> fn.silu(0.)\nTensor(0., dtype=float64)"},
        {F::hard_sigmoid,
         "hard_sigmoid",
         "min(max(input + 3, 0), 6)/6",
         ">>> fn.hard_sigmoid(0.)\nTensor(0.5, dtype=float64)"},
        {F::softplus,
         "softplus",
         "log(1 + exp(input)) without overflow",
         ">>> fn.softplus(1000.)\nTensor(1000., dtype=float64)"},
        {F::sin, "sin", "The sine", ">>> fn.sin(0.)\nTensor(0., dtype=float64)"},
        {F::cos, "cos", "The cosine", ">>> fn.cos(0.)\nTensor(1., dtype=float64)"},
        {F::erf, "erf", "The error function", ">>> fn.erf(0.)\nTensor(0., dtype=float64)"},
        {F::floor,
         "floor",
         "The largest integer that is not above; the derivative is 0",
         ">>> fn.floor(-1.5)\nTensor(-2., dtype=float64)"},
        {F::ceil,
         "ceil",
         "The least integer that is not below; the derivative is 0",
         ">>> fn.ceil(1.5)\nTensor(2., dtype=float64)"},
        {F::round,
         "round",
         "The nearest integer, the even one of two; the derivative is 0",
         ">>> fn.round(fn.tensor([0.5, 1.5]))\nTensor([0., 2.], dtype=float64)"},
        {F::stop_gradient,
         "stop_gradient",
         "The input as a constant: no derivative passes",
         ">>> fn.grad(lambda x: x * fn.stop_gradient(x))(fn.tensor(3.))\n"
         "Tensor(3., dtype=float64)"},
    };
    for (const Named& named : kFunctions) {
      declarer.function(
          {.name = named.name, .text = named.text, .shapes = kShapes, .example = named.example},
          [f = named.f]<class V>(const V& x) { return unary({f}, x); },
          signature::Input{"input"});
    }
  }

  template <class D>
  static void declare_with_constants(D& declarer) {
    using namespace signature;
    static constexpr double kInfinity = std::numeric_limits<double>::infinity();
    declarer.function(
        {.name = "leaky_relu",
         .text = "input where positive, negative_slope * input elsewhere",
         .shapes = kShapes,
         .example = ">>> fn.leaky_relu(-4., 0.25)\nTensor(-1., dtype=float64)",
         .arguments = "negative_slope: the factor where the input is negative."},
        []<class V>(const V& x, double slope) { return leaky_relu(x, slope); },
        Input{"input"},
        Plain<double>{.name = "negative_slope", .otherwise = 0.01});
    declarer.function(
        {.name = "elu",
         .text = "input where positive, alpha * (exp(input) - 1) elsewhere",
         .shapes = kShapes,
         .example = ">>> fn.elu(fn.tensor([3., -1000.]), 0.5)\n"
                    "Tensor([ 3. , -0.5], dtype=float64)"},
        []<class V>(const V& x, double alpha) { return elu(x, alpha); },
        Input{"input"},
        Plain<double>{.name = "alpha", .otherwise = 1.0});
    declarer.function(
        {.name = "clip",
         .text = "min(max(input, min), max); without a bound where it is not given",
         .shapes = kShapes,
         .example = ">>> fn.clip(fn.tensor([-2., 0., 5.]), 0., 1.)\n"
                    "Tensor([0., 0., 1.], dtype=float64)",
         .arguments = "min: the lower bound, or None.\n"
                      "max: the upper bound, or None."},
        []<class V>(const V& x, std::optional<double> least, std::optional<double> most) {
          return clip(x, least.value_or(-kInfinity), most.value_or(kInfinity));
        },
        Input{"input"},
        Plain<std::optional<double>>{.name = "min", .otherwise = std::optional<double>{}},
        Plain<std::optional<double>>{.name = "max", .otherwise = std::optional<double>{}});
    declarer.function(
        {.name = "power",
         .text = "input to the power of a constant; pow takes a tensor as exponent",
         .shapes = kShapes,
         .example = ">>> fn.power(fn.tensor([1., 2., -3.]), 2)\n"
                    "Tensor([1., 4., 9.], dtype=float64)",
         .arguments = "exponent: a number."},
        []<class V>(const V& x, double exponent) { return power(x, exponent); },
        Input{"input"},
        Plain<double>{.name = "exponent"});
    declarer.function(
        {.name = "scale",
         .text = "input times a constant",
         .shapes = kShapes,
         .example = ">>> fn.scale(3., 0.5)\nTensor(1.5, dtype=float64)",
         .arguments = "factor: a number."},
        []<class V>(const V& x, double factor) { return scale(x, factor); },
        Input{"input"},
        Plain<double>{.name = "factor"});
  }

  template <class D>
  static void declare_binary(D& declarer) {
    using F = BinaryFunction;
    static constexpr NamedBinary kFunctions[] = {
        {F::add, "add", "input + other", ">>> fn.add(1., 2.)\nTensor(3., dtype=float64)"},
        {F::sub, "sub", "input - other", ">>> fn.sub(1., 2.)\nTensor(-1., dtype=float64)"},
        {F::mul, "mul", "input * other", ">>> fn.mul(3., 2.)\nTensor(6., dtype=float64)"},
        {F::div, "div", "input / other", ">>> fn.div(3., 2.)\nTensor(1.5, dtype=float64)"},
        {F::pow,
         "pow",
         "input to the power of exponent, both differentiable; input > 0",
         ">>> fn.pow(fn.tensor(2.), fn.tensor(3.))\nTensor(8., dtype=float64)",
         "exponent"},
        {F::min,
         "minimum",
         "The smaller of the two; input wins ties, NaN wins over numbers",
         ">>> fn.minimum(3., 2.)\nTensor(2., dtype=float64)"},
        {F::max,
         "maximum",
         "The larger of the two; input wins ties, NaN wins over numbers",
         ">>> fn.maximum(3., 2.)\nTensor(3., dtype=float64)"},
        {F::mod,
         "mod",
         "input - other * floor(input / other), of the sign of other; input % other says the same",
         ">>> fn.mod(-1., 3.)\nTensor(2., dtype=float64)"},
        {F::floor_divide,
         "floor_divide",
         "floor(input / other), with derivative 0; input // other says the same",
         ">>> fn.floor_divide(-1., 3.)\nTensor(-1., dtype=float64)"},
        {F::less,
         "less",
         "1 where input < other, 0 elsewhere; no derivative",
         ">>> fn.less(1., 2.)\nTensor(1., dtype=float64)"},
        {F::less_equal,
         "less_equal",
         "1 where input <= other, 0 elsewhere; no derivative",
         ">>> fn.less_equal(2., 2.)\nTensor(1., dtype=float64)"},
        {F::equal,
         "equal",
         "1 where input == other, 0 elsewhere; no derivative",
         ">>> fn.equal(1., 2.)\nTensor(0., dtype=float64)"},
    };
    for (const NamedBinary& named : kFunctions) {
      declarer.function(
          {.name = named.name, .text = named.text, .shapes = kBroadcast, .example = named.example},
          [f = named.f]<class V>(const V& a, const V& b) { return binary(f, a, b); },
          signature::Input{"input"},
          signature::Input{named.second});
    }
    declarer.function(
        {.name = "greater",
         .text = "1 where input > other, 0 elsewhere; no derivative",
         .shapes = kBroadcast,
         .example = ">>> fn.greater(1., 2.)\nTensor(0., dtype=float64)"},
        []<class V>(const V& a, const V& b) { return greater(a, b); },
        signature::Input{"input"},
        signature::Input{"other"});
    declarer.function(
        {.name = "greater_equal",
         .text = "1 where input >= other, 0 elsewhere; no derivative",
         .shapes = kBroadcast,
         .example = ">>> fn.greater_equal(2., 2.)\nTensor(1., dtype=float64)"},
        []<class V>(const V& a, const V& b) { return greater_equal(a, b); },
        signature::Input{"input"},
        signature::Input{"other"});
    declarer.function(
        {.name = "not_equal",
         .text = "1 where input != other, 0 elsewhere; no derivative",
         .shapes = kBroadcast,
         .example = ">>> fn.not_equal(1., 2.)\nTensor(1., dtype=float64)"},
        []<class V>(const V& a, const V& b) { return not_equal(a, b); },
        signature::Input{"input"},
        signature::Input{"other"});
  }
};

}  // namespace fenestra

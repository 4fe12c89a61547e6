// Activations.
#include <fenestra/nn/layers/activation.hpp>
#include <fenestra/nn/layers/fields.hpp>
#include <fenestra/ops/elementwise/call.hpp>

#include <limits>
#include <utility>

namespace fenestra::nn {

template <class T>
Value<T> activate(Nonlinearity f, const Value<T>& x, double a) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (f) {
    case Nonlinearity::relu: return relu(x);
    case Nonlinearity::relu6: return clip(x, 0, 6);
    case Nonlinearity::leaky_relu: return leaky_relu(x, a);
    case Nonlinearity::elu: {
      // exp(x) - 1 = tanh(x/2) * (exp(x) + 1) loses no digits near 0; above 0 it is not wanted, and
      // must not overflow.
      const Value<T> below = clip(x, -kInfinity, 0);
      const Value<T> raised = exp(below) + 1;
      return add(relu(x), scale(mul(tanh(scale(below, 0.5)), raised), a));
    }
    case Nonlinearity::sigmoid: return sigmoid(x);
    case Nonlinearity::hard_sigmoid: return hard_sigmoid(x);
    case Nonlinearity::tanh: return tanh(x);
    case Nonlinearity::silu: return silu(x);
    case Nonlinearity::hard_swish: return mul(x, hard_sigmoid(x));
    case Nonlinearity::gelu: return gelu(x);
    case Nonlinearity::mish: return mul(x, tanh(softplus(x)));
    case Nonlinearity::softplus: return softplus(x);
  }
  return x;
}
template Value<float> activate(Nonlinearity f, const Value<float>& x, double a);
template Value<double> activate(Nonlinearity f, const Value<double>& x, double a);

template <class T, Nonlinearity f>
Description BasicActivation<T, f>::describe() const {
  Description result = Description::of_layer(kind);
  if (has_slope(f) && a_ != BasicActivation().a_) {
    result.add("slope", a_);
  }
  return result;
}

template <class T, Nonlinearity f>
BasicActivation<T, f> BasicActivation<T, f>::build(const Description& description) {
  FieldReader reader(description);
  BasicActivation result;
  if constexpr (has_slope(f)) {
    reader.optional("slope", result.a_);
  }
  reader.finish();
  return result;
}

template class BasicActivation<float, Nonlinearity::relu>;
template class BasicActivation<double, Nonlinearity::relu>;
template class BasicActivation<float, Nonlinearity::relu6>;
template class BasicActivation<double, Nonlinearity::relu6>;
template class BasicActivation<float, Nonlinearity::leaky_relu>;
template class BasicActivation<double, Nonlinearity::leaky_relu>;
template class BasicActivation<float, Nonlinearity::elu>;
template class BasicActivation<double, Nonlinearity::elu>;
template class BasicActivation<float, Nonlinearity::sigmoid>;
template class BasicActivation<double, Nonlinearity::sigmoid>;
template class BasicActivation<float, Nonlinearity::hard_sigmoid>;
template class BasicActivation<double, Nonlinearity::hard_sigmoid>;
template class BasicActivation<float, Nonlinearity::tanh>;
template class BasicActivation<double, Nonlinearity::tanh>;
template class BasicActivation<float, Nonlinearity::silu>;
template class BasicActivation<double, Nonlinearity::silu>;
template class BasicActivation<float, Nonlinearity::hard_swish>;
template class BasicActivation<double, Nonlinearity::hard_swish>;
template class BasicActivation<float, Nonlinearity::gelu>;
template class BasicActivation<double, Nonlinearity::gelu>;
template class BasicActivation<float, Nonlinearity::mish>;
template class BasicActivation<double, Nonlinearity::mish>;
template class BasicActivation<float, Nonlinearity::softplus>;
template class BasicActivation<double, Nonlinearity::softplus>;

}  // namespace fenestra::nn

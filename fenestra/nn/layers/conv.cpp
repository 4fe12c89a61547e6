// Convolution, transposed convolution and linear layers.
#include <fenestra/nn/initialise.hpp>
#include <fenestra/nn/layers/conv.hpp>
#include <fenestra/nn/layers/fields.hpp>
#include <fenestra/nn/layers/reach.hpp>
#include <fenestra/ops/conv/call.hpp>
#include <fenestra/ops/conv_transpose/call.hpp>
#include <fenestra/ops/matmul/call.hpp>
#include <fenestra/spec/window.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace fenestra::nn {

template <class A>
void list_fields(const ConvSettings&, A&& a) {
  a("kernel", &ConvSettings::kernel);
  conv_fields<ConvSettings>([&]<class V>(std::string_view name,
                                         V ConvSettings::*member,
                                         const FieldInfo&) { a(name, member); });
  a("bias", &ConvSettings::bias);
}
template <class A>
void list_fields(const ConvTransposeSettings&, A&& a) {
  using S = ConvTransposeSettings;
  a("kernel", &S::kernel);
  conv_transpose_fields<S>(
      [&]<class V>(std::string_view name, V S::*member, const FieldInfo&) { a(name, member); });
  a("bias", &S::bias);
}
template <class A>
void list_fields(const LinearSettings&, A&& a) {
  a("bias", &LinearSettings::bias);
}

namespace {

/// A kernel of one number is of two axes: what most networks look at are pictures.
int spatial_rank(const PerAxis& kernel) { return kernel.is_scalar() ? 2 : kernel.count; }

[[noreturn]] void refuse(std::string_view kind,
                         ErrorCode code,
                         const std::string& got,
                         const std::string& fix) {
  throw Error(std::string(kind),
              {.code = code},
              "layer \"" + std::string(kind) + "\": " + got + "\n  fix: " + fix);
}

void require_channels(std::string_view kind, Index in, Index out, Index groups) {
  if (in < 1 || out < 1) {
    refuse(kind,
           ErrorCode::invalid_extent,
           "in = " + std::to_string(in) + ", out = " + std::to_string(out),
           "at least 1 of each");
  }
  if (groups < 1 || in % groups != 0 || out % groups != 0) {
    refuse(kind,
           groups < 1 ? ErrorCode::invalid_groups : ErrorCode::channels_not_divisible,
           "in = " + std::to_string(in) + ", out = " + std::to_string(out) +
               ", groups = " + std::to_string(groups),
           "groups that divide both");
  }
}

/// (first, second, kernel...), of zeros.
template <class T>
Tensor<T> zero_weight(std::string_view kind, Index first, Index second, const PerAxis& kernel) {
  Shape shape{first, second};
  for (int axis = 0; axis < spatial_rank(kernel); ++axis) {
    if (kernel[axis] < 1 || !kernel.is_given()) {
      refuse(kind,
             ErrorCode::invalid_kernel,
             "kernel = " + std::to_string(kernel[axis]) + " on axis " + std::to_string(axis),
             "at least 1");
    }
    shape.push_back(kernel[axis]);
  }
  return Tensor<T>(shape);
}

/// Keeps the variance of activations through rectifiers: deviation sqrt(2/fan in).
Initial kaiming(double fan_in) { return {Initial::Draw::uniform, std::sqrt(6 / fan_in)}; }

template <class T>
std::optional<Parameter<T>> zero_bias(bool has_bias, Index out) {
  if (!has_bias) {
    return std::nullopt;
  }
  return Parameter<T>{Tensor<T>(Shape{out}), {Initial::Draw::constant, 0}};
}

double taps_of(const Shape& weight) {
  double taps = 1;
  for (int axis = 2; axis < weight.rank(); ++axis) {
    taps *= static_cast<double>(weight[axis]);
  }
  return taps;
}

}  // namespace

// --- conv --------------------------------------------------------------------------------------

template <class T>
BasicConv<T>::BasicConv(Index in, Index out, const ConvSettings& settings)
    : in_(in), out_(out), settings_(settings), options_(operator_options<ConvOptions>(settings)) {
  require_channels(kind, in, out, settings.groups);
  const Tensor<T> w = zero_weight<T>(kind, out, in / settings.groups, settings.kernel);
  const double fan_in = static_cast<double>(in / settings.groups) * taps_of(w.shape());
  weight = {w, kaiming(fan_in)};
  bias = zero_bias<T>(settings.bias, out);
}

template <class T>
Value<T> BasicConv<T>::operator()(const Value<T>& x) const {
  return bias ? conv(x, weight.value, bias->value, options_) : conv(x, weight.value, options_);
}

template <class T>
Value<T> BasicConv<T>::operator()(const Value<T>& x, Pass<T>& pass) const {
  Value<T> y = (*this)(x);
  if (!pass.is_observed()) {
    return y;
  }
  LayerReach reach;
  for (int axis = 0; axis < spatial_rank(settings_.kernel); ++axis) {
    reach.axes.push_back(
        window_reach(settings_.kernel[axis], settings_.stride[axis], settings_.dilation[axis]));
  }
  return pass.observed(kind, x, std::move(y), reach);
}

template <class T>
Description BasicConv<T>::describe() const {
  return describe_layer(kind, settings_, NeededField{"in", in_}, NeededField{"out", out_});
}

template <class T>
BasicConv<T> BasicConv<T>::build(const Description& description) {
  return layer_of<BasicConv, ConvSettings>(
      description, NeededField<Index>{"in"}, NeededField<Index>{"out"});
}

// --- conv_transpose ----------------------------------------------------------------------------

template <class T>
BasicConvTranspose<T>::BasicConvTranspose(Index in,
                                          Index out,
                                          const ConvTransposeSettings& settings)
    : in_(in),
      out_(out),
      settings_(settings),
      options_(operator_options<ConvTransposeOptions>(settings)) {
  require_channels(kind, in, out, settings.groups);
  const Tensor<T> w = zero_weight<T>(kind, in, out / settings.groups, settings.kernel);
  // Of the taps, one in stride sees a cell of the output.
  double fan_in = static_cast<double>(in / settings.groups) * taps_of(w.shape());
  for (int axis = 0; axis < spatial_rank(settings.kernel); ++axis) {
    fan_in /= static_cast<double>(
        std::max<Index>(1, std::min(settings.stride[axis], settings.kernel[axis])));
  }
  weight = {w, kaiming(fan_in)};
  bias = zero_bias<T>(settings.bias, out);
}

template <class T>
Value<T> BasicConvTranspose<T>::operator()(const Value<T>& x) const {
  return bias ? conv_transpose(x, weight.value, bias->value, options_)
              : conv_transpose(x, weight.value, options_);
}

template <class T>
Value<T> BasicConvTranspose<T>::operator()(const Value<T>& x, Pass<T>& pass) const {
  Value<T> y = (*this)(x);
  if (!pass.is_observed()) {
    return y;
  }
  LayerReach reach;
  for (int axis = 0; axis < spatial_rank(settings_.kernel); ++axis) {
    reach.axes.push_back(
        transposed_reach(settings_.kernel[axis], settings_.stride[axis], settings_.dilation[axis]));
  }
  return pass.observed(kind, x, std::move(y), reach);
}

template <class T>
Description BasicConvTranspose<T>::describe() const {
  return describe_layer(kind, settings_, NeededField{"in", in_}, NeededField{"out", out_});
}

template <class T>
BasicConvTranspose<T> BasicConvTranspose<T>::build(const Description& description) {
  return layer_of<BasicConvTranspose, ConvTransposeSettings>(
      description, NeededField<Index>{"in"}, NeededField<Index>{"out"});
}

// --- linear ------------------------------------------------------------------------------------

template <class T>
BasicLinear<T>::BasicLinear(Index in, Index out, const LinearSettings& settings)
    : in_(in), out_(out), settings_(settings) {
  require_channels(kind, in, out, 1);
  weight = {Tensor<T>(Shape{out, in}), kaiming(static_cast<double>(in))};
  bias = zero_bias<T>(settings.bias, out);
}

template <class T>
Value<T> BasicLinear<T>::operator()(const Value<T>& x) const {
  return bias ? linear(x, weight.value, bias->value) : linear(x, weight.value);
}

template <class T>
Value<T> BasicLinear<T>::operator()(const Value<T>& x, Pass<T>& pass) const {
  return pass.observed(kind, x, (*this)(x), {.whole = true});
}

template <class T>
Description BasicLinear<T>::describe() const {
  return describe_layer(kind, settings_, NeededField{"in", in_}, NeededField{"out", out_});
}

template <class T>
BasicLinear<T> BasicLinear<T>::build(const Description& description) {
  return layer_of<BasicLinear, LinearSettings>(
      description, NeededField<Index>{"in"}, NeededField<Index>{"out"});
}

template class BasicConv<float>;
template class BasicConv<double>;
template class BasicConvTranspose<float>;
template class BasicConvTranspose<double>;
template class BasicLinear<float>;
template class BasicLinear<double>;

}  // namespace fenestra::nn

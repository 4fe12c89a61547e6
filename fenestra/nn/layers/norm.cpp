// Normalisation layers.
#include <fenestra/nn/layers/fields.hpp>
#include <fenestra/nn/layers/norm.hpp>
#include <fenestra/ops/elementwise/call.hpp>
#include <fenestra/ops/normalise/call.hpp>
#include <fenestra/ops/transpose/call.hpp>

#include <string>
#include <utility>
#include <vector>

namespace fenestra::nn {

template <class A>
void list_fields(const BatchNormSettings&, A&& a) {
  using S = BatchNormSettings;
  a("momentum", &S::momentum);
  a("epsilon", &S::epsilon);
  a("affine", &S::affine);
}
template <class A>
void list_fields(const NormSettings&, A&& a) {
  a("epsilon", &NormSettings::epsilon);
  a("affine", &NormSettings::affine);
}
template <class A>
void list_fields(const LayerNormSettings&, A&& a) {
  using S = LayerNormSettings;
  a("epsilon", &S::epsilon);
  a("affine", &S::affine);
  a("channels", &S::channels);
}

namespace {

[[noreturn]] void refuse(std::string_view kind,
                         ErrorCode code,
                         const std::string& got,
                         const std::string& fix) {
  throw Error(std::string(kind),
              {.code = code},
              "layer \"" + std::string(kind) + "\": " + got + "\n  fix: " + fix);
}

void require_count(std::string_view kind,
                   std::string_view what,
                   Index count,
                   ErrorCode code = ErrorCode::invalid_extent) {
  if (count < 1) {
    refuse(kind, code, std::string(what) + " = " + std::to_string(count), "at least 1");
  }
}

template <class T>
std::optional<Parameter<T>> affine_parameter(bool affine, const Shape& shape, double begin) {
  if (!affine) {
    return std::nullopt;
  }
  return Parameter<T>{Tensor<T>(shape, static_cast<T>(begin)), {Initial::Draw::constant, begin}};
}

}  // namespace

// --- batch_norm --------------------------------------------------------------------------------

template <class T>
BasicBatchNorm<T>::BasicBatchNorm(Index channels, const BatchNormSettings& settings)
    : channels_(channels), settings_(settings) {
  require_count(kind, "channels", channels);
  if (!(settings.momentum >= 0 && settings.momentum <= 1)) {
    refuse(kind,
           ErrorCode::invalid_option,
           "momentum = " + std::to_string(settings.momentum),
           "from 0 to 1");
  }
  const Shape shape{channels};
  weight = affine_parameter<T>(settings.affine, shape, 1);
  bias = affine_parameter<T>(settings.affine, shape, 0);
  running_mean.value = Tensor<T>(shape);
  running_var.value = Tensor<T>(shape, T(1));
}

template <class T>
Value<T> BasicBatchNorm<T>::trained(const Value<T>& x, Pass<T>& pass) const {
  const NormOptions options{.eps = settings_.epsilon};
  const Index count = x.shape().elements().value_or(0) / channels_;
  if (count < 2) {
    throw Error(
        std::string(kind),
        {.code = ErrorCode::invalid_extent, .argument = Argument::x, .got = count, .needed = 2},
        "layer \"batch_norm\": x = " + to_string(x.shape()) + " has " + std::to_string(count) +
            " elements for each channel, and training needs their variance\n  fix: a "
            "larger batch, or a pass of inference");
  }
  const auto [y, mean, var] =
      weight ? batch_norm(x, weight->value, bias->value, options) : batch_norm(x, options);
  const auto moved = [&](const Buffer<T>& buffer, const Value<T>& now, double factor) {
    const double share = settings_.momentum;
    pass.update(buffer,
                add(scale(pass.current(buffer), 1 - share), scale(detached(now), share * factor)));
  };
  moved(running_mean, mean, 1);
  moved(running_var, var, static_cast<double>(count) / static_cast<double>(count - 1));
  return y;
}

template <class T>
Value<T> BasicBatchNorm<T>::operator()(const Value<T>& x, Pass<T>& pass) const {
  if (x.rank() < 2 || x.shape()[1] != channels_) {
    throw Error(std::string(kind),
                {.code = ErrorCode::channel_mismatch,
                 .argument = Argument::x,
                 .got = x.rank() < 2 ? 0 : x.shape()[1],
                 .needed = channels_},
                "layer \"batch_norm\": x = " + to_string(x.shape()) + ", needed (N, " +
                    std::to_string(channels_) + ", ...)\n  fix: as many channels as the layer has");
  }
  if (pass.is_training()) {
    return pass.observed(kind, x, pass.of_leaf(x, [this](const Value<T>& leaf, Pass<T>& leaf_pass) {
      return trained(leaf, leaf_pass);
    }));
  }
  const NormOptions options{.eps = settings_.epsilon};
  const Value<T>& mean = running_mean.value;
  const Value<T>& var = running_var.value;
  Value<T> y = weight ? batch_norm_inference(x, mean, var, weight->value, bias->value, options)
                      : batch_norm_inference(x, mean, var, options);
  return pass.observed(kind, x, std::move(y));
}

template <class T>
Description BasicBatchNorm<T>::describe() const {
  return describe_layer(kind, settings_, NeededField{"channels", channels_});
}

template <class T>
BasicBatchNorm<T> BasicBatchNorm<T>::build(const Description& description) {
  return layer_of<BasicBatchNorm, BatchNormSettings>(description, NeededField<Index>{"channels"});
}

// --- group_norm --------------------------------------------------------------------------------

template <class T>
BasicGroupNorm<T>::BasicGroupNorm(Index groups, Index channels, const NormSettings& settings)
    : groups_(groups), channels_(channels), settings_(settings) {
  require_count(kind, "channels", channels);
  require_count(kind, "groups", groups, ErrorCode::invalid_groups);
  if (channels % groups != 0) {
    refuse(kind,
           ErrorCode::channels_not_divisible,
           "groups = " + std::to_string(groups) + ", channels = " + std::to_string(channels),
           "groups that divide the channels");
  }
  weight = affine_parameter<T>(settings.affine, Shape{channels}, 1);
  bias = affine_parameter<T>(settings.affine, Shape{channels}, 0);
}

template <class T>
Value<T> BasicGroupNorm<T>::operator()(const Value<T>& x) const {
  const NormOptions options{.eps = settings_.epsilon};
  return weight ? group_norm(x, groups_, weight->value, bias->value, options)
                : group_norm(x, groups_, options);
}

template <class T>
Value<T> BasicGroupNorm<T>::operator()(const Value<T>& x, Pass<T>& pass) const {
  return pass.observed(kind, x, (*this)(x));
}

template <class T>
Description BasicGroupNorm<T>::describe() const {
  return describe_layer(
      kind, settings_, NeededField{"groups", groups_}, NeededField{"channels", channels_});
}

template <class T>
BasicGroupNorm<T> BasicGroupNorm<T>::build(const Description& description) {
  return layer_of<BasicGroupNorm, NormSettings>(
      description, NeededField<Index>{"groups"}, NeededField<Index>{"channels"});
}

// --- instance_norm -----------------------------------------------------------------------------

template <class T>
BasicInstanceNorm<T>::BasicInstanceNorm(Index channels, const NormSettings& settings)
    : channels_(channels), settings_(settings) {
  require_count(kind, "channels", channels);
  weight = affine_parameter<T>(settings.affine, Shape{channels}, 1);
  bias = affine_parameter<T>(settings.affine, Shape{channels}, 0);
}

template <class T>
Value<T> BasicInstanceNorm<T>::operator()(const Value<T>& x) const {
  const NormOptions options{.eps = settings_.epsilon};
  return weight ? group_norm(x, channels_, weight->value, bias->value, options)
                : group_norm(x, channels_, options);
}

template <class T>
Value<T> BasicInstanceNorm<T>::operator()(const Value<T>& x, Pass<T>& pass) const {
  return pass.observed(kind, x, (*this)(x));
}

template <class T>
Description BasicInstanceNorm<T>::describe() const {
  return describe_layer(kind, settings_, NeededField{"channels", channels_});
}

template <class T>
BasicInstanceNorm<T> BasicInstanceNorm<T>::build(const Description& description) {
  return layer_of<BasicInstanceNorm, NormSettings>(description, NeededField<Index>{"channels"});
}

// --- layer_norm --------------------------------------------------------------------------------

template <class T>
BasicLayerNorm<T>::BasicLayerNorm(const Shape& shape, const LayerNormSettings& settings)
    : shape_(shape), settings_(settings) {
  if (shape.rank() == 0 || shape.elements().value_or(0) < 1 ||
      (settings.channels && shape.rank() != 1)) {
    refuse(kind,
           ErrorCode::invalid_extent,
           "shape = " + to_string(shape),
           settings.channels ? "the number of channels" : "the extents of the last axes");
  }
  weight = affine_parameter<T>(settings.affine, shape, 1);
  bias = affine_parameter<T>(settings.affine, shape, 0);
}

template <class T>
Value<T> BasicLayerNorm<T>::over_last(const Value<T>& x) const {
  bool fits = x.rank() >= shape_.rank();
  for (int axis = 0; fits && axis < shape_.rank(); ++axis) {
    fits = x.shape()[x.rank() - shape_.rank() + axis] == shape_[axis];
  }
  if (!fits) {
    throw Error(std::string(kind),
                {.code = ErrorCode::shape_mismatch, .argument = Argument::x},
                "layer \"layer_norm\": x = " + to_string(x.shape()) +
                    (settings_.channels ? " with its channels last" : "") + " does not end with " +
                    to_string(shape_) + "\n  fix: the extents that the layer was made for");
  }
  return weight ? layer_norm(x, weight->value, bias->value, settings_.epsilon)
                : layer_norm(x, shape_.rank(), settings_.epsilon);
}

template <class T>
Value<T> BasicLayerNorm<T>::operator()(const Value<T>& x) const {
  if (!settings_.channels || x.rank() <= 2) {
    return over_last(x);
  }
  // (N, C, spatial...) to (N, spatial..., C) and back.
  std::vector<int> last{0};
  std::vector<int> back{0, x.rank() - 1};
  for (int axis = 2; axis < x.rank(); ++axis) {
    last.push_back(axis);
    back.push_back(axis - 1);
  }
  last.push_back(1);
  return transpose(over_last(transpose(x, std::span<const int>(last))), std::span<const int>(back));
}

template <class T>
Value<T> BasicLayerNorm<T>::operator()(const Value<T>& x, Pass<T>& pass) const {
  return pass.observed(kind, x, (*this)(x));
}

template <class T>
Description BasicLayerNorm<T>::describe() const {
  return describe_layer(kind, settings_, NeededField{"shape", shape_});
}

template <class T>
BasicLayerNorm<T> BasicLayerNorm<T>::build(const Description& description) {
  return layer_of<BasicLayerNorm, LayerNormSettings>(description, NeededField<Shape>{"shape"});
}

template class BasicBatchNorm<float>;
template class BasicBatchNorm<double>;
template class BasicGroupNorm<float>;
template class BasicGroupNorm<double>;
template class BasicInstanceNorm<float>;
template class BasicInstanceNorm<double>;
template class BasicLayerNorm<float>;
template class BasicLayerNorm<double>;

}  // namespace fenestra::nn

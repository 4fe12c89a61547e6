// Layers that move or drop numbers.
#include <fenestra/nn/layers/fields.hpp>
#include <fenestra/nn/layers/shape.hpp>
#include <fenestra/ops/elementwise/call.hpp>
#include <fenestra/ops/reshape/call.hpp>
#include <fenestra/ops/resize/call.hpp>

#include <string>
#include <utility>

namespace fenestra::nn {

template <class A>
void list_fields(const UpsampleSettings&, A&& a) {
  using S = UpsampleSettings;
  a("factor", &S::factor);
  a("bilinear", &S::bilinear);
  a("align_corners", &S::align_corners);
}
template <class A>
void list_fields(const DropoutSettings&, A&& a) {
  a("channels", &DropoutSettings::channels);
}

namespace {

/// (1, C, 1, ...), which broadcasts over x.
Shape over_channels(const Shape& x, Index samples) {
  Shape shape = x;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    shape[axis] = axis == 0 ? samples : axis == 1 ? x[1] : 1;
  }
  return shape;
}

}  // namespace

// --- identity, flatten -------------------------------------------------------------------------

template <class T>
BasicIdentity<T> BasicIdentity<T>::build(const Description& description) {
  FieldReader(description).finish();
  return {};
}

template <class T>
Value<T> BasicFlatten<T>::operator()(const Value<T>& x) const {
  if (x.rank() < 1) {
    throw Error(std::string(kind),
                {.code = ErrorCode::rank_mismatch, .argument = Argument::x, .got = 0, .needed = 1},
                "layer \"flatten\": x has no axis of samples\n  fix: (N, ...)");
  }
  Index rest = 1;  // not -1: a batch may be empty
  for (int axis = 1; axis < x.rank(); ++axis) {
    rest *= x.shape()[axis];
  }
  return reshape(x, Shape{x.shape()[0], rest});
}

template <class T>
BasicFlatten<T> BasicFlatten<T>::build(const Description& description) {
  FieldReader(description).finish();
  return {};
}

// --- upsample ----------------------------------------------------------------------------------

template <class T>
BasicUpsample<T>::BasicUpsample(const UpsampleSettings& settings) : settings_(settings) {
  for (int axis = 0; axis < std::max(1, settings.factor.count); ++axis) {
    if (settings.factor[axis] < 1) {
      throw Error(std::string(kind),
                  {.code = ErrorCode::invalid_option, .got = settings.factor[axis], .needed = 1},
                  "layer \"upsample\": factor = " + std::to_string(settings.factor[axis]) +
                      "\n  fix: at least 1");
    }
  }
}

template <class T>
Value<T> BasicUpsample<T>::operator()(const Value<T>& x) const {
  if (x.rank() < 3 || !settings_.factor.fits(x.rank() - 2)) {
    throw Error(std::string(kind),
                {.code = ErrorCode::rank_mismatch, .argument = Argument::x, .got = x.rank()},
                "layer \"upsample\": x = " + to_string(x.shape()) +
                    "\n  fix: (N, C, spatial...), with a factor for each spatial axis or one for "
                    "all");
  }
  PerAxis size;
  for (int axis = 2; axis < x.rank(); ++axis) {
    size.push_back(x.shape()[axis] * settings_.factor[axis - 2]);
  }
  return resize(x,
                {.size = size,
                 .mode = settings_.bilinear ? ResizeMode::bilinear : ResizeMode::nearest,
                 .align_corners = settings_.align_corners});
}

template <class T>
Value<T> BasicUpsample<T>::operator()(const Value<T>& x, Pass<T>& pass) const {
  Value<T> y = (*this)(x);
  LayerReach reach;
  for (int axis = 0; axis < x.rank() - 2; ++axis) {
    reach.axes.push_back(
        {settings_.bilinear ? 2.0 : 1.0, 1.0 / static_cast<double>(settings_.factor[axis])});
  }
  return pass.observed(kind, x, std::move(y), reach);
}

template <class T>
Description BasicUpsample<T>::describe() const {
  return describe_layer(kind, settings_);
}

template <class T>
BasicUpsample<T> BasicUpsample<T>::build(const Description& description) {
  return layer_of<BasicUpsample, UpsampleSettings>(description);
}

// --- dropout -----------------------------------------------------------------------------------

template <class T>
BasicDropout<T>::BasicDropout(double drop, const DropoutSettings& settings)
    : drop_(drop), settings_(settings) {
  if (!(drop >= 0 && drop < 1)) {
    throw Error(std::string(kind),
                {.code = ErrorCode::invalid_option},
                "layer \"dropout\": drop = " + std::to_string(drop) + "\n  fix: 0 <= drop < 1");
  }
}

template <class T>
Value<T> BasicDropout<T>::operator()(const Value<T>& x, Pass<T>& pass) const {
  if (!pass.is_training() || drop_ == 0) {
    return pass.observed(kind, x, x);
  }
  if (settings_.channels && x.rank() < 2) {
    throw Error(
        std::string(kind),
        {.code = ErrorCode::rank_mismatch, .argument = Argument::x, .got = x.rank(), .needed = 2},
        "layer \"dropout\": x = " + to_string(x.shape()) + " has no channels\n  fix: (N, C, ...)");
  }
  const auto dropped = [this](const Value<T>& leaf, Pass<T>& leaf_pass) {
    const Shape& all = leaf.shape();
    const Shape shape = settings_.channels ? over_channels(all, all[0]) : all;
    return Value<T>(mul(leaf, leaf_pass.keep_mask(shape, 1 - drop_)));
  };
  return pass.observed(kind, x, pass.of_leaf(x, dropped));
}

template <class T>
Description BasicDropout<T>::describe() const {
  return describe_layer(kind, settings_, NeededField{"drop", drop_});
}

template <class T>
BasicDropout<T> BasicDropout<T>::build(const Description& description) {
  return layer_of<BasicDropout, DropoutSettings>(description, NeededField<double>{"drop"});
}

// --- channel_scale -----------------------------------------------------------------------------

template <class T>
BasicChannelScale<T>::BasicChannelScale(Index channels, double begin) : begin_(begin) {
  weight = {Tensor<T>(Shape{channels}, static_cast<T>(begin)), {Initial::Draw::constant, begin}};
}

template <class T>
Value<T> BasicChannelScale<T>::operator()(const Value<T>& x) const {
  const Index channels = weight.value.shape()[0];
  if (x.rank() < 2 || x.shape()[1] != channels) {
    throw Error(std::string(kind),
                {.code = ErrorCode::channel_mismatch, .argument = Argument::x, .needed = channels},
                "layer \"channel_scale\": x = " + to_string(x.shape()) + "\n  fix: (N, " +
                    std::to_string(channels) + ", ...)");
  }
  return mul(x, reshape(weight.value, over_channels(x.shape(), 1)));
}

template <class T>
Description BasicChannelScale<T>::describe() const {
  Description result = Description::of_layer(kind);
  result.add("channels", to_description(weight.value.shape()[0]));
  result.add("begin", begin_);
  return result;
}

template <class T>
BasicChannelScale<T> BasicChannelScale<T>::build(const Description& description) {
  FieldReader reader(description);
  const Index channels = reader.needed<Index>("channels");
  double begin = 1;
  reader.optional("begin", begin);
  reader.finish();
  return BasicChannelScale(channels, begin);
}

template class BasicIdentity<float>;
template class BasicIdentity<double>;
template class BasicFlatten<float>;
template class BasicFlatten<double>;
template class BasicUpsample<float>;
template class BasicUpsample<double>;
template class BasicDropout<float>;
template class BasicDropout<double>;
template class BasicChannelScale<float>;
template class BasicChannelScale<double>;

}  // namespace fenestra::nn

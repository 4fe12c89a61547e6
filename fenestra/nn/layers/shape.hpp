// Layers that move or drop numbers: Identity, Flatten, Upsample, Dropout, ChannelScale.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/nn/description.hpp>
#include <fenestra/nn/pass.hpp>
#include <fenestra/nn/slots.hpp>
#include <fenestra/spec/options.hpp>

#include <string>
#include <string_view>

namespace fenestra::nn {

/// x as it is: a branch that is a short cut.
template <class T>
class FENESTRA_API BasicIdentity {
 public:
  using Scalar = T;
  static constexpr std::string_view kind = "identity";
  Value<T> operator()(const Value<T>& x) const { return x; }
  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const { return pass.observed(kind, x, x); }
  Description describe() const { return Description::of_layer(kind); }
  static BasicIdentity build(const Description& description);
};
using Identity = BasicIdentity<float>;

/// (N, ...) to (N, all the rest).
template <class T>
class FENESTRA_API BasicFlatten {
 public:
  using Scalar = T;
  static constexpr std::string_view kind = "flatten";
  Value<T> operator()(const Value<T>& x) const;
  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const {
    return pass.observed(kind, x, (*this)(x));
  }
  Description describe() const { return Description::of_layer(kind); }
  static BasicFlatten build(const Description& description);
};
using Flatten = BasicFlatten<float>;

/// The spatial axes enlarged by whole factors; `bilinear` interpolates along every axis, otherwise
/// cells are repeated.
struct UpsampleSettings {
  PerAxis factor = 2;
  bool bilinear = false;
  bool align_corners = false;  ///< bilinear only
};

template <class T>
class FENESTRA_API BasicUpsample {
 public:
  using Scalar = T;
  static constexpr std::string_view kind = "upsample";

  explicit BasicUpsample(const UpsampleSettings& settings = {});

  Value<T> operator()(const Value<T>& x) const;
  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const;

  Description describe() const;
  static BasicUpsample build(const Description& description);

 private:
  UpsampleSettings settings_;
};
using Upsample = BasicUpsample<float>;

/// In training each element is 0 with probability `drop`, and 1/(1 - drop) times itself otherwise;
/// in inference everything is as it is. With `channels`, whole channels are dropped together.
struct DropoutSettings {
  bool channels = false;
};

template <class T>
class FENESTRA_API BasicDropout {
 public:
  using Scalar = T;
  static constexpr std::string_view kind = "dropout";

  explicit BasicDropout(double drop = 0.5, const DropoutSettings& settings = {});

  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const;

  Description describe() const;
  static BasicDropout build(const Description& description);

 private:
  double drop_;
  DropoutSettings settings_;
};
using Dropout = BasicDropout<float>;

/// Each channel of (N, C, spatial...) times a number that is trained.
template <class T>
class FENESTRA_API BasicChannelScale {
 public:
  using Scalar = T;
  static constexpr std::string_view kind = "channel_scale";

  explicit BasicChannelScale(Index channels, double begin = 1);

  Value<T> operator()(const Value<T>& x) const;
  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const {
    return pass.observed(kind, x, (*this)(x));
  }

  template <class F>
  void slots(F&& f) {
    f("weight", weight);
  }
  Description describe() const;
  static BasicChannelScale build(const Description& description);

  Parameter<T> weight;

 private:
  double begin_;
};
using ChannelScale = BasicChannelScale<float>;

}  // namespace fenestra::nn

// Normalisation layers. All divide by sqrt(variance + epsilon) with the biased variance, and with
// `affine` scale and shift afterwards.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/nn/description.hpp>
#include <fenestra/nn/pass.hpp>
#include <fenestra/nn/slots.hpp>

#include <optional>
#include <string_view>

namespace fenestra::nn {

struct BatchNormSettings {
  double momentum = 0.1;  ///< the share of the newest batch in the running statistics
  double epsilon = 1e-5;
  bool affine = true;
};

/// Normalises each channel of (N, C, spatial...): in training by the statistics of the batch, in
/// inference by the running ones. As in torch, the running variance is that of a sample, n/(n - 1)
/// times what the batch is divided by.
template <class T>
class FENESTRA_API BasicBatchNorm {
 public:
  using Scalar = T;
  static constexpr std::string_view kind = "batch_norm";

  explicit BasicBatchNorm(Index channels, const BatchNormSettings& settings = {});

  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const;

  template <class F>
  void slots(F&& f) {
    f("weight", weight);
    f("bias", bias);
    f("running_mean", running_mean);
    f("running_var", running_var);
  }
  Description describe() const;
  static BasicBatchNorm build(const Description& description);

  std::optional<Parameter<T>> weight;
  std::optional<Parameter<T>> bias;
  Buffer<T> running_mean;
  Buffer<T> running_var;

 private:
  Value<T> trained(const Value<T>& x, Pass<T>& pass) const;

  Index channels_;
  BatchNormSettings settings_;
};
using BatchNorm = BasicBatchNorm<float>;

struct NormSettings {
  double epsilon = 1e-5;
  bool affine = true;
};

/// Normalises each sample over groups of consecutive channels and space.
template <class T>
class FENESTRA_API BasicGroupNorm {
 public:
  using Scalar = T;
  static constexpr std::string_view kind = "group_norm";

  BasicGroupNorm(Index groups, Index channels, const NormSettings& settings = {});

  Value<T> operator()(const Value<T>& x) const;
  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const;

  template <class F>
  void slots(F&& f) {
    f("weight", weight);
    f("bias", bias);
  }
  Description describe() const;
  static BasicGroupNorm build(const Description& description);

  std::optional<Parameter<T>> weight;
  std::optional<Parameter<T>> bias;

 private:
  Index groups_;
  Index channels_;
  NormSettings settings_;
};
using GroupNorm = BasicGroupNorm<float>;

/// Normalises each channel of each sample over space.
template <class T>
class FENESTRA_API BasicInstanceNorm {
 public:
  using Scalar = T;
  static constexpr std::string_view kind = "instance_norm";

  explicit BasicInstanceNorm(Index channels, const NormSettings& settings = {});

  Value<T> operator()(const Value<T>& x) const;
  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const;

  template <class F>
  void slots(F&& f) {
    f("weight", weight);
    f("bias", bias);
  }
  Description describe() const;
  static BasicInstanceNorm build(const Description& description);

  std::optional<Parameter<T>> weight;
  std::optional<Parameter<T>> bias;

 private:
  Index channels_;
  NormSettings settings_;
};
using InstanceNorm = BasicInstanceNorm<float>;

struct LayerNormSettings {
  double epsilon = 1e-5;
  bool affine = true;
  /// Over the channels of each cell of (N, C, spatial...), instead of over the last axes.
  bool channels = false;
};

/// Normalises over the last axes, whose extents are `shape`.
template <class T>
class FENESTRA_API BasicLayerNorm {
 public:
  using Scalar = T;
  static constexpr std::string_view kind = "layer_norm";

  explicit BasicLayerNorm(const Shape& shape, const LayerNormSettings& settings = {});

  Value<T> operator()(const Value<T>& x) const;
  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const;

  template <class F>
  void slots(F&& f) {
    f("weight", weight);
    f("bias", bias);
  }
  Description describe() const;
  static BasicLayerNorm build(const Description& description);

  std::optional<Parameter<T>> weight;
  std::optional<Parameter<T>> bias;

 private:
  Value<T> over_last(const Value<T>& x) const;

  Shape shape_;
  LayerNormSettings settings_;
};
using LayerNorm = BasicLayerNorm<float>;

}  // namespace fenestra::nn

// Layers with weights: convolution, transposed convolution, linear. Weights are zero until
// `initialise` draws them or a file gives them.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/nn/description.hpp>
#include <fenestra/nn/pass.hpp>
#include <fenestra/nn/slots.hpp>
#include <fenestra/ops/conv/options.hpp>
#include <fenestra/ops/conv_transpose/options.hpp>
#include <fenestra/spec/options.hpp>

#include <optional>
#include <string_view>

namespace fenestra::nn {

/// The options of the operator, a kernel, and whether there is a bias; the fields are those of
/// `conv_fields`. A kernel that is one number is of two axes: `.kernel = 3` is 3x3. A list has a
/// number for each axis: `.kernel = {3}` is of one, `.kernel = {3, 3, 3}` of three.
struct ConvSettings {
  PerAxis kernel = 1;
  PerAxis stride = 1;
  Padding padding = 0;
  PerAxis dilation = 1;
  Index groups = 1;
  bool bias = true;
};

/// x (N, in, spatial...) to (N, out, spatial...); weight (out, in/groups, kernel...), bias (out).
template <class T>
class FENESTRA_API BasicConv {
 public:
  using Scalar = T;
  static constexpr std::string_view kind = "conv";

  BasicConv(Index in, Index out, const ConvSettings& settings = {});

  Value<T> operator()(const Value<T>& x) const;
  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const;

  template <class F>
  void slots(F&& f) {
    f("weight", weight);
    f("bias", bias);
  }
  Description describe() const;
  static BasicConv build(const Description& description);

  Parameter<T> weight;
  std::optional<Parameter<T>> bias;

 private:
  Index in_;
  Index out_;
  ConvSettings settings_;
  ConvOptions options_;  ///< what of the settings is the operator's
};
using Conv = BasicConv<float>;

/// The same of `conv_transpose_fields`.
struct ConvTransposeSettings {
  PerAxis kernel = 1;
  PerAxis stride = 1;
  Padding padding = 0;  ///< crops the result
  PerAxis dilation = 1;
  PerAxis output_padding = 0;
  Index groups = 1;
  bool bias = true;
};

/// x (N, in, spatial...) to (N, out, larger...); weight (in, out/groups, kernel...), bias (out).
template <class T>
class FENESTRA_API BasicConvTranspose {
 public:
  using Scalar = T;
  static constexpr std::string_view kind = "conv_transpose";

  BasicConvTranspose(Index in, Index out, const ConvTransposeSettings& settings = {});

  Value<T> operator()(const Value<T>& x) const;
  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const;

  template <class F>
  void slots(F&& f) {
    f("weight", weight);
    f("bias", bias);
  }
  Description describe() const;
  static BasicConvTranspose build(const Description& description);

  Parameter<T> weight;
  std::optional<Parameter<T>> bias;

 private:
  Index in_;
  Index out_;
  ConvTransposeSettings settings_;
  ConvTransposeOptions options_;
};
using ConvTranspose = BasicConvTranspose<float>;

struct LinearSettings {
  bool bias = true;
};

/// x (..., in) to (..., out); weight (out, in), bias (out).
template <class T>
class FENESTRA_API BasicLinear {
 public:
  using Scalar = T;
  static constexpr std::string_view kind = "linear";

  BasicLinear(Index in, Index out, const LinearSettings& settings = {});

  Value<T> operator()(const Value<T>& x) const;
  Value<T> operator()(const Value<T>& x, Pass<T>& pass) const;

  template <class F>
  void slots(F&& f) {
    f("weight", weight);
    f("bias", bias);
  }
  Description describe() const;
  static BasicLinear build(const Description& description);

  Parameter<T> weight;
  std::optional<Parameter<T>> bias;

 private:
  Index in_;
  Index out_;
  LinearSettings settings_;
};
using Linear = BasicLinear<float>;

}  // namespace fenestra::nn

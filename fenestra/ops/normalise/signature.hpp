// Normalisation for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/normalise/normalise.hpp>
#include <fenestra/ops/signature.hpp>

#include <string>

namespace fenestra {

namespace signature {

inline constexpr std::string_view kNormArguments =
    "weight: the scale of each channel; given with bias or not at all.\n"
    "bias: the shift of each channel.";
inline constexpr std::string_view kGroupNormArguments =
    "num_groups: parts of equal size into which the channels fall.\n"
    "weight: the scale of each channel; given with bias or not at all.\n"
    "bias: the shift of each channel.";

/// Scale and shift come together.
template <AnyValue V>
bool has_parameters(std::string_view op,
                    const std::optional<V>& weight,
                    const std::optional<V>& bias) {
  if (weight.has_value() != bias.has_value()) {
    throw Error(std::string(op),
                {.code = ErrorCode::bias_mismatch, .argument = weight ? Argument::b : Argument::w},
                std::string(op) + ": " + (weight ? "weight without bias" : "bias without weight") +
                    "\n  fix: both, or neither");
  }
  return weight.has_value();
}

}  // namespace signature

struct NormaliseSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "batch_norm",
         .text =
             "(input - mean)/sqrt(var + eps) * weight + bias, with the mean and the biased "
             "variance of each channel over the batch and space: the training form. Returns the "
             "result and both statistics, all differentiable.",
         .shapes = "input (N, C, spatial...), weight (C), bias (C) -> (N, C, spatial...), (C), (C)",
         .example = ">>> y, mean, var = fn.batch_norm(fn.tensor([[1.], [3.]]), eps=0.)\n"
                    ">>> y\n"
                    "Tensor([[-1.],\n"
                    "        [ 1.]], dtype=float64)\n"
                    ">>> mean, var\n"
                    "(Tensor([2.], dtype=float64), Tensor([1.], dtype=float64))",
         .result = "tuple[Tensor, Tensor, Tensor]",
         .arguments = kNormArguments},
        []<class V>(const V& x,
                    const std::optional<V>& weight,
                    const std::optional<V>& bias,
                    const NormOptions& options) {
          return has_parameters("batch_norm", weight, bias) ? batch_norm(x, *weight, *bias, options)
                                                            : batch_norm(x, options);
        },
        Input{"input"},
        OptionalInput{"weight"},
        OptionalInput{"bias"},
        Options<NormOptions>{});
    declarer.function(
        {.name = "batch_norm_inference",
         .text = "(input - mean)/sqrt(var + eps) * weight + bias with stored statistics.",
         .shapes = "input (N, C, spatial...), mean, var, weight, bias (C) -> (N, C, spatial...)",
         .example = ">>> one = fn.tensor([1.])\n"
                    ">>> fn.batch_norm_inference(fn.tensor([[3.]]), one, one, eps=0.)\n"
                    "Tensor([[2.]], dtype=float64)",
         .arguments = "mean: of each channel.\n"
                      "var: the variance of each channel, biased or not.\n"
                      "weight: the scale of each channel; given with bias or not at all.\n"
                      "bias: the shift of each channel."},
        []<class V>(const V& x,
                    const V& mean,
                    const V& var,
                    const std::optional<V>& weight,
                    const std::optional<V>& bias,
                    const NormOptions& options) {
          return has_parameters("batch_norm_inference", weight, bias)
                     ? batch_norm_inference(x, mean, var, *weight, *bias, options)
                     : batch_norm_inference(x, mean, var, options);
        },
        Input{"input"},
        Input{"mean"},
        Input{"var"},
        OptionalInput{"weight"},
        OptionalInput{"bias"},
        Options<NormOptions>{});
    declarer.function(
        {.name = "group_norm",
         .text = "Normalised by the statistics of each sample and group of consecutive channels; "
                 "weight and bias are per channel.",
         .shapes = "input (N, C, spatial...), weight (C), bias (C) -> (N, C, spatial...)",
         .example = ">>> fn.group_norm(fn.tensor([[1., 3., 5., 5.]]), 2, eps=0.5).shape\n(1, 4)",
         .arguments = kGroupNormArguments},
        []<class V>(const V& x,
                    Index groups,
                    const std::optional<V>& weight,
                    const std::optional<V>& bias,
                    const NormOptions& options) {
          return has_parameters("group_norm", weight, bias)
                     ? group_norm(x, groups, *weight, *bias, options)
                     : group_norm(x, groups, options);
        },
        Input{"input"},
        Plain<Index>{.name = "num_groups"},
        OptionalInput{"weight"},
        OptionalInput{"bias"},
        Options<NormOptions>{});
    declarer.function(
        {.name = "layer_norm",
         .text = "Normalised over the trailing axes that weight and bias have, or over the last "
                 "axes without them.",
         .shapes = "input (..., d), weight (d), bias (d) -> (..., d)",
         .example = ">>> fn.layer_norm(fn.tensor([[1., 3.]]), eps=0.)\n"
                    "Tensor([[-1.,  1.]], dtype=float64)",
         .arguments =
             "weight: scales, of the shape of the axes to normalise; given with bias or not "
             "at all.\n"
             "bias: shifts, of the same shape.\n"
             "axes: how many trailing axes to normalise over, where there is no weight."},
        []<class V>(const V& x,
                    const std::optional<V>& weight,
                    const std::optional<V>& bias,
                    double eps,
                    int axes) {
          return has_parameters("layer_norm", weight, bias) ? layer_norm(x, *weight, *bias, eps)
                                                            : layer_norm(x, axes, eps);
        },
        Input{"input"},
        OptionalInput{"weight"},
        OptionalInput{"bias"},
        Plain<double>{.name = "eps", .otherwise = 1e-5},
        Plain<int>{.name = "axes", .otherwise = 1, .keyword_only = true});
  }
};

}  // namespace fenestra

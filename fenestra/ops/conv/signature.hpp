// Convolution for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/signature.hpp>

#include <string>

namespace fenestra {

namespace signature {

/// `weight` must have the axes that a name such as conv2d promises.
inline void require_named_rank(std::string_view op, const Shape& weight, int rank) {
  if (rank > 0) {
    require_spatial_rank(std::string(op) + std::to_string(rank) + "d", weight, rank);
  }
}

}  // namespace signature

struct ConvSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "conv",
         .text =
             "Convolution (cross-correlation): the sum of input * weight over each window, plus "
             "the bias. The number of spatial axes is that of the weight.",
         .shapes = "input (N, C, spatial...) or (C, spatial...), weight (O, C/groups, kernel...), "
                   "bias (O) -> (N, O, spatial...); with layout='channels_last' input (N, "
                   "spatial..., C), weight (kernel..., C/groups, O)",
         .example = ">>> x = fn.tensor([[[1., 2., 3., 4.]]])\n"
                    ">>> w = fn.tensor([[[1., 10.]]])\n"
                    ">>> fn.conv(x, w)\n"
                    "Tensor([[[21., 32., 43.]]], dtype=float64)\n"
                    ">>> fn.conv(x, w, stride=2, padding='same').shape\n"
                    "(1, 1, 2)",
         .ranks = true,
         .arguments = "weight: the filters, one for each output channel.\n"
                      "bias: one number for each output channel, or None.",
         .ranked_example = ">>> x, w = fn.ones((1, 2, %5)), fn.ones((4, 2, %3))\n"
                           ">>> fn.%name(x, w, fn.zeros(4), stride=2, padding=1).shape\n"
                           "(1, 4, %3)"},
        []<class V>(const V& x,
                    const V& w,
                    const std::optional<V>& b,
                    const ConvOptions& options,
                    int rank) {
          require_named_rank("conv", w.shape(), rank);
          return b ? conv(x, w, *b, options) : conv(x, w, options);
        },
        Input{"input"},
        Input{"weight"},
        OptionalInput{"bias"},
        Options<ConvOptions>{});
  }
};

}  // namespace fenestra

// Transposed convolution for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/conv/signature.hpp>
#include <fenestra/ops/conv_transpose/conv_transpose.hpp>

namespace fenestra {

struct ConvTransposeSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "conv_transpose",
         .text = "Transposed convolution: the input gradient of a convolution with the same "
                 "numbers, plus the bias. Padding crops the result; output_size may be given "
                 "instead of output_padding.",
         .shapes = "input (N, C, spatial...), weight (C, O/groups, kernel...), bias (O) -> (N, O, "
                   "spatial...); with layout='channels_last' weight (kernel..., O/groups, C)",
         .example = ">>> x = fn.tensor([[[1., 2., 3.]]])\n"
                    ">>> w = fn.tensor([[[1., 10., 100.]]])\n"
                    ">>> fn.conv_transpose(x, w, stride=2, padding=1)\n"
                    "Tensor([[[ 10., 102.,  20., 203.,  30.]]], dtype=float64)",
         .ranks = true,
         .arguments = "weight: the filters, one for each input channel.\n"
                      "bias: one number for each output channel, or None.\n"
                      "stride: cells of the result from one input cell to the next.\n"
                      "padding: cells cropped from the result, said as for conv.\n"
                      "output_padding: cells added at the high ends, below the stride or the "
                      "dilation.\n"
                      "output_size: the spatial extents of the result, instead of output_padding.",
         .ranked_example = ">>> x, w = fn.ones((1, 4, %3)), fn.ones((4, 2, %2))\n"
                           ">>> fn.%name(x, w, stride=2).shape\n"
                           "(1, 2, %6)"},
        []<class V>(const V& x,
                    const V& w,
                    const std::optional<V>& b,
                    const ConvTransposeOptions& options,
                    int rank) {
          require_named_rank("conv_transpose", w.shape(), rank);
          return b ? conv_transpose(x, w, *b, options) : conv_transpose(x, w, options);
        },
        Input{"input"},
        Input{"weight"},
        OptionalInput{"bias"},
        Options<ConvTransposeOptions>{});
  }
};

}  // namespace fenestra

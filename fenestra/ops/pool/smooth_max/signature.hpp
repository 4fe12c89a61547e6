// Smooth max pooling for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/pool/signature.hpp>

namespace fenestra {

struct SmoothMaxPoolSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "smooth_max_pool",
         .text =
             "(1/beta) * log(sum of exp(beta * input)) over each window: above the maximum by "
             "at most log(n)/beta, and a smooth minimum for negative beta. beta is 1 unless "
             "given, a number or a differentiable tensor, of rank 0 or with one element for each "
             "channel. With normalised, log(n)/beta "
             "is subtracted, n the cells counted.",
         .shapes = "input (N, C, spatial...), beta () or (C) -> (N, C, spatial...)",
         .example = ">>> x = fn.tensor([[[1., 2., 3., 4.]]])\n"
                    ">>> print(round(fn.smooth_max_pool(x, [4]).item(), 7))\n"
                    "4.4401897",
         .ranks = true,
         .arguments = "beta: the sharpness, finite and not 0: a number, a tensor of rank 0, or "
                      "one of shape (C,), a number for each channel.",
         .ranked_example = ">>> fn.%name(fn.ones((1, 3, %4)), 2, beta=10., normalised=True).shape\n"
                           "(1, 3, %2)"},
        []<class V>(const V& x,
                    const SmoothMaxPoolOptions& options,
                    const std::optional<V>& beta,
                    int rank) {
          require_clear_rank(
              "smooth_max_pool", "kernel_size", x.shape(), options.kernel, options.layout, rank);
          return beta ? smooth_max_pool(x, *beta, options, rank)
                      : smooth_max_pool(x, options, rank);
        },
        Input{"input"},
        Options<SmoothMaxPoolOptions>{},
        OptionalInput{"beta"});
  }
};

}  // namespace fenestra

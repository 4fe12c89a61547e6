// Lp pooling for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/pool/signature.hpp>

namespace fenestra {

struct LpPoolSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "lp_pool",
         .text = "(sum of |input|^p)^(1/p) over the real cells of each window, p = norm_type > 0. "
                 "The gradient of an all-zero window is 0.",
         .shapes = "input (N, C, spatial...) or (C, spatial...) -> (N, C, spatial...)",
         .example = ">>> fn.lp_pool(fn.tensor([[[3., 4., 12.]]]), 2, [2], ceil_mode=True)\n"
                    "Tensor([[[ 5., 12.]]], dtype=float64)",
         .ranks = true,
         .arguments = "norm_type: the p of the norm, a finite number above 0.",
         .ranked_example = ">>> fn.%name(fn.full((1, 3, %4), 5.), 1, 2).shape\n(1, 3, %2)"},
        []<class V>(const V& x, const LpPoolOptions& options, int rank) {
          require_clear_rank(
              "lp_pool", "kernel_size", x.shape(), options.kernel, options.layout, rank);
          return lp_pool(x, options, rank);
        },
        Input{"input"},
        Options<LpPoolOptions>{});
  }
};

}  // namespace fenestra

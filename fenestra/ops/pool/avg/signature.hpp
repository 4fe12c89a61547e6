// Average pooling for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/pool/signature.hpp>

namespace fenestra {

struct AvgPoolSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "avg_pool",
         .text = "The mean of each window. It counts padded cells unless count_include_pad is "
                 "False; divisor_override wins over both. The stride is the kernel's size unless "
                 "given.",
         .shapes = "input (N, C, spatial...) or (C, spatial...) -> (N, C, spatial...)",
         .example = ">>> x = fn.tensor([[[1., 2., 3., 4., 5.]]])\n"
                    ">>> fn.avg_pool(x, [3], stride=2, padding=1)\n"
                    "Tensor([[[1., 3., 3.]]], dtype=float64)",
         .ranks = true,
         .ranked_example = kPoolExample},
        []<class V>(const V& x, const AvgPoolOptions& options, int rank) {
          require_clear_rank(
              "avg_pool", "kernel_size", x.shape(), options.kernel, options.layout, rank);
          return avg_pool(x, options, rank);
        },
        Input{"input"},
        Options<AvgPoolOptions>{});
  }
};

}  // namespace fenestra

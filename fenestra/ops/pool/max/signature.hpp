// Max pooling for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/pool/signature.hpp>

namespace fenestra {

struct MaxPoolSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "max_pool",
         .text = "The largest cell of each window, the first of equals; NaN wins over numbers. The "
                 "stride is the kernel's size unless given. Padded cells cannot win, or are zeros "
                 "with pad_cells='zero'. With return_indices also the winners, flat over the "
                 "spatial extents of one sample and channel, -1 where no cell won.",
         .shapes = "input (N, C, spatial...) or (C, spatial...) -> (N, C, spatial...)",
         .example = ">>> x = fn.tensor([[[1., 5., 2., 4.]]])\n"
                    ">>> fn.max_pool(x, [2])\n"
                    "Tensor([[[5., 4.]]], dtype=float64)\n"
                    ">>> y, indices = fn.max_pool(x, [2], return_indices=True)\n"
                    ">>> indices\n"
                    "array([[[1, 3]]])",
         .result = kMaxPoolResult,
         .ranks = true,
         .ranked_example = kPoolExample},
        []<class V>(const V& x, const MaxPoolOptions& options, bool return_indices, int rank) {
          require_clear_rank(
              "max_pool", "kernel_size", x.shape(), options.kernel, options.layout, rank);
          if (!return_indices) {
            return WithIndices<V>{max_pool(x, options, rank), {}};
          }
          auto [y, indices] = max_pool_with_indices(x, options, rank);
          return WithIndices<V>{std::move(y), std::move(indices)};
        },
        Input{"input"},
        Options<MaxPoolOptions>{},
        Plain<bool>{.name = "return_indices", .otherwise = false, .keyword_only = true});
  }
};

}  // namespace fenestra

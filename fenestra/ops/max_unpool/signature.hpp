// Max unpooling for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/max_unpool/max_unpool.hpp>
#include <fenestra/ops/pool/signature.hpp>

namespace fenestra {

struct MaxUnpoolSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "max_unpool",
         .text = "Every value at the cell its index names, zeros elsewhere: what max_pool with "
                 "return_indices took apart. Of equal indices the last counts.",
         .shapes = "input (N, C, spatial...), indices of the same shape -> (N, C, output_size...)",
         .example = ">>> x = fn.tensor([[[1., 5., 2., 4.]]])\n"
                    ">>> y, indices = fn.max_pool(x, [2], return_indices=True)\n"
                    ">>> fn.max_unpool(y, indices, [2])\n"
                    "Tensor([[[0., 5., 0., 4.]]], dtype=float64)",
         .ranks = true,
         .arguments = "input: the maxima, as max_pool returned them.\n"
                      "indices: their places, as max_pool returned them.\n"
                      "kernel_size: that of the pool.\n"
                      "stride: that of the pool.\n"
                      "padding: that of the pool.\n"
                      "output_size: the spatial extents of the result, where the pool's own do not "
                      "say them.",
         .ranked_example =
             ">>> y, indices = fn.max_pool%nd(fn.ones((1, 3, %4)), 2, return_indices=True)\n"
             ">>> fn.%name(y, indices, 2).shape\n"
             "(1, 3, %4)"},
        []<class V>(
            const V& x, const IndicesOf<V>& indices, const MaxUnpoolOptions& options, int rank) {
          const bool by_size = !options.kernel.is_given() || !options.output_size.is_scalar();
          require_clear_rank("max_unpool",
                             by_size ? "output_size" : "kernel_size",
                             x.shape(),
                             by_size ? options.output_size : options.kernel,
                             options.layout,
                             rank);
          return max_unpool(x, indices, options, rank);
        },
        Input{"input"},
        Data{"indices"},
        Options<MaxUnpoolOptions>{});
  }
};

}  // namespace fenestra

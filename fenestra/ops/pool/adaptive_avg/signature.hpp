// Adaptive and global average pooling for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/pool/signature.hpp>

namespace fenestra {

struct AdaptiveAvgPoolSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "adaptive_avg_pool",
         .text = "The mean of each of output_size bins per axis; bin j of o covers the cells from "
                 "floor(j*i/o) to ceil((j+1)*i/o).",
         .shapes = "input (N, C, spatial...) -> (N, C, output_size...)",
         .example = ">>> x = fn.tensor([[[1., 5., 2., 4.]]])\n"
                    ">>> fn.adaptive_avg_pool(x, [2])\n"
                    "Tensor([[[3., 3.]]], dtype=float64)",
         .ranks = true,
         .arguments =
             "output_size: the number of bins: one for all axes or one per axis; a list also "
             "says how many spatial axes there are.",
         .ranked_example = ">>> fn.%name(fn.ones((1, 3, %7)), 2).shape\n(1, 3, %2)"},
        []<class V>(const V& x, const AdaptivePoolOptions& options, int rank) {
          require_clear_rank("adaptive_avg_pool",
                             "output_size",
                             x.shape(),
                             options.output_size,
                             options.layout,
                             rank);
          return adaptive_avg_pool(x, options, rank);
        },
        Input{"input"},
        Options<AdaptivePoolOptions>{});
    declarer.function(
        {.name = "global_avg_pool",
         .text = "The mean of each channel; the spatial axes stay, with extent 1.",
         .shapes = "input (N, C, spatial...) -> (N, C, 1, ...)",
         .example = ">>> fn.global_avg_pool(fn.tensor([[[[1., 5.], [2., 4.]]]]))\n"
                    "Tensor([[[[3.]]]], dtype=float64)",
         .ranks = true,
         .ranked_example = ">>> fn.%name(fn.ones((1, 3, %4))).shape\n(1, 3, %1)"},
        []<class V>(const V& x, Layout layout, int rank) {
          require_clear_rank("global_avg_pool", "", x.shape(), 1, layout, rank);
          return adaptive_avg_pool(x, global_pool(layout), rank);
        },
        Input{"input"},
        Plain<Layout>{.name = "layout", .otherwise = Layout::channels_first});
  }
};

}  // namespace fenestra

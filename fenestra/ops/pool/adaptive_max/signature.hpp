// Adaptive and global max pooling for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/pool/signature.hpp>

namespace fenestra {

struct AdaptiveMaxPoolSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "adaptive_max_pool",
         .text = "The maximum of each of output_size bins per axis; bin j of o covers the cells "
                 "from floor(j*i/o) to ceil((j+1)*i/o). With return_indices also the winners.",
         .shapes = "input (N, C, spatial...) -> (N, C, output_size...)",
         .example = ">>> x = fn.tensor([[[1., 5., 2., 4.]]])\n"
                    ">>> fn.adaptive_max_pool(x, [2])\n"
                    "Tensor([[[5., 4.]]], dtype=float64)",
         .result = kMaxPoolResult,
         .ranks = true,
         .arguments =
             "output_size: the number of bins: one for all axes or one per axis; a list also "
             "says how many spatial axes there are.",
         .ranked_example = ">>> fn.%name(fn.ones((1, 3, %7)), 2).shape\n(1, 3, %2)"},
        []<class V>(const V& x, const AdaptivePoolOptions& options, bool return_indices, int rank) {
          require_clear_rank("adaptive_max_pool",
                             "output_size",
                             x.shape(),
                             options.output_size,
                             options.layout,
                             rank);
          if (!return_indices) {
            return WithIndices<V>{adaptive_max_pool(x, options, rank), {}};
          }
          auto [y, indices] = adaptive_max_pool_with_indices(x, options, rank);
          return WithIndices<V>{std::move(y), std::move(indices)};
        },
        Input{"input"},
        Options<AdaptivePoolOptions>{},
        Plain<bool>{.name = "return_indices", .otherwise = false, .keyword_only = true});
    declarer.function(
        {.name = "global_max_pool",
         .text = "The maximum of each channel; the spatial axes stay, with extent 1.",
         .shapes = "input (N, C, spatial...) -> (N, C, 1, ...)",
         .example = ">>> fn.global_max_pool(fn.tensor([[[[1., 5.], [2., 4.]]]]))\n"
                    "Tensor([[[[5.]]]], dtype=float64)",
         .ranks = true,
         .ranked_example = ">>> fn.%name(fn.ones((1, 3, %4))).shape\n(1, 3, %1)"},
        []<class V>(const V& x, Layout layout, int rank) {
          require_clear_rank("global_max_pool", "", x.shape(), 1, layout, rank);
          return adaptive_max_pool(x, global_pool(layout), rank);
        },
        Input{"input"},
        Plain<Layout>{.name = "layout", .otherwise = Layout::channels_first});
  }
};

}  // namespace fenestra

// Adaptive and global average pooling for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/adaptive_avg_pool/adaptive_avg_pool.hpp>
#include <fenestra/ops/adaptive_max_pool/signature.hpp>

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
                    ">>> fn.adaptive_avg_pool(x, 2)\n"
                    "Tensor([[[3., 3.]]], dtype=float64)",
         .ranks = true},
        []<class V>(const V& x, const AdaptivePoolOptions& options, int rank) {
          return adaptive_avg_pool(x, options, rank);
        },
        Input{"input"},
        Options<AdaptivePoolOptions>{});
    declarer.function(
        {.name = "global_avg_pool",
         .text = "The mean of each channel; the spatial axes stay, with extent 1.",
         .shapes = "input (N, C, spatial...) -> (N, C, 1, ...)",
         .example = ">>> fn.global_avg_pool(fn.tensor([[[1., 5., 2., 4.]]]))\n"
                    "Tensor([[[3.]]], dtype=float64)"},
        []<class V>(const V& x, Layout layout) { return global_avg_pool(x, layout); },
        Input{"input"},
        Plain<Layout>{.name = "layout", .otherwise = Layout::channels_first});
  }
};

}  // namespace fenestra

// Max unpooling for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/max_unpool/max_unpool.hpp>
#include <fenestra/ops/signature.hpp>

namespace fenestra {

template <>
struct signature::Fields<MaxUnpoolOptions> {
  using O = MaxUnpoolOptions;
  static constexpr std::tuple list{field("kernel_size", &O::kernel),
                                   field("stride", &O::stride),
                                   field("padding", &O::padding),
                                   field("output_size", &O::output_size),
                                   field("layout", &O::layout).by_keyword()};
};

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
                    ">>> y, indices = fn.max_pool(x, 2, return_indices=True)\n"
                    ">>> fn.max_unpool(y, indices, 2)\n"
                    "Tensor([[[0., 5., 0., 4.]]], dtype=float64)",
         .ranks = true},
        []<class V>(
            const V& x, const IndicesOf<V>& indices, const MaxUnpoolOptions& options, int rank) {
          return max_unpool(x, indices, options, rank);
        },
        Input{"input"},
        Data{"indices"},
        Options<MaxUnpoolOptions>{});
  }
};

}  // namespace fenestra

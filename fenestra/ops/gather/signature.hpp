// Choosing by integers for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/gather/gather.hpp>
#include <fenestra/ops/signature.hpp>

namespace fenestra {

struct GatherSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "gather",
         .text = "One element along the axis for each index; negative indices count from the end.",
         .shapes = "input (any), indices (the same but for the axis) -> as the indices",
         .example = ">>> x = fn.tensor([[1., 2., 3.], [4., 5., 6.]])\n"
                    ">>> fn.gather(x, np.array([[2], [0]]), axis=1)\n"
                    "Tensor([[3.],\n"
                    "        [4.]], dtype=float64)"},
        []<class V>(const V& x, const IndicesOf<V>& indices, const GatherGeometry& o) {
          return gather(x, indices, o.axis);
        },
        Input{"input"},
        Data{"indices"},
        Options<GatherGeometry>{});
    declarer.function(
        {.name = "take",
         .text = "One slice along the axis for each index, in their order; negative indices count "
                 "from the end.",
         .shapes = "input (a..., n, b...), indices (i...) -> (a..., i..., b...)",
         .example = ">>> x = fn.tensor([[1., 2.], [3., 4.], [5., 6.]])\n"
                    ">>> fn.take(x, [2, 0])\n"
                    "Tensor([[5., 6.],\n"
                    "        [1., 2.]], dtype=float64)"},
        []<class V>(const V& x, const IndicesOf<V>& indices, int axis) {
          return take(x, indices, axis);
        },
        Input{"input"},
        Data{"indices"},
        Plain<int>{.name = "axis", .otherwise = 0});
  }
};

}  // namespace fenestra

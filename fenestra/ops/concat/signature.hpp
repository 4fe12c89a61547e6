// Concatenation for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/concat/concat.hpp>
#include <fenestra/ops/signature.hpp>

#include <vector>

namespace fenestra {

struct ConcatSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "concat",
         .text = "The tensors one after another along an axis they share.",
         .shapes = "tensors of one shape but for the axis -> their sum there",
         .example = ">>> fn.concat([fn.tensor([1., 2.]), fn.tensor([3.])])\n"
                    "Tensor([1., 2., 3.], dtype=float64)",
         .arguments = "axis: the axis they are joined along; negative ones count from the last."},
        []<class V>(const std::vector<V>& parts, int axis) { return concat(parts, axis); },
        InputList{"tensors"},
        Plain<int>{.name = "axis", .otherwise = 0});
    declarer.function(
        {.name = "stack",
         .text = "The tensors one after another along a new axis.",
         .shapes = "n tensors of one shape -> that shape with n at the axis",
         .example = ">>> fn.stack([fn.tensor([1., 2.]), fn.tensor([3., 4.])])\n"
                    "Tensor([[1., 2.],\n"
                    "        [3., 4.]], dtype=float64)",
         .arguments = "axis: where the new axis stands in the result; negative ones count from the "
                      "last."},
        []<class V>(const std::vector<V>& parts, int axis) { return stack(parts, axis); },
        InputList{"tensors"},
        Plain<int>{.name = "axis", .otherwise = 0});
  }
};

}  // namespace fenestra

// Reshape for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/ops/signature.hpp>

namespace fenestra {

struct ReshapeSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "reshape",
         .text = "The same elements under another shape; one extent may be -1, which "
                 "is what the others leave.",
         .shapes = "input (any) -> shape",
         .example = ">>> fn.reshape(fn.tensor([1., 2., 3., 4.]), (2, -1))\n"
                    "Tensor([[1., 2.],\n"
                    "        [3., 4.]], dtype=float64)",
         .arguments = "shape: the new extents; at most one is -1."},
        []<class V>(const V& x, const Shape& shape) { return reshape(x, shape); },
        Input{"input"},
        Plain<Shape>{.name = "shape"});
  }
};

}  // namespace fenestra

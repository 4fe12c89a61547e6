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
    declarer.function(
        {.name = "flatten",
         .text = "The axes from start_axis to end_axis as one.",
         .shapes = "input (any) -> the product of those extents in their place",
         .example = ">>> fn.flatten(fn.ones((2, 3, 4)), 1).shape\n"
                    "(2, 12)"},
        []<class V>(const V& x, int first, int last) { return flatten(x, first, last); },
        Input{"input"},
        Plain<int>{.name = "start_axis", .otherwise = 0},
        Plain<int>{.name = "end_axis", .otherwise = -1});
    declarer.function(
        {.name = "squeeze",
         .text = "The input without the named axes, which have one element each; without all such "
                 "axes where none is named.",
         .shapes = "input (any) -> the other axes",
         .example = ">>> fn.squeeze(fn.ones((1, 3, 1)), 0).shape\n"
                    "(3, 1)"},
        []<class V>(const V& x, const AxisList& axes) { return squeeze(x, axes); },
        Input{"input"},
        Plain<AxisList>{.name = "axis", .otherwise = AxisList{}});
    declarer.function(
        {.name = "unsqueeze",
         .text = "The input with a new axis of one element.",
         .shapes = "input (any) -> with 1 at the axis",
         .example = ">>> fn.unsqueeze(fn.ones(3), -1).shape\n"
                    "(3, 1)"},
        []<class V>(const V& x, int axis) { return unsqueeze(x, axis); },
        Input{"input"},
        Plain<int>{.name = "axis"});
  }
};

}  // namespace fenestra

// Slices for scripting languages: see ops/signature.hpp. People write x[1:3]; this is what it
// calls.
#pragma once

#include <fenestra/ops/signature.hpp>
#include <fenestra/ops/slice/slice.hpp>

namespace fenestra {

struct SliceSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "slice",
         .text =
             "count cells of one axis: begin, begin + step, ... Indexing, input[1:3, ::2], says "
             "the same of several axes.",
         .shapes = "input (any) -> (any), count on the axis",
         .example = ">>> fn.slice(fn.tensor([1., 2., 3., 4.]), 0, 1, 2)\n"
                    "Tensor([2., 3.], dtype=float64)",
         .arguments = "axis: the axis to cut; negative ones count from the last.\n"
                      "begin: the first cell.\n"
                      "count: the number of cells.\n"
                      "step: from one cell to the next; negative ones run backwards."},
        []<class V>(const V& x, int axis, Index begin, Index count, Index step) {
          return slice(x, axis, begin, count, step);
        },
        Input{"input"},
        Plain<int>{.name = "axis"},
        Plain<Index>{.name = "begin"},
        Plain<Index>{.name = "count"},
        Plain<Index>{.name = "step", .otherwise = 1});
    declarer.function(
        {.name = "split",
         .text = "The input cut along an axis: a number says into how many equal parts, a list the "
                 "sizes of the parts.",
         .shapes = "input (any) -> a list of parts",
         .example = ">>> fn.split(fn.tensor([1., 2., 3., 4.]), [1, 3])\n"
                    "[Tensor([1.], dtype=float64), Tensor([2., 3., 4.], dtype=float64)]",
         .result = "list[Tensor]"},
        []<class V>(const V& x, const SplitParts& parts, int axis) {
          return split(x, parts, axis);
        },
        Input{"input"},
        Plain<SplitParts>{.name = "parts"},
        Plain<int>{.name = "axis", .otherwise = 0});
  }
};

}  // namespace fenestra

// Reductions for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/reduce/reduce.hpp>
#include <fenestra/ops/signature.hpp>

namespace fenestra {

struct ReduceSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    constexpr std::string_view kShapes = "input (any) -> the other axes";
    declarer.function(
        {.name = "sum",
         .text = "The sum over axes, over all of them where none is given.",
         .shapes = kShapes,
         .example = ">>> fn.sum(fn.tensor([[1., 2.], [3., 4.]]), axis=0)\n"
                    "Tensor([4., 6.], dtype=float64)"},
        []<class V>(const V& x, const ReduceOptions& o) { return sum(x, o); },
        Input{"input"},
        Options<ReduceOptions>{});
    declarer.function(
        {.name = "mean",
         .text = "The mean over axes, over all of them where none is given.",
         .shapes = kShapes,
         .example = ">>> fn.mean(fn.tensor([[1., 2.], [3., 4.]]))\n"
                    "Tensor(2.5, dtype=float64)"},
        []<class V>(const V& x, const ReduceOptions& o) { return mean(x, o); },
        Input{"input"},
        Options<ReduceOptions>{});
    declarer.function(
        {.name = "max",
         .text = "The greatest element over axes; the first wins ties, NaN wins over "
                 "numbers.",
         .shapes = kShapes,
         .example = ">>> fn.max(fn.tensor([[1., 4.], [3., 2.]]), axis=1)\n"
                    "Tensor([4., 3.], dtype=float64)"},
        []<class V>(const V& x, const ReduceOptions& o) { return max_over(x, o); },
        Input{"input"},
        Options<ReduceOptions>{});
    declarer.function(
        {.name = "min",
         .text = "The least element over axes; the first wins ties, NaN wins over "
                 "numbers.",
         .shapes = kShapes,
         .example = ">>> fn.min(fn.tensor([[1., 4.], [3., 2.]]), axis=1)\n"
                    "Tensor([1., 2.], dtype=float64)"},
        []<class V>(const V& x, const ReduceOptions& o) { return min_over(x, o); },
        Input{"input"},
        Options<ReduceOptions>{});
    declarer.function(
        {.name = "var",
         .text = "The variance over axes, over all of them where none is given: the sum of squared "
                 "differences from the mean, divided by the number of elements less the "
                 "correction.",
         .shapes = kShapes,
         .example = ">>> fn.var(fn.tensor([1., 2., 3.]), correction=1)\n"
                    "Tensor(1., dtype=float64)"},
        []<class V>(const V& x, const VarOptions& o) { return var_over(x, o); },
        Input{"input"},
        Options<VarOptions>{});
    declarer.function(
        {.name = "std",
         .text = "The square root of the variance; its derivative is infinite where that is 0.",
         .shapes = kShapes,
         .example = ">>> fn.std(fn.tensor([[1., 5.], [3., 3.]]), axis=1)\n"
                    "Tensor([2., 0.], dtype=float64)"},
        []<class V>(const V& x, const VarOptions& o) { return std_over(x, o); },
        Input{"input"},
        Options<VarOptions>{});
    constexpr std::string_view kIntegers = "input (any) -> integers, without the axis";
    constexpr std::string_view kResult = "IntArray";
    declarer.function(
        {.name = "argmax",
         .text = "Where the greatest element is along an axis, or flat where none is given; the "
                 "first of equals, and the first NaN where there is one. No derivative.",
         .shapes = kIntegers,
         .example = ">>> fn.argmax(fn.tensor([[1., 4.], [3., 2.]]), axis=1)\n"
                    "array([1, 0])",
         .result = kResult},
        []<class V>(const V& x, const ArgOptions& o) { return argmax(x, o); },
        Input{"input"},
        Options<ArgOptions>{});
    declarer.function(
        {.name = "argmin",
         .text = "Where the least element is; otherwise as argmax.",
         .shapes = kIntegers,
         .example = ">>> fn.argmin(fn.tensor([[1., 4.], [3., 2.]]), axis=1)\n"
                    "array([0, 1])",
         .result = kResult},
        []<class V>(const V& x, const ArgOptions& o) { return argmin(x, o); },
        Input{"input"},
        Options<ArgOptions>{});
    declarer.function(
        {.name = "broadcast_to",
         .text = "The input repeated along the axes in which it is 1 or which it lacks.",
         .shapes = "input (broadcastable) -> shape",
         .example = ">>> fn.broadcast_to(fn.tensor([1., 2.]), (2, 2))\n"
                    "Tensor([[1., 2.],\n"
                    "        [1., 2.]], dtype=float64)",
         .arguments = "shape: the extents of the result; those of the input stand at its end."},
        []<class V>(const V& x, const Shape& shape) { return broadcast_to(x, shape); },
        Input{"input"},
        Plain<Shape>{.name = "shape"});
  }
};

}  // namespace fenestra

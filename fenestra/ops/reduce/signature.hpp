// Reductions for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/reduce/reduce.hpp>
#include <fenestra/ops/signature.hpp>

namespace fenestra {

template <>
struct signature::Fields<ReduceOptions> {
  using O = ReduceOptions;
  static constexpr std::tuple list{field("axis", &O::axes).also("dim"),
                                   field("keepdims", &O::keep).also("keepdim")};
};

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

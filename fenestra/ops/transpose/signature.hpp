// Transpose for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/signature.hpp>
#include <fenestra/ops/transpose/transpose.hpp>

#include <vector>

namespace fenestra {

struct TransposeSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "transpose",
         .text = "The axes in another order: axis i of the result is axis axes[i] of the input. "
                 "Without axes, all of them reversed.",
         .shapes = "input (any) -> (permuted)",
         .example = ">>> fn.transpose(fn.tensor([[1., 2.], [3., 4.]]))\n"
                    "Tensor([[1., 3.],\n"
                    "        [2., 4.]], dtype=float64)",
         .arguments = "axes: all axes of the input in their new order, or None."},
        []<class V>(const V& x, const std::vector<int>& axes) {
          std::vector<int> order = axes;
          for (int axis = x.shape().rank() - 1; axes.empty() && axis >= 0; --axis) {
            order.push_back(axis);
          }
          return transpose(x, std::span<const int>(order));
        },
        Input{"input"},
        Plain<std::vector<int>>{.name = "axes", .otherwise = std::vector<int>{}});
  }
};

}  // namespace fenestra

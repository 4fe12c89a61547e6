// Matrix products for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/matmul/einsum.hpp>
#include <fenestra/ops/matmul/matmul.hpp>
#include <fenestra/ops/signature.hpp>

#include <optional>
#include <string>

namespace fenestra {

struct MatmulSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "matmul",
         .text =
             "Matrix products; leading axes are stacks of matrices and broadcast, a vector is a "
             "row on the left and a column on the right. input @ other says the same.",
         .shapes = "input (..., n, k), other (..., k, m) -> (..., n, m)",
         .example = ">>> fn.matmul(fn.tensor([[1., 2.]]), fn.tensor([[3.], [4.]]))\n"
                    "Tensor([[11.]], dtype=float64)",
         .arguments = "other: the matrices on the right.\n"
                      "transpose_a: True exchanges the last two axes of input.\n"
                      "transpose_b: True exchanges the last two axes of other."},
        []<class V>(const V& a, const V& b, const MatMulOptions& options) {
          return matmul(a, b, options);
        },
        Input{"input"},
        Input{"other"},
        Options<MatMulOptions>{});
    declarer.function(
        {.name = "linear",
         .text = "input times the transpose of weight, plus the bias.",
         .shapes = "input (..., in), weight (out, in), bias (out) -> (..., out)",
         .example = ">>> fn.linear(fn.tensor([1., 2.]), fn.tensor([[3., 4.]]), fn.tensor([5.]))\n"
                    "Tensor([16.], dtype=float64)",
         .arguments = "weight: a row for each number of the result.\n"
                      "bias: added to the result, or None."},
        []<class V>(const V& x, const V& w, const std::optional<V>& b) {
          return b ? linear(x, w, *b) : linear(x, w);
        },
        Input{"input"},
        Input{"weight"},
        OptionalInput{"bias"});
    declarer.function(
        {.name = "einsum",
         .text = "Sums of products by letters, of one or two tensors; a letter stands for an axis. "
                 "Letters that the result lacks are summed. Without an arrow the result has the "
                 "letters that occur once, in alphabetical order. No diagonals, no '...'.",
         .shapes = "as the letters say",
         .example = ">>> a, b = fn.tensor([[1., 2.]]), fn.tensor([[3.], [4.]])\n"
                    ">>> fn.einsum('ij,jk->ki', a, b)\n"
                    "Tensor([[11.]], dtype=float64)"},
        []<class V>(const std::string& letters, const V& a, const std::optional<V>& b) {
          return b ? einsum(letters, a, *b) : einsum(letters, a);
        },
        Plain<std::string>{.name = "letters"},
        Input{"input"},
        OptionalInput{"other"});
  }
};

}  // namespace fenestra

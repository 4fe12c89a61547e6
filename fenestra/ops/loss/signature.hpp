// Losses for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/loss/loss.hpp>
#include <fenestra/ops/signature.hpp>

namespace fenestra {

struct LossSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "cross_entropy",
         .text =
             "-log softmax(input)[target], the classes on axis 1 (or the only axis), target the "
             "number of the right one.",
         .shapes = "input (N, C, ...), target integers (N, ...) -> (), or (N, ...) with "
                   "reduction='none'",
         .example = ">>> logits = fn.tensor([[0., 0.], [100., 0.]])\n"
                    ">>> loss = fn.cross_entropy(logits, np.array([1, 0]), reduction='none')\n"
                    ">>> print([round(v.item(), 6) for v in loss])\n"
                    "[0.693147, 0.0]",
         .arguments = "input: scores of the classes, not yet normalised.\n"
                      "target: integers, the right class of each."},
        []<class V>(const V& x, const IndicesOf<V>& target, const LossOptions& options) {
          return cross_entropy(x, target, options);
        },
        Input{"input"},
        Data{"target"},
        Options<LossOptions>{});
    declarer.function(
        {.name = "mse_loss",
         .text = "(input - target)^2. The shapes must be equal: broadcasting here hides mistakes.",
         .shapes = "input, target (any) -> (), or (any) with reduction='none'",
         .example = ">>> fn.mse_loss(fn.tensor([1., 3.]), fn.tensor([1., 1.]))\n"
                    "Tensor(2., dtype=float64)",
         .arguments = "target: what the input should be, of its shape."},
        []<class V>(const V& x, const V& target, const LossOptions& options) {
          return mse_loss(x, target, options);
        },
        Input{"input"},
        Input{"target"},
        Options<LossOptions>{});
    declarer.function(
        {.name = "binary_cross_entropy_with_logits",
         .text = "-target * log(sigmoid(input)) - (1 - target) * log(1 - sigmoid(input)), without "
                 "overflow.",
         .shapes = "input, target (any) -> (), or (any) with reduction='none'",
         .example =
             ">>> loss = fn.binary_cross_entropy_with_logits(fn.tensor([0.]), fn.tensor([1.]))\n"
             ">>> print(round(loss.item(), 6))\n"
             "0.693147",
         .arguments = "input: logits, any numbers.\n"
                      "target: probabilities from 0 to 1, of the same shape."},
        []<class V>(const V& x, const V& target, const LossOptions& options) {
          return bce_with_logits(x, target, options);
        },
        Input{"input"},
        Input{"target"},
        Options<LossOptions>{});
  }
};

}  // namespace fenestra

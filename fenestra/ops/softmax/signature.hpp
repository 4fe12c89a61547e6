// Softmax and its logarithms for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/signature.hpp>
#include <fenestra/ops/softmax/softmax.hpp>

namespace fenestra {

namespace signature {

inline constexpr std::string_view kSoftmaxArguments =
    "axis: the axis to normalise along; negative ones count from the last.";

}  // namespace signature

struct SoftmaxSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "softmax",
         .text = "exp(input)/sum(exp(input)) along an axis.",
         .shapes = "input (any) -> (the same)",
         .example = ">>> fn.softmax(fn.tensor([0., 0.]))\n"
                    "Tensor([0.5, 0.5], dtype=float64)",
         .arguments = kSoftmaxArguments},
        []<class V>(const V& x, SoftmaxOptions o) { return softmax(x, o.axis); },
        Input{"input"},
        Options<SoftmaxOptions>{});
    declarer.function(
        {.name = "log_softmax",
         .text = "log(softmax(input)) along an axis, without the detour.",
         .shapes = "input (any) -> (the same)",
         .example = ">>> print(round(fn.log_softmax(fn.tensor([0., 0.]))[0].item(), 6))\n"
                    "-0.693147",
         .arguments = kSoftmaxArguments},
        []<class V>(const V& x, SoftmaxOptions o) { return log_softmax(x, o.axis); },
        Input{"input"},
        Options<SoftmaxOptions>{});
    declarer.function(
        {.name = "logsumexp",
         .text = "log(sum(exp(input))) along an axis, which is removed unless keepdims.",
         .shapes = "input (any) -> the other axes",
         .example = ">>> print(round(fn.logsumexp(fn.tensor([0., 0.])).item(), 6))\n0.693147",
         .arguments = kSoftmaxArguments},
        []<class V>(const V& x, LogSumExpOptions o) { return logsumexp(x, o.axis, o.keep); },
        Input{"input"},
        Options<LogSumExpOptions>{});
  }
};

}  // namespace fenestra

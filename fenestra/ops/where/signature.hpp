// where for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/signature.hpp>
#include <fenestra/ops/where/where.hpp>

namespace fenestra {

struct WhereSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "where",
         .text = "input where the condition is true (or not 0), other elsewhere. What is not "
                 "chosen has no influence, not even as NaN. The condition has no derivative.",
         .shapes = "three that broadcast -> their common shape",
         .example = ">>> x = fn.tensor([-1., 4.])\n"
                    ">>> fn.where(x > 0, fn.sqrt(x), 0.)\n"
                    "Tensor([0., 2.], dtype=float64)"},
        []<class V>(const V& mask, const V& a, const V& b) { return where(mask, a, b); },
        Mask{"condition"},
        Input{"input"},
        Input{"other"});
  }
};

}  // namespace fenestra

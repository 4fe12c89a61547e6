// Running sums for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/cumsum/cumsum.hpp>
#include <fenestra/ops/signature.hpp>

namespace fenestra {

struct CumsumSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "cumsum",
         .text = "The sums up to each element of an axis, or in reverse from it on.",
         .shapes = "input (any) -> (the same)",
         .example = ">>> fn.cumsum(fn.tensor([1., 2., 3.]), 0)\n"
                    "Tensor([1., 3., 6.], dtype=float64)"},
        []<class V>(const V& x, const CumsumPrimitive& o) { return cumsum(x, o.axis, o.reverse); },
        Input{"input"},
        Options<CumsumPrimitive>{});
  }
};

}  // namespace fenestra

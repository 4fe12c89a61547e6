// Padding for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/pad/pad.hpp>
#include <fenestra/ops/signature.hpp>

#include <vector>

namespace fenestra {

struct PadSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "pad",
         .text = "Cells added at the ends of axes, one (low, high) pair for each of axes, or for "
                 "each axis of the input. mode says what they hold: zero, constant (value), "
                 "reflect, replicate or circular.",
         .shapes = "input (any) -> low + extent + high on each axis",
         .example = ">>> fn.pad(fn.tensor([1., 2., 3.]), [(2, 1)], mode='reflect')\n"
                    "Tensor([3., 2., 1., 2., 3., 2.], dtype=float64)",
         .arguments = "padding: a (low, high) pair for each axis.\n"
                      "mode: 'zero', 'constant', 'reflect' (without the edge), 'replicate' (the "
                      "edge) or 'circular'.\n"
                      "axes: the axes that padding is for, or None for all."},
        []<class V>(const V& x, const std::vector<LowHigh>& padding, const PadOptions& options) {
          return pad(x, padding, options);
        },
        Input{"input"},
        Plain<std::vector<LowHigh>>{.name = "padding"},
        Options<PadOptions>{});
  }
};

}  // namespace fenestra

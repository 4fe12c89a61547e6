// Resizing for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/resize/resize.hpp>
#include <fenestra/ops/signature.hpp>

namespace fenestra {

struct ResizeSignature {
  template <class D>
  static void declare(D& declarer) {
    using namespace signature;
    declarer.function(
        {.name = "resize",
         .text =
             "The spatial axes brought to size, or multiplied by scale_factor; nearest cells or "
             "linear interpolation along every axis.",
         .shapes = "input (N, C, spatial...) -> (N, C, size...)",
         .example = ">>> fn.resize(fn.tensor([[[1., 2.]]]), scale_factor=2)\n"
                    "Tensor([[[1., 1., 2., 2.]]], dtype=float64)",
         .arguments = "size: the spatial extents of the result: one for all axes or one per axis.\n"
                      "scale_factor: what to multiply the extents by, instead of size.\n"
                      "mode: 'nearest' or 'bilinear', linear along every spatial axis.\n"
                      "align_corners: True lets the centres of the outermost cells coincide; with "
                      "'bilinear'."},
        []<class V>(const V& x, const ResizeOptions& options) { return resize(x, options); },
        Input{"input"},
        Options<ResizeOptions>{});
  }
};

}  // namespace fenestra

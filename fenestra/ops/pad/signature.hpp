// Padding for scripting languages: see ops/signature.hpp.
#pragma once

#include <fenestra/ops/pad/pad.hpp>
#include <fenestra/ops/signature.hpp>

#include <vector>

namespace fenestra {

template <>
struct signature::EnumNames<PadMode> {
  static constexpr std::array list{std::pair{PadMode::zero, "zero"},
                                   std::pair{PadMode::constant, "constant"},
                                   std::pair{PadMode::reflect, "reflect"},
                                   std::pair{PadMode::replicate, "replicate"},
                                   std::pair{PadMode::circular, "circular"}};
};

template <>
struct signature::Fields<PadOptions> {
  using O = PadOptions;
  static constexpr std::tuple list{
      field("mode", &O::mode), field("value", &O::value), field("axes", &O::axes).by_keyword()};
};

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
                      "value: what the cells hold with mode='constant'.\n"
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

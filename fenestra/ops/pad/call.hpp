// Padding, for those who call it; derivatives and other scalars: pad.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/spec/options.hpp>

#include <array>
#include <string_view>
#include <vector>

namespace fenestra {

enum class PadMode {
  zero,
  constant,   ///< PadOptions::value
  reflect,    ///< mirrored at the end cell, which is not repeated: 3 2 | 1 2 3 | 2 1
  replicate,  ///< the end cell again: 1 1 | 1 2 3 | 3 3
  circular,   ///< from the other end: 2 3 | 1 2 3 | 1 2
};
template <>
inline constexpr std::array<std::string_view, 5> enum_names<PadMode> = {
    "zero", "constant", "reflect", "replicate", "circular"};

struct PadOptions {
  AxisList axes =
      {};  ///< the axes the pairs are for; all of x where empty. Negative: from the last
  PadMode mode = PadMode::zero;
  double value = 0;  ///< of the cells that mode constant adds

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    using O = PadOptions;
    field("axes", &O::axes, {.place = Place::by_keyword});
    field("mode", &O::mode, {.help = help::kMode, .always_printed = true});
    field("value",
          &O::value,
          {.help = "of the added cells, in mode constant", .always_printed = true});
  }
};

/// x with cells added: one (low, high) pair per axis of `options.axes`, or per axis of x where none
/// are named.
template <CompiledValue V>
FENESTRA_API V pad(const V& x, const std::vector<LowHigh>& padding, const PadOptions& options = {});
/// The adjoint of pad on x of `shape`: <pad_adjoint(u), x> = <u, pad(x)> for every x, the constant
/// taken as zero.
template <CompiledValue V>
FENESTRA_API V pad_adjoint(const V& y_bar,
                           const Shape& shape,
                           const std::vector<LowHigh>& padding,
                           const PadOptions& options = {});

}  // namespace fenestra

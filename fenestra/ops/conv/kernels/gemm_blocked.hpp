// The weight gradient of conv_*_gemm for channels first and enough channels: a matrix product that
// reads patches in place. Internal: not installed.
//
// Depths of this product are cells, so a panel of B wants the channels of a cell side by side, and
// in x they are a plane apart. A part of x is copied once, in blocks of as many channels as a panel
// has columns and with its padding; every tap then finds its panel in that copy, a shift further.
#pragma once

#include <fenestra/ops/conv/candidates.hpp>

namespace fenestra::detail {

/// Whether there are channels enough to fill the panels.
template <class T>
bool blocking_pays(const ConvGeometry& g);

/// Scratch of the calling thread: at most 1 Mi elements of x with their padding (or the rows that
/// one row of windows along the first axis sees, where these are more), an address per cell of
/// them, and, where x takes several such parts, once the group's weight gradient.
template <class T>
void weight_grad_blocked(const ConvGeometry& g, const ConvArguments<T>& arguments, Index group);

}  // namespace fenestra::detail

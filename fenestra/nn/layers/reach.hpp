// What windows see along one axis, as summaries count it. Internal: not installed.
#pragma once

#include <fenestra/nn/pass.hpp>
#include <fenestra/spec/window.hpp>

namespace fenestra::nn {

/// Of a window over the input.
inline AxisReach window_reach(Index kernel, Index stride, Index dilation) {
  const Index extent = WindowAxis{.kernel = kernel, .dilation = dilation}.span();
  return {static_cast<double>(extent), static_cast<double>(stride)};
}

/// Of a window that lies in the output: from the first to the last of the windows over the cell
/// that has most of them, away from the border.
inline AxisReach transposed_reach(Index kernel, Index stride, Index dilation) {
  const WindowAxis axis{.kernel = kernel, .stride = stride, .dilation = dilation};
  return {static_cast<double>((axis.most_phase_taps() - 1) * axis.windows_apart() + 1),
          1.0 / static_cast<double>(stride)};
}

}  // namespace fenestra::nn

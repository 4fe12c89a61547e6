// Random options for the laws: what every operator's random problems have in common.
#pragma once

#include <fenestra/ops/geometry.hpp>
#include <fenestra/spec/random.hpp>
#include <fenestra/tensor/layout.hpp>

#include <vector>

namespace fenestra {

/// Per-axis lists drawn from requests that resolve; a `same` on any axis becomes `same` on all.
struct RandomWindows {
  Shape in;
  PerAxis kernel, stride, dilation;
  Padding padding;

  RandomWindows(Random& random, int rank) {
    padding.low = padding.high = PerAxis();
    bool all_same = false;
    for (int axis = 0; axis < rank; ++axis) {
      AxisRequest r = random_axis(random, rank);
      if (axis == 0) {
        all_same = r.same;
      }
      if (!all_same && r.same) {
        r.same = false;
        r.in += r.dilation * (r.kernel - 1);
      }
      in.push_back(r.in);
      kernel.push_back(r.kernel);
      stride.push_back(r.stride);
      dilation.push_back(r.dilation);
      padding.push_back({r.pad_low, r.pad_high});
    }
    if (all_same) {
      padding = same;
    }
  }
};

/// Batch, channels and layout of a random problem. Batch 0 and single samples occur.
struct RandomActivation {
  ActivationShape shape;
  Layout layout;

  RandomActivation(Random& random, const Shape& spatial, Index channels)
      : shape{!random.chance(4), random.chance(12) ? 0 : random.between(1, 3), channels, spatial},
        layout(random.chance(3) ? Layout::channels_last : Layout::channels_first) {}

  Shape joined() const { return join_activation(shape, layout); }
};

}  // namespace fenestra

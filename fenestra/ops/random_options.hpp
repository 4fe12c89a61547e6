// Random options for the laws: what every operator's random problems have in common.
#pragma once

#include <fenestra/ops/geometry.hpp>
#include <fenestra/spec/random.hpp>
#include <fenestra/tensor/layout.hpp>

#include <algorithm>
#include <vector>

namespace fenestra {

/// Per-axis lists drawn from requests that resolve; a `same` on any axis becomes `same` on all.
struct RandomWindows {
  Shape in;
  PerAxis kernel, stride, dilation;
  Padding padding;

  RandomWindows(Random& random, int rank, Reach reach = Reach::exact) {
    padding.low = padding.high = PerAxis();
    bool all_same = false;
    const auto span_of = [](const AxisRequest& r) {
      return WindowAxis{.kernel = r.kernel, .dilation = r.dilation}.span();
    };
    // Most layers of networks treat their axes alike; independent axes hardly ever meet so.
    const bool alike = reach == Reach::networks && random.chance(2);
    AxisRequest first;
    for (int axis = 0; axis < rank; ++axis) {
      AxisRequest r = random_axis(random, rank, reach);
      if (alike && axis > 0) {
        const Index extent = r.in;
        r = first;
        r.in = std::max(extent, span_of(first));
      }
      first = axis == 0 ? r : first;
      if (axis == 0) {
        all_same = r.same;
      }
      if (!all_same && r.same) {
        r.same = false;
        r.in += span_of(r) - 1;
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

/// Channels of a random problem; none occurs.
inline Index random_channels(Random& random, Index largest, Reach reach = Reach::exact) {
  if (reach == Reach::exact) {
    return random.chance(12) ? 0 : random.between(1, largest);
  }
  return random.chance(60) ? 0 : random_count(random, 130);
}

/// Batch, channels and layout of a random problem. Batch 0 and single samples occur.
struct RandomActivation {
  ActivationShape shape;
  Layout layout;

  RandomActivation(Random& random, const Shape& spatial, Index channels, Reach reach = Reach::exact)
      : shape{!random.chance(4), random_batch(random, reach), channels, spatial},
        layout(random.chance(3) ? Layout::channels_last : Layout::channels_first) {}

  Shape joined() const { return join_activation(shape, layout); }

 private:
  static Index random_batch(Random& random, Reach reach) {
    if (random.chance(reach == Reach::exact ? 12 : 24)) {
      return 0;
    }
    const bool is_small = reach == Reach::exact || !random.chance(4);
    return random.between(1, is_small ? 3 : 17);
  }
};

}  // namespace fenestra

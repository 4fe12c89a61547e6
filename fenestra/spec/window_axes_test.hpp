// Axes for exhaustive tests of the window map: inputs from 1 to 7, kernels from 1 to 4, strides
// from 1 to 6, dilations from 1 to 6, paddings from 0 to 4, both rules of extents and the
// transposed one. Not installed.
#pragma once

#include <fenestra/spec/window.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace fenestra {

inline std::string describe(const WindowAxis& a) {
  return "i=" + std::to_string(a.in) + " k=" + std::to_string(a.kernel) +
         " s=" + std::to_string(a.stride) + " d=" + std::to_string(a.dilation) +
         " pl=" + std::to_string(a.pad_low) + " pr=" + std::to_string(a.pad_high) +
         " o=" + std::to_string(a.out);
}

template <class F>
void for_each_axis(const F& f) {
  for (Index in = 1; in <= 7; ++in) {
    for (Index kernel = 1; kernel <= 4; ++kernel) {
      for (Index stride = 1; stride <= 6; ++stride) {
        for (Index dilation = 1; dilation <= 6; ++dilation) {
          for (Index low = 0; low <= 4; ++low) {
            for (Index high = 0; high <= 4; high += 2) {
              const AxisRequest r{.in = in,
                                  .kernel = kernel,
                                  .stride = stride,
                                  .dilation = dilation,
                                  .pad_low = low,
                                  .pad_high = high};
              for (const auto& resolved :
                   {resolve_sliding(r, 0, ExtentRule::floor),
                    resolve_sliding(r, 0, ExtentRule::ceil),
                    resolve_transposed(r, 0, 0, {}),
                    resolve_transposed(r, 0, std::max(stride, dilation) - 1, {})}) {
                if (!resolved.fault) {
                  f(resolved.axis);
                }
              }
            }
          }
        }
      }
    }
  }
}

inline std::vector<Index> listed(const Progression& p) {
  std::vector<Index> values;
  for (Index i = 0; i < p.count; ++i) {
    values.push_back(p.at(i));
  }
  return values;
}
inline std::vector<Index> listed(const IndexRange& range) {
  return listed(Progression{range.begin, 1, range.count()});
}

}  // namespace fenestra

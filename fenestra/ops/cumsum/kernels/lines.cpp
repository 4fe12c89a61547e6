// Compiled running sums for float and double, in order along the axis; lines are spread over
// threads, so results do not depend on their number.
#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/cumsum/cumsum.hpp>

#include <algorithm>

namespace fenestra {

template <KernelScalar T>
void cumsum_kernel(const T* x, T* out, const AxisView& view, bool reverse) {
  const auto [outer, extent, inner] = view;
  if (outer * extent * inner == 0) {
    return;
  }
  // Neighbouring lines are summed together, which vectorises; as many as stay in the first cache.
  const Index together = std::min<Index>(inner, 2048);
  const Index blocks = (inner + together - 1) / together;
  const Index grain = std::max<Index>(1, 16384 / (extent * together));
  parallel_for(outer * blocks, grain, [&](Index begin, Index end) {
    for (Index b = begin; b < end; ++b) {
      const Index first = b % blocks * together;
      const Index count = std::min(together, inner - first);
      const Index step = reverse ? -inner : inner;
      const Index at = (b / blocks * extent + (reverse ? extent - 1 : 0)) * inner + first;
      const T* from = x + at;
      T* to = out + at;
      std::copy_n(from, count, to);
      for (Index k = 1; k < extent; ++k) {
        from += step;
        for (Index i = 0; i < count; ++i) {
          to[step + i] = to[i] + from[i];
        }
        to += step;
      }
    }
  });
}

template void cumsum_kernel(const float*, float*, const AxisView&, bool);
template void cumsum_kernel(const double*, double*, const AxisView&, bool);

}  // namespace fenestra

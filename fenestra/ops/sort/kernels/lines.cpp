// Compiled sorting for float and double, spread over threads by lines.
#include <fenestra/base/parallel.hpp>
#include <fenestra/ops/sort/sort.hpp>

#include <algorithm>
#include <vector>

namespace fenestra {

template <KernelScalar T>
void sort_kernel(
    const T* x, T* out, Index* cells, const AxisView& view, Index count, bool descending) {
  const Index extent = view.extent;
  const Index inner = view.inner;
  if (view.outer * inner * count == 0) {
    return;
  }
  const Index grain = std::max<Index>(1, 2048 / extent);
  parallel_for(view.outer * inner, grain, [&](Index begin, Index end) {
    std::vector<Index> order(static_cast<std::size_t>(extent));
    for (Index line = begin; line < end; ++line) {
      const Index from = line / inner * extent * inner + line % inner;
      const Index to = line / inner * count * inner + line % inner;
      spec::sort_line(x + from, inner, order, count, descending);
      for (Index k = 0; k < count; ++k) {
        const Index cell = from + order[static_cast<std::size_t>(k)] * inner;
        out[to + k * inner] = x[cell];
        if (cells != nullptr) {
          cells[to + k * inner] = cell;
        }
      }
    }
  });
}

template void sort_kernel(const float*, float*, Index*, const AxisView&, Index, bool);
template void sort_kernel(const double*, double*, Index*, const AxisView&, Index, bool);

}  // namespace fenestra

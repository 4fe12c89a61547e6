// Operands packed ahead of the products that read them, and matrices in memory; see gemm.hpp.
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/gemm.hpp>
#include <fenestra/kernels/gemm_plan.hpp>

#include <algorithm>

namespace fenestra::kernels {

using namespace fenestra::kernels::detail;

namespace {

/// How a matrix in memory is read; `panels` are of it.
template <class T>
LeftOperand<T> strided_left(const GemmSize& size,
                            const StridedOperand<T>& a,
                            const StridedPanels<T>& panels) {
  LeftOperand<T> left;
  left.data = a.data;
  if (a.depth_stride == 1) {
    left.access = LeftAccess::rows;
    left.row_stride = a.line_stride;
  } else if (a.line_stride == 1 && size.columns <= 32) {
    // Depths that are a large power of two apart fall into few sets of the cache; more columns than
    // this pay for a copy.
    left.access = LeftAccess::lines;
    left.depth_stride = a.depth_stride;
  } else {
    left.access = LeftAccess::packed_block;
    left.panels = &panels;
  }
  return left;
}

template <class T>
RightOperand<T> strided_right(const StridedOperand<T>& b) {
  return {.data = b.data, .depth_stride = b.depth_stride, .line_stride = b.line_stride};
}

}  // namespace

template <class T>
Index packed_left_elements(const GemmSize& size) noexcept {
  return size.rows * size.depth;
}

template <class T>
void pack_left(const GemmSize& size, const PanelSource<T>& a, T* packed) {
  const DepthCuts cuts(size.depth, 0);
  const RowPanels panels = row_panels(size.rows);
  parallel_for(panels.count, 4, [&](Index begin, Index end) {
    pack_rows(a, panels, cuts, begin, end, packed);
  });
}

template <class T>
Index packed_right_elements(const GemmSize& size) noexcept {
  const Index width = panel_width<T>(size.rows);
  return ceil_of(size.columns, width) * width * size.depth;
}

template <class T>
void pack_right(const GemmSize& size, Index segment, const RightOperand<T>& b, T* packed) {
  const DepthCuts cuts(size.depth, segment);
  const Index width = panel_width<T>(size.rows);
  const Index panels = ceil_of(size.columns, width);
  const StridedOperand<T> matrix{b.data, b.line_stride, b.depth_stride};
  parallel_for(panels, 1, [&](Index begin, Index end) {
    const Index j0 = begin * width;
    const Index columns = std::min(end * width, size.columns) - j0;
    for (Index block = 0; block < cuts.count(); ++block) {
      const auto [k0, k1] = cuts.block(block);
      T* dst = packed + k0 * panels * width + j0 * (k1 - k0);
      const PanelRange range{j0, columns, k0, k1};
      if (b.columns != nullptr) {
        ScratchFrame frame;
        b.columns->open(range, frame).pack(range, width, dst);
      } else {
        pack_strided(matrix, range, width, dst);
      }
    }
  });
}

template <class T>
void gemm_strided(const GemmSize& size,
                  const StridedOperand<T>& a,
                  const StridedOperand<T>& b,
                  const Product<T>& c) {
  const StridedPanels<T> panels(a);
  gemm<T>(size, strided_left(size, a, panels), strided_right(b), c);
}

template <class T>
void gemm_strided(const GemmSize& size,
                  const StridedOperand<T>& a,
                  const T* packed_b,
                  const Product<T>& c) {
  const StridedPanels<T> panels(a);
  gemm<T>(size, strided_left(size, a, panels), {.packed = packed_b}, c);
}

template <class T>
void pack_strided_right(const GemmSize& size, const StridedOperand<T>& b, T* packed) {
  pack_right<T>(size, 0, strided_right(b), packed);
}

#define FENESTRA_INSTANTIATE_PACKING(T)                                                        \
  template Index packed_left_elements<T>(const GemmSize&) noexcept;                            \
  template void pack_left(const GemmSize&, const PanelSource<T>&, T*);                         \
  template Index packed_right_elements<T>(const GemmSize&) noexcept;                           \
  template void pack_right(const GemmSize&, Index, const RightOperand<T>&, T*);                \
  template void gemm_strided(                                                                  \
      const GemmSize&, const StridedOperand<T>&, const StridedOperand<T>&, const Product<T>&); \
  template void gemm_strided(                                                                  \
      const GemmSize&, const StridedOperand<T>&, const T*, const Product<T>&);                 \
  template void pack_strided_right(const GemmSize&, const StridedOperand<T>&, T*)

FENESTRA_INSTANTIATE_PACKING(float);
FENESTRA_INSTANTIATE_PACKING(double);
#undef FENESTRA_INSTANTIATE_PACKING

}  // namespace fenestra::kernels

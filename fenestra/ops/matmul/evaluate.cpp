// Compiled matrix products: stacks of them on the blocked GEMM, transposition by strides.
#include <fenestra/base/export.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/kernels/gemm.hpp>
#include <fenestra/ops/matmul/matmul.hpp>

namespace fenestra {

template <KernelScalar T>
void matmul_kernel(const MatMulGeometry& g, const T* a, const T* b, const T* bias, T* y) {
  kernels::apply_isa_limit();
  const detail::BatchOffsets batch(g);
  const Index m = g.rows();
  const Index n = g.columns();
  const Index depth = g.depth();
  const Index a_row = g.options.transpose_a ? 1 : depth;
  const Index a_depth = g.options.transpose_a ? m : 1;
  const Index b_column = g.options.transpose_b ? depth : 1;
  const Index b_depth = g.options.transpose_b ? 1 : n;
  const auto product = [&](Index s) {
    T* out = y + s * m * n;
    if (depth == 0) {  // a sum over nothing
      for (Index i = 0; i < m * n; ++i) {
        out[i] = bias != nullptr ? bias[i % n] : T(0);
      }
      return;
    }
    kernels::gemm_strided<T>(
        {.rows = m, .columns = n, .depth = depth},
        {.data = a + batch(0, s) * m * depth, .line_stride = a_row, .depth_stride = a_depth},
        {.data = b + batch(1, s) * n * depth, .line_stride = b_column, .depth_stride = b_depth},
        {.data = out, .row_stride = n, .column_bias = bias});
  };
  if (batch.count() == 1) {
    product(0);
    return;
  }
  // A stack is spread by matrices; a product inside a range runs in that range's thread.
  constexpr Index kWork = 65536;  // multiply-adds that pay for waking a thread
  const Index grain = kWork / (m * n * (depth + 1)) + 1;
  parallel_for(batch.count(), grain, [&](Index begin, Index end) {
    for (Index s = begin; s < end; ++s) {
      product(s);
    }
  });
}

template FENESTRA_API void matmul_kernel(
    const MatMulGeometry&, const float*, const float*, const float*, float*);
template FENESTRA_API void matmul_kernel(
    const MatMulGeometry&, const double*, const double*, const double*, double*);

}  // namespace fenestra

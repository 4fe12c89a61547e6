// Compiled matrix products: stacks of them on the blocked GEMM, transposition by strides.
#include <fenestra/base/export.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/kernels/gemm.hpp>
#include <fenestra/kernels/isa.hpp>
#include <fenestra/ops/matmul/matmul.hpp>

namespace fenestra {

namespace {

kernels::GemmSize size_of(const MatMulGeometry& g) {
  return {.rows = g.rows(), .columns = g.columns(), .depth = g.depth()};
}

template <class T>
kernels::StridedOperand<T> left_of(const MatMulGeometry& g, const T* a) {
  const bool transposed = g.options.transpose_a;
  return {a, transposed ? 1 : g.depth(), transposed ? g.rows() : 1};
}

template <class T>
kernels::StridedOperand<T> right_of(const MatMulGeometry& g, const T* b) {
  const bool transposed = g.options.transpose_b;
  return {b, transposed ? g.depth() : 1, transposed ? 1 : g.columns()};
}

}  // namespace

template <KernelScalar T>
void matmul_kernel(const MatMulGeometry& g, const T* a, const T* b, const T* bias, T* y) {
  kernels::apply_isa_limit();
  const detail::BatchOffsets batch(g);
  const Index m = g.rows();
  const Index n = g.columns();
  const Index depth = g.depth();
  const auto product = [&](Index s) {
    T* out = y + s * m * n;
    if (depth == 0) {  // a sum over nothing
      for (Index i = 0; i < m * n; ++i) {
        out[i] = bias != nullptr ? bias[i % n] : T(0);
      }
      return;
    }
    kernels::gemm_strided<T>(size_of(g),
                             left_of(g, a + batch(0, s) * m * depth),
                             right_of(g, b + batch(1, s) * n * depth),
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

template <KernelScalar T>
PreparedMatMul<T>::PreparedMatMul(const MatMulGeometry& g) : g_(g), isa_(kernels::isa_name()) {
  if (g.y.rank() == 2) {
    packed_elements_ = static_cast<std::size_t>(kernels::packed_right_elements<T>(size_of(g)));
  }
}

template <KernelScalar T>
void PreparedMatMul<T>::pack_elements(const T* b, T* packed) const {
  if (isa_ == kernels::isa_name()) {
    kernels::pack_strided_right<T>(size_of(g_), right_of(g_, b), packed);
  }
}

template <KernelScalar T>
void PreparedMatMul<T>::compute(std::span<const Tensor<T>> in,
                                std::span<const Selection>,
                                T* out,
                                const SelectionBuffer&,
                                void*,
                                const T* packed) const {
  if (g_.y.elements().value_or(0) == 0) {
    return;
  }
  const T* bias = g_.has_bias ? in[2].data() : nullptr;
  if (packed == nullptr || isa_ != kernels::isa_name()) {
    matmul_kernel(g_, in[0].data(), in[1].data(), bias, out);
    return;
  }
  kernels::gemm_strided<T>(size_of(g_),
                           left_of(g_, in[0].data()),
                           packed,
                           {.data = out, .row_stride = g_.columns(), .column_bias = bias});
}

template class PreparedMatMul<float>;
template class PreparedMatMul<double>;

}  // namespace fenestra

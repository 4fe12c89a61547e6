// Matrix products on any value type: matmul with NumPy's forms, and the linear layer.
//
// The primitive carries a transposition flag per operand, which closes the family: both derivatives
// of a product are products with other flags, so no transposed copy is ever made.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/engine/tensor_kernel.hpp>
#include <fenestra/graph/operation.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/elementwise/sum_to.hpp>
#include <fenestra/ops/matmul/call.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/ops/reshape/reshape.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace fenestra {

/// Matrices of rank 2 or more with their leading (batch) axes resolved.
struct MatMulGeometry {
  MatMulOptions options;
  Shape a;
  Shape b;
  Shape y;
  bool has_bias = false;  ///< a third input, one value per column

  constexpr Index rows() const { return y[y.rank() - 2]; }
  constexpr Index columns() const { return y[y.rank() - 1]; }
  constexpr Index depth() const { return options.transpose_a ? a[a.rank() - 2] : a[a.rank() - 1]; }
  friend bool operator==(const MatMulGeometry&, const MatMulGeometry&) = default;
};

namespace detail {

/// The shape without its last two axes.
constexpr Shape batch_axes(const Shape& shape) {
  Shape result;
  for (int axis = 0; axis + 2 < shape.rank(); ++axis) {
    result.push_back(shape[axis]);
  }
  return result;
}

/// A vector is a row on the left and a column on the right.
constexpr Shape as_row(const Shape& a) { return a.rank() == 1 ? Shape{1, a[0]} : a; }
constexpr Shape as_column(const Shape& b) { return b.rank() == 1 ? Shape{b[0], 1} : b; }

/// Whether both have the axes that a product with these options reads.
constexpr Fault check_factors(const Shape& a, const Shape& b, const MatMulOptions& options) {
  if (a.rank() == 0 || b.rank() == 0) {
    return {.code = ErrorCode::rank_mismatch, .got = 0, .needed = 1};
  }
  if ((a.rank() == 1 && options.transpose_a) || (b.rank() == 1 && options.transpose_b)) {
    return {.code = ErrorCode::rank_mismatch, .got = 1, .needed = 2};
  }
  return {};
}
/// Whether the extents that are summed over are equal, of two matrices or stacks of them.
constexpr Fault check_depths(const Shape& a, const Shape& b, const MatMulOptions& options) {
  const Index of_a = options.transpose_a ? a[a.rank() - 2] : a[a.rank() - 1];
  const Index of_b = options.transpose_b ? b[b.rank() - 1] : b[b.rank() - 2];
  if (of_a == of_b) {
    return {};
  }
  return {.code = ErrorCode::shape_mismatch, .got = of_b, .needed = of_a};
}
/// Everything that matmul asks of shapes.
constexpr Fault check_matmul(const Shape& a, const Shape& b, const MatMulOptions& options) {
  if (const Fault fault = check_factors(a, b, options)) {
    return fault;
  }
  const Shape left = as_row(a);
  const Shape right = as_column(b);
  const Fault fault = check_broadcast(batch_axes(left), batch_axes(right));
  return fault ? fault : check_depths(left, right, options);
}

[[noreturn]] inline void throw_matmul(const Shape& a,
                                      const Shape& b,
                                      Fault fault,
                                      const std::string& text) {
  throw Error(
      "matmul", fault, "matmul: a = " + to_string(a) + ", b = " + to_string(b) + "\n  " + text);
}

/// Where each matrix of the result finds its operands, in matrices.
class BatchOffsets {
 public:
  explicit BatchOffsets(const MatMulGeometry& g)
      : loop_(batch_axes(g.y), {batch_axes(g.a), batch_axes(g.b)}) {}
  Index count() const { return loop_.inner() * loop_.outer(); }
  Index operator()(std::size_t operand, Index i) const {
    return loop_.offset(operand, i / loop_.inner()) + i % loop_.inner() * loop_.inner_step(operand);
  }

 private:
  BroadcastLoop<2> loop_;
};

}  // namespace detail

/// Resolves two matrices (or stacks of them) without bias; throws `shape_mismatch` with both
/// shapes.
constexpr MatMulGeometry matmul_geometry(const Shape& a,
                                         const Shape& b,
                                         const MatMulOptions& options) {
  const auto last = [](const Shape& s, int back) { return s[s.rank() - back]; };
  MatMulGeometry g{options,
                   a,
                   b,
                   broadcast_shape("matmul", detail::batch_axes(a), detail::batch_axes(b)),
                   false};
  if (const Fault fault = detail::check_depths(a, b, options)) {
    detail::throw_matmul(a,
                         b,
                         fault,
                         "inner extents: " + std::to_string(fault.needed) + " of a against " +
                             std::to_string(fault.got) +
                             " of b\n  fix: make them equal, or transpose");
  }
  g.y.push_back(options.transpose_a ? last(a, 1) : last(a, 2));
  g.y.push_back(options.transpose_b ? last(b, 2) : last(b, 1));
  require_elements("matmul", "a", Argument::none, a);
  require_elements("matmul", "b", Argument::none, b);
  require_elements("matmul", "the product of a and b", Argument::none, g.y);
  Shape work = g.y;
  if (work.rank() < kMaxRank) {
    work.push_back(g.depth());
    require_elements("matmul", "the multiply-adds of a and b", Argument::none, work);
  }
  return g;
}

// Compiled for float and double in kernels/gemm.cpp, on the blocked GEMM.
template <KernelScalar T>
void matmul_kernel(const MatMulGeometry& g, const T* a, const T* b, const T* bias, T* y);

template <KernelScalar T>
class PreparedMatMul;

template <AnyValue V>
constexpr V matmul_matrices(const V& a,
                            const V& b,
                            const MatMulOptions& options,
                            const V* bias = nullptr);

struct MatMulPrimitive : PrimitiveBase<MatMulPrimitive> {
  static constexpr std::string_view name = "matmul";
  MatMulGeometry g;

  constexpr Shape result_shape(const Shape&) const { return g.y; }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    if (g.y.elements().value_or(0) == 0) {
      return;
    }
    if constexpr (KernelScalar<T>) {
      matmul_kernel(g, in[0].data(), in[1].data(), g.has_bias ? in[2].data() : nullptr, out);
    } else {
      const detail::BatchOffsets batch(g);
      const Index m = g.rows(), n = g.columns(), depth = g.depth();
      for (Index s = 0; s < batch.count(); ++s) {
        const T* a = in[0].data() + batch(0, s) * m * depth;
        const T* b = in[1].data() + batch(1, s) * n * depth;
        for (Index i = 0; i < m; ++i) {
          for (Index j = 0; j < n; ++j) {
            T sum(0);
            for (Index k = 0; k < depth; ++k) {
              sum = sum + a[g.options.transpose_a ? k * m + i : i * depth + k] *
                              b[g.options.transpose_b ? j * depth + k : k * n + j];
            }
            *out++ = g.has_bias ? T(sum + in[2][j]) : sum;
          }
        }
      }
    }
  }
  template <KernelScalar T>
  std::unique_ptr<const graph::Kernel> prepare() const {
    return std::unique_ptr<const graph::Kernel>(new PreparedMatMul<T>(g));
  }
  Index multiply_adds() const { return g.y.elements().value_or(0) * g.depth(); }
  std::string attributes() const {
    return std::string(g.options.transpose_a ? "a' " : "a ") + (g.options.transpose_b ? "b'" : "b");
  }
  /// With A = op(a), B = op(b): A_bar = y_bar B', B_bar = A' y_bar, transposed where the operand
  /// is.
  template <class V>
  V vjp(int i, const Saved<V>& saved, const V& y_bar) const {
    const auto [ta, tb] = g.options;
    if (i == 2) {
      return sum_to(y_bar, Shape{g.columns()});
    }
    if (i == 0) {
      return sum_to(ta ? matmul_matrices(saved[1], y_bar, {tb, true})
                       : matmul_matrices(y_bar, saved[1], {false, !tb}),
                    g.a);
    }
    return sum_to(tb ? matmul_matrices(y_bar, saved[0], {true, ta})
                     : matmul_matrices(saved[0], y_bar, {!ta, false}),
                  g.b);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    OptionalSum<V> sum;
    if (dots[0]) {
      sum.add_term(matmul_matrices(*dots[0], saved[1], g.options));
    }
    if (dots[1]) {
      sum.add_term(matmul_matrices(saved[0], *dots[1], g.options));
    }
    if (g.has_bias && dots[2]) {
      sum.add_term(broadcast_to(*dots[2], g.y));
    }
    return sum.take();
  }
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  static constexpr bool needs(int i, int what) { return i != 2 && what == 1 - i; }
  friend bool operator==(const MatMulPrimitive&, const MatMulPrimitive&) = default;
};

/// A product whose right matrix can be packed ahead, where there is one only; the packed form is
/// passed over where another instruction set is in use by then.
template <KernelScalar T>
class FENESTRA_API PreparedMatMul final : public TensorKernel<T> {
 public:
  explicit PreparedMatMul(const MatMulGeometry& g);

  graph::Packing packing() const override { return {1, packed_elements_ * sizeof(T)}; }
  void pack_elements(const T* b, T* packed) const override;
  void compute(std::span<const Tensor<T>> in,
               std::span<const Selection>,
               T* out,
               const SelectionBuffer&,
               void*,
               const T* packed) const override;

 private:
  MatMulGeometry g_;
  std::string_view isa_;
  std::size_t packed_elements_ = 0;
};
extern template class PreparedMatMul<float>;
extern template class PreparedMatMul<double>;

/// Both of rank 2 or more.
template <AnyValue V>
constexpr V matmul_matrices(const V& a, const V& b, const MatMulOptions& options, const V* bias) {
  MatMulGeometry g = matmul_geometry(a.shape(), b.shape(), options);
  if (b.shape().rank() == 2 && a.shape().rank() > 2 && !options.transpose_a) {
    // One matrix on the right: the stack on the left is one tall matrix, and so is the sum over the
    // stack in the gradient of the right.
    const Index rows = detail::batch_axes(a.shape()).elements().value_or(0) * g.rows();
    return reshape(matmul_matrices(reshape(a, Shape{rows, g.depth()}), b, options, bias), g.y);
  }
  if (bias != nullptr) {
    g.has_bias = true;
    return apply(MatMulPrimitive{{}, g}, {a, b, *bias});
  }
  return apply(MatMulPrimitive{{}, g}, {a, b});
}

/// The shapes of a product with vectors: as matrices, and the result's own shape.
struct ResolvedMatMul {
  Shape a;
  Shape b;
  Shape y;
};

constexpr ResolvedMatMul resolve_matmul(const Shape& a,
                                        const Shape& b,
                                        const MatMulOptions& options) {
  if (const Fault fault = detail::check_factors(a, b, options)) {
    detail::throw_matmul(a,
                         b,
                         fault,
                         "a scalar is no matrix, and a vector is not transposed\n"
                         "  fix: at least one axis, and two where a transposition is asked for");
  }
  ResolvedMatMul result{detail::as_row(a), detail::as_column(b), {}};
  const Shape y = matmul_geometry(result.a, result.b, options).y;
  result.y = detail::batch_axes(y);
  if (a.rank() > 1) {
    result.y.push_back(y[y.rank() - 2]);
  }
  if (b.rank() > 1) {
    result.y.push_back(y[y.rank() - 1]);
  }
  return result;
}

inline namespace generic {

template <AnyValue V>
constexpr V matmul_values(const V& a, const V& b, const MatMulOptions& options) {
  const ResolvedMatMul shapes = resolve_matmul(a.shape(), b.shape(), options);
  return reshape(matmul_matrices(reshape(a, shapes.a), reshape(b, shapes.b), options), shapes.y);
}

}  // namespace generic

namespace detail {

constexpr Fault check_linear(const Shape& x, const Shape& w, const Shape* b) {
  if (w.rank() != 2) {
    return {
        .code = ErrorCode::rank_mismatch, .argument = Argument::w, .got = w.rank(), .needed = 2};
  }
  if (x.rank() < 1) {
    return {
        .code = ErrorCode::rank_mismatch, .argument = Argument::x, .got = x.rank(), .needed = 1};
  }
  if (x[x.rank() - 1] != w[1]) {
    return {.code = ErrorCode::shape_mismatch,
            .argument = Argument::x,
            .got = x[x.rank() - 1],
            .needed = w[1]};
  }
  if (b != nullptr && *b != Shape{w[0]}) {
    return {.code = ErrorCode::bias_mismatch,
            .argument = Argument::b,
            .got = b->rank() == 1 ? (*b)[0] : b->rank(),
            .needed = w[0]};
  }
  return {};
}

constexpr void require_linear(const Shape& x, const Shape& w, const Shape* b) {
  const Fault fault = check_linear(x, w, b);
  if (!fault) {
    return;
  }
  std::string text = "linear: x = " + to_string(x) + ", w (out, in) = " + to_string(w) +
                     (b != nullptr ? ", b = " + to_string(*b) : "") + "\n  ";
  const std::string got = std::to_string(fault.got);
  const std::string needed = std::to_string(fault.needed);
  switch (fault.code) {
    case ErrorCode::rank_mismatch: text += "fix: w of two axes, x of at least one"; break;
    case ErrorCode::bias_mismatch: text += "fix: b of shape (" + needed + ",)"; break;
    default:
      text += "x has " + got + " features, w takes " + needed + "\n  fix: make the last axes equal";
  }
  throw Error("linear", fault, text);
}

/// The shape of linear(x, w); throws where it, x or w has too many elements.
constexpr Shape linear_shape(const Shape& x, const Shape& w) {
  Shape y = matmul_geometry(as_row(x), w, {.transpose_b = true}).y;
  if (x.rank() == 1) {
    y = Shape{w[0]};
  }
  return y;
}

/// Any leading axes, none included.
template <AnyValue V>
constexpr V linear_of(const V& x, const V& w, const V* b) {
  if (x.shape().rank() == 1) {
    const V row = reshape(x, Shape{1, x.shape()[0]});
    return reshape(matmul_matrices(row, w, {.transpose_b = true}, b), Shape{w.shape()[0]});
  }
  return matmul_matrices(x, w, {.transpose_b = true}, b);
}

}  // namespace detail

inline namespace generic {

template <AnyValue V>
constexpr V linear_values(const V& x, const V& w, const V* b) {
  const Shape b_shape = b != nullptr ? b->shape() : Shape();
  detail::require_linear(x.shape(), w.shape(), b != nullptr ? &b_shape : nullptr);
  return detail::linear_of(x, w, b);
}

}  // namespace generic

}  // namespace fenestra

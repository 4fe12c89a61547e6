// Average pooling on any value type. Linear: the operator and its adjoint are each other's
// derivatives.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/apply.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/with_kernel.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/avg_pool/geometry.hpp>
#include <fenestra/ops/avg_pool/spec.hpp>
#include <fenestra/ops/kernel_choice.hpp>
#include <fenestra/tensor/split.hpp>

namespace fenestra {

enum class AvgPoolDirection { forward, input_grad };

/// Every candidate of every direction, for float and double.
FENESTRA_API std::vector<KernelChoice> avg_pool_kernels(const AvgPoolGeometry& g);

struct AvgPoolProblem;
template <class T>
struct AvgPoolArguments;
template <class T>
using AvgPoolKernel = kernels::Candidate<AvgPoolProblem, AvgPoolArguments<T>>;

/// Chooses a candidate, and runs one; compiled for float and double. `out` is overwritten whole.
template <KernelScalar T>
FENESTRA_API const AvgPoolKernel<T>& choose_avg_pool(AvgPoolDirection direction,
                                                     const AvgPoolGeometry& g);
template <KernelScalar T>
FENESTRA_API void run_avg_pool(const AvgPoolKernel<T>& kernel,
                               AvgPoolDirection direction,
                               const AvgPoolGeometry& g,
                               const T* in,
                               T* out);

struct AvgPoolPrimitive {
  static constexpr std::string_view name = "avg_pool";
  AvgPoolDirection direction = AvgPoolDirection::forward;
  AvgPoolGeometry g;

  std::string_view display_name() const {
    return direction == AvgPoolDirection::forward ? name : "avg_pool_input_grad";
  }
  constexpr Shape result_shape(const Shape&) const {
    return direction == AvgPoolDirection::forward ? g.pool.y_shape() : g.pool.x_shape();
  }
  template <class T>
  void run(std::span<const Tensor<T>> in, std::span<const Selection> data, T* out) const {
    if constexpr (KernelScalar<T>) {
      run_with(choose_avg_pool<T>(direction, g), in, data, out, {});
    } else {
      const bool is_forward = direction == AvgPoolDirection::forward;
      store(is_forward ? spec::avg_pool(in[0], g) : spec::avg_pool_vjp(in[0], g), out);
    }
  }
  template <KernelScalar T>
  void run_with(const AvgPoolKernel<T>& kernel,
                std::span<const Tensor<T>> in,
                std::span<const Selection>,
                T* out,
                const SelectionBuffer&) const {
    run_avg_pool(kernel, direction, g, in[0].data(), out);
  }
  template <KernelScalar T>
  WithKernel<AvgPoolPrimitive, AvgPoolKernel<T>> prepare() const {
    return {*this, &choose_avg_pool<T>(direction, g)};
  }
  std::optional<Split> split(std::span<const Shape> in) const {
    return split_all(in.size(), g.pool.batched);
  }
  AvgPoolPrimitive piece(Index count) const { return pool_piece(*this, count); }
  std::string attributes() const { return to_string(g); }
  template <class V>
  V vjp(int, const Saved<V>&, const V& bar) const {
    const bool is_forward = direction == AvgPoolDirection::forward;
    return apply(
        AvgPoolPrimitive{is_forward ? AvgPoolDirection::input_grad : AvgPoolDirection::forward, g},
        {bar});
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>&, std::span<const std::optional<V>> dots) const {
    return apply(*this, {*dots[0]});
  }
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const AvgPoolPrimitive&, const AvgPoolPrimitive&) = default;
};

/// The mean of each window; see AvgPoolOptions. `named_rank` fixes the number of spatial axes, 0
/// infers it.
template <AnyValue V>
constexpr V avg_pool(const V& x, const AvgPoolOptions& options, int named_rank = 0) {
  return apply(AvgPoolPrimitive{AvgPoolDirection::forward,
                                avg_pool_geometry(x.shape(), options, named_rank)},
               {x});
}

template <AnyValue V>
constexpr V avg_pool1d(const V& x, const AvgPoolOptions& options) {
  return avg_pool(x, options, 1);
}
template <AnyValue V>
constexpr V avg_pool2d(const V& x, const AvgPoolOptions& options) {
  return avg_pool(x, options, 2);
}
template <AnyValue V>
constexpr V avg_pool3d(const V& x, const AvgPoolOptions& options) {
  return avg_pool(x, options, 3);
}

/// The sum over each window (divisor 1), and its adjoint: every cell collects the windows that see
/// it.
template <AnyValue V>
constexpr V window_sum(const V& x, const PoolGeometry& pool) {
  return apply(AvgPoolPrimitive{AvgPoolDirection::forward, {pool, true, 1}}, x);
}
template <AnyValue V>
constexpr V window_spread(const V& y, const PoolGeometry& pool) {
  return apply(AvgPoolPrimitive{AvgPoolDirection::input_grad, {pool, true, 1}}, y);
}

}  // namespace fenestra

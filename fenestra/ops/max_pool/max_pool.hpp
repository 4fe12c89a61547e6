// Max pooling on any value type. The forward pass leaves its winners; derivatives of every order
// gather or scatter by them, which is linear.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/apply.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/with_kernel.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/kernel_choice.hpp>
#include <fenestra/ops/max_pool/geometry.hpp>
#include <fenestra/ops/max_pool/spec.hpp>
#include <fenestra/ops/max_pool/winners.hpp>
#include <fenestra/tensor/split.hpp>

#include <utility>

namespace fenestra {

/// Every candidate of every direction, for float and double.
FENESTRA_API std::vector<KernelChoice> max_pool_kernels(const MaxPoolGeometry& g);

struct MaxPoolProblem;
template <class T>
struct MaxPoolArguments;
template <class T>
using MaxPoolKernel = kernels::Candidate<MaxPoolProblem, MaxPoolArguments<T>>;

/// Chooses a candidate, and runs one; compiled for float and double. Forward: `winners_out` may be
/// null. Gather and scatter read `winners_in`. `out` is overwritten whole.
template <KernelScalar T>
FENESTRA_API const MaxPoolKernel<T>& choose_max_pool(MaxPoolDirection direction,
                                                     const MaxPoolGeometry& g);
template <KernelScalar T>
FENESTRA_API void run_max_pool(const MaxPoolKernel<T>& kernel,
                               MaxPoolDirection direction,
                               const MaxPoolGeometry& g,
                               const T* in,
                               const WinnerTap* winners_in,
                               T* out,
                               WinnerTap* winners_out);

/// x_dot at the winners, or y_bar added to them.
struct MaxPoolWinnersPrimitive {
  static constexpr std::string_view name = "max_pool_gather";
  MaxPoolDirection direction = MaxPoolDirection::gather;
  MaxPoolGeometry g;

  std::string_view display_name() const {
    return direction == MaxPoolDirection::gather ? name : "max_pool_scatter";
  }
  constexpr Shape result_shape(const Shape&) const {
    return direction == MaxPoolDirection::gather ? g.pool.y_shape() : g.pool.x_shape();
  }
  template <class T>
  void run(std::span<const Tensor<T>> in, std::span<const Selection> data, T* out) const {
    const bool gathers = direction == MaxPoolDirection::gather;
    const Selection& winners = data[0];
    if constexpr (KernelScalar<T>) {
      if (winners.is_compact()) {
        return run_with(choose_max_pool<T>(direction, g), in, data, out, {});
      }
    }
    const Tensor<Index> indices = winner_indices(winners, g.pool);
    if (gathers) {
      spec::gather(in[0].data(), indices.data(), g.pool.x_map(), g.pool.y_map(), out);
    } else {
      spec::scatter(in[0].data(), indices.data(), g.pool.x_map(), g.pool.y_map(), out);
    }
  }
  template <KernelScalar T>
  void run_with(const MaxPoolKernel<T>& kernel,
                std::span<const Tensor<T>> in,
                std::span<const Selection> data,
                T* out,
                const SelectionBuffer&) const {
    run_max_pool<T>(kernel, direction, g, in[0].data(), data[0].taps().data(), out, nullptr);
  }
  template <KernelScalar T>
  WithKernel<MaxPoolWinnersPrimitive, MaxPoolKernel<T>> prepare() const {
    return {*this, has_compact_winners(g.pool) ? &choose_max_pool<T>(direction, g) : nullptr};
  }
  std::optional<Split> split(std::span<const Shape> in) const {
    return split_all(in.size(), g.pool.batched);
  }
  MaxPoolWinnersPrimitive piece(Index count) const { return pool_piece(*this, count); }
  std::string attributes() const { return to_string(g); }
  template <class V>
  V vjp(int, const Saved<V>& saved, const V& bar) const {
    const bool gathers = direction == MaxPoolDirection::gather;
    return apply(
        MaxPoolWinnersPrimitive{gathers ? MaxPoolDirection::scatter : MaxPoolDirection::gather, g},
        {bar},
        {saved.data[0]});
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    return apply(*this, {*dots[0]}, {saved.data[0]});
  }
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const MaxPoolWinnersPrimitive&, const MaxPoolWinnersPrimitive&) = default;
};

struct MaxPoolPrimitive {
  static constexpr std::string_view name = "max_pool";
  MaxPoolGeometry g;

  constexpr Shape result_shape(const Shape&) const { return g.pool.y_shape(); }
  template <class T>
  SelectionType workspace() const {
    const bool compact = KernelScalar<T> && has_compact_winners(g.pool);
    return {compact ? SelectionForm::taps : SelectionForm::indices, g.pool.y_shape()};
  }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection> data,
           T* out,
           const SelectionBuffer& winners) const {
    if constexpr (KernelScalar<T>) {
      if (winners.indices == nullptr) {
        return run_with(choose_max_pool<T>(MaxPoolDirection::forward, g), in, data, out, winners);
      }
    }
    if (winners.indices == nullptr) {
      return store(spec::max_pool(in[0], g), out);
    }
    spec::max_pool_indices(in[0].data(), g, winners.indices);
    spec::gather(in[0].data(), winners.indices, g.pool.x_map(), g.pool.y_map(), out);
  }
  template <KernelScalar T>
  void run_with(const MaxPoolKernel<T>& kernel,
                std::span<const Tensor<T>> in,
                std::span<const Selection> data,
                T* out,
                const SelectionBuffer& winners) const {
    if (winners.indices != nullptr) {
      return run<T>(in, data, out, winners);
    }
    run_max_pool<T>(kernel, MaxPoolDirection::forward, g, in[0].data(), nullptr, out, winners.taps);
  }
  template <KernelScalar T>
  WithKernel<MaxPoolPrimitive, MaxPoolKernel<T>> prepare() const {
    return {*this, &choose_max_pool<T>(MaxPoolDirection::forward, g)};
  }
  std::optional<Split> split(std::span<const Shape> in) const {
    return split_all(in.size(), g.pool.batched);
  }
  MaxPoolPrimitive piece(Index count) const { return pool_piece(*this, count); }
  std::string attributes() const { return to_string(g); }
  template <class V>
  V vjp(int, const Saved<V>& saved, const V& y_bar) const {
    return apply(MaxPoolWinnersPrimitive{MaxPoolDirection::scatter, g}, {y_bar}, {saved.workspace});
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    return apply(
        MaxPoolWinnersPrimitive{MaxPoolDirection::gather, g}, {*dots[0]}, {saved.workspace});
  }
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const MaxPoolPrimitive&, const MaxPoolPrimitive&) = default;
};

/// A pooled value and where each of its elements came from.
template <AnyValue V>
struct MaxPoolResult {
  /// Tensor<Index>, or what stands for it where V has no tensors yet.
  using Indices =
      decltype(winner_indices(std::declval<IndicesOf<V>>(), std::declval<PoolGeometry>()));

  V y;
  Indices indices;  ///< flat over the spatial extents of one sample and channel; -1: no cell won
};

namespace detail {

template <AnyValue V>
constexpr MaxPoolResult<V> max_pool_with_indices(const V& x, const MaxPoolGeometry& g) {
  auto applied = apply_all(
      MaxPoolPrimitive{g}, std::span<const V>(&x, 1), std::span<const IndicesOf<V>>(), true);
  return {std::move(applied.y), winner_indices(applied.workspace, g.pool)};
}

}  // namespace detail

/// The largest cell of each window, the first of equals; see MaxPoolOptions. `named_rank` fixes the
/// number of spatial axes, 0 infers it.
template <AnyValue V>
constexpr V max_pool(const V& x, const MaxPoolOptions& options, int named_rank = 0) {
  return apply(MaxPoolPrimitive{max_pool_geometry(x.shape(), options, named_rank)}, x);
}

template <AnyValue V>
constexpr MaxPoolResult<V> max_pool_with_indices(const V& x,
                                                 const MaxPoolOptions& options,
                                                 int named_rank = 0) {
  return detail::max_pool_with_indices(x, max_pool_geometry(x.shape(), options, named_rank));
}

template <AnyValue V>
constexpr V max_pool1d(const V& x, const MaxPoolOptions& options) {
  return max_pool(x, options, 1);
}
template <AnyValue V>
constexpr V max_pool2d(const V& x, const MaxPoolOptions& options) {
  return max_pool(x, options, 2);
}
template <AnyValue V>
constexpr V max_pool3d(const V& x, const MaxPoolOptions& options) {
  return max_pool(x, options, 3);
}

}  // namespace fenestra

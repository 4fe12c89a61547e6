// The pools on any value type: max, average, Lp and smooth max over windows that slide, max and
// average over bins too.
//
// All are one primitive, a reduction over windows and the maps of its derivatives. How it runs and
// is differentiated is in rules.hpp, which a program needs only for scalars of its own.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/engine/with_kernel.hpp>
#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/kernel_choice.hpp>
#include <fenestra/ops/pool/call.hpp>
#include <fenestra/ops/pool/reduction.hpp>
#include <fenestra/ops/pool/spec.hpp>
#include <fenestra/ops/pool/winners.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/tensor/box.hpp>
#include <fenestra/tensor/condition.hpp>
#include <fenestra/tensor/split.hpp>

#include <utility>
#include <vector>

namespace fenestra {

// --- Kernels ------------------------------

template <class R>
struct PoolProblem {
  PoolDirection direction = PoolDirection::forward;
  ReducedGeometry<R> geometry;
};

/// Dense tensors in the geometry's layout. `out` is overwritten whole.
template <class T>
struct PoolArguments {
  const T* in = nullptr;                  ///< x; where x is not needed, what is mixed or spread
  const T* v = nullptr;                   ///< smooth max: what is mixed or spread
  T beta = T(1);                          ///< smooth max
  const WinnerTap* winners_in = nullptr;  ///< max: mix and spread
  T* out = nullptr;
  WinnerTap* winners_out = nullptr;  ///< max: forward; null where nobody asked
};

template <class T, class R>
using PoolKernel = kernels::Candidate<PoolProblem<R>, PoolArguments<T>>;

/// Chooses a candidate, and runs one; compiled for float and double.
template <KernelScalar T, class R>
FENESTRA_API const PoolKernel<T, R>& choose_pool(const PoolProblem<R>& problem);
template <KernelScalar T, class R>
FENESTRA_API void run_pool(const PoolKernel<T, R>& kernel,
                           const PoolProblem<R>& problem,
                           const PoolArguments<T>& args);

/// Every candidate of every direction, for float and double.
template <class R>
FENESTRA_API std::vector<KernelChoice> pool_kernels(const ReducedGeometry<R>& g);

// --- The primitive ------------------------------

/// Inputs: x, for smooth max also beta; what is mixed or spread comes in the place of x, or as the
/// third where x is needed (smooth max). Max pooling leaves its winners, and its mix (a gather) and
/// its spread (a scatter) read them.
template <class R>
struct PoolPrimitive : PrimitiveBase<PoolPrimitive<R>> {
  static constexpr std::string_view name = R::op;
  static constexpr bool kHasWinners = std::same_as<R, MaxReduction>;
  static constexpr bool kHasBeta = std::same_as<R, SmoothMaxReduction>;

  PoolDirection direction = PoolDirection::forward;
  ReducedGeometry<R> g;

  std::string_view display_name() const { return R::names[static_cast<int>(direction)]; }
  constexpr Shape result_shape(const Shape&) const {
    return direction == PoolDirection::spread ? g.pool.x_shape() : g.pool.y_shape();
  }
  template <class T>
  SelectionType workspace() const;
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection> data,
           T* out,
           const SelectionBuffer& winners) const;
  template <KernelScalar T>
  void run_with(const PoolKernel<T, R>& kernel,
                std::span<const Tensor<T>> in,
                std::span<const Selection> data,
                T* out,
                const SelectionBuffer& winners) const;
  template <KernelScalar T>
  std::unique_ptr<const graph::Kernel> prepare() const;
  /// Beta is read whole.
  std::optional<Split> split(std::span<const Shape> in) const {
    std::optional<Split> split = split_all(in.size(), g.pool.batched);
    if (split && kHasBeta) {
      split->in[1] = false;
    }
    return split;
  }
  PoolPrimitive piece(Index count) const {
    PoolPrimitive part = *this;
    part.g.pool.batch = count;
    return part;
  }
  /// Of forward: beta is read whole.
  std::optional<TileOf<PoolPrimitive>> tile(std::span<const Shape> in, const Box& box) const {
    const auto part =
        direction == PoolDirection::forward
            ? tile_windows(
                  g.pool.windows, false, g.pool.x_shape(), g.pool.y_shape(), box, g.pool.layout)
            : std::nullopt;
    if (!part) {
      return std::nullopt;
    }
    TileOf<PoolPrimitive> tile{part->outputs, {part->inputs}, *this};
    tile.part.g.pool.windows = part->windows;
    for (const Shape& parameter : in.subspan(1)) {
      tile.in.emplace_back(parameter);
    }
    return tile;
  }
  std::string attributes() const { return to_string(g); }
  std::string layout() const { return std::string(layout_name(g.pool.layout)); }
  std::optional<Condition> condition(int i) const {
    return kHasBeta && i == 1 ? std::optional(Condition{check_beta, "finite and not 0"})
                              : std::nullopt;
  }
  template <class V>
  V vjp(int i, const Saved<V>& saved, const V& bar) const;
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const;
  template <class V>
  Applied<V> batched(const BatchCall<V>& call) const;
  static constexpr bool needs(int, int what) {
    return kHasBeta ? what != kOutput
                    : std::same_as<R, LpReduction> && (what == 0 || what == kOutput);
  }
  friend bool operator==(const PoolPrimitive&, const PoolPrimitive&) = default;
};
using MaxPoolPrimitive = PoolPrimitive<MaxReduction>;
using AvgPoolPrimitive = PoolPrimitive<AverageReduction>;
using LpPoolPrimitive = PoolPrimitive<LpReduction>;
using SmoothMaxPoolPrimitive = PoolPrimitive<SmoothMaxReduction>;

// --- Max ------------------------------

inline namespace generic {

template <AnyValue V>
constexpr V max_pool(const V& x, const MaxPoolOptions& options, int named_rank = 0) {
  return apply(
      MaxPoolPrimitive{
          {}, PoolDirection::forward, max_pool_geometry(x.shape(), options, named_rank)},
      {x});
}
template <AnyValue V>
constexpr V adaptive_max_pool(const V& x, const AdaptivePoolOptions& options, int named_rank = 0) {
  return apply(
      MaxPoolPrimitive{
          {}, PoolDirection::forward, adaptive_max_pool_geometry(x.shape(), options, named_rank)},
      {x});
}
}  // namespace generic

namespace detail {

template <AnyValue V>
constexpr MaxPoolResult<V> max_pool_with_indices(const V& x, const MaxPoolGeometry& g) {
  auto applied = apply_all(MaxPoolPrimitive{{}, PoolDirection::forward, g},
                           std::span<const V>(&x, 1),
                           std::span<const IndicesOf<V>>(),
                           true);
  return {std::move(applied.y), winner_indices(applied.workspace, g.pool)};
}

}  // namespace detail

inline namespace generic {

template <AnyValue V>
constexpr MaxPoolResult<V> max_pool_with_indices(const V& x,
                                                 const MaxPoolOptions& options,
                                                 int named_rank = 0) {
  return detail::max_pool_with_indices(x, max_pool_geometry(x.shape(), options, named_rank));
}
template <AnyValue V>
constexpr MaxPoolResult<V> adaptive_max_pool_with_indices(const V& x,
                                                          const AdaptivePoolOptions& options,
                                                          int named_rank = 0) {
  return detail::max_pool_with_indices(x,
                                       adaptive_max_pool_geometry(x.shape(), options, named_rank));
}

// --- Average ------------------------------

template <AnyValue V>
constexpr V avg_pool(const V& x, const AvgPoolOptions& options, int named_rank = 0) {
  return apply(
      AvgPoolPrimitive{
          {}, PoolDirection::forward, avg_pool_geometry(x.shape(), options, named_rank)},
      {x});
}
template <AnyValue V>
constexpr V adaptive_avg_pool(const V& x, const AdaptivePoolOptions& options, int named_rank = 0) {
  return apply(
      AvgPoolPrimitive{
          {}, PoolDirection::forward, adaptive_avg_pool_geometry(x.shape(), options, named_rank)},
      {x});
}

}  // namespace generic

/// The sum over each window (divisor 1), and its adjoint: every cell collects the windows that see
/// it.
template <AnyValue V>
constexpr V window_sum(const V& x, const PoolGeometry& pool) {
  return apply(AvgPoolPrimitive{{}, PoolDirection::forward, {{true, 1}, pool}}, {x});
}
template <AnyValue V>
constexpr V window_spread(const V& y, const PoolGeometry& pool) {
  return apply(AvgPoolPrimitive{{}, PoolDirection::spread, {{true, 1}, pool}}, {y});
}

// --- Lp ------------------------------

inline namespace generic {

template <AnyValue V>
constexpr V lp_pool(const V& x, const LpPoolOptions& options, int named_rank = 0) {
  return apply(
      LpPoolPrimitive{{}, PoolDirection::forward, lp_pool_geometry(x.shape(), options, named_rank)},
      {x});
}

}  // namespace generic

// --- Smooth max ------------------------------

namespace detail {

/// A sharpness for each channel: scaled by it, all of them have the sharpness 1. By beta the
/// derivative is that of a quotient, which cancels for small beta where the kernel's does not.
template <AnyValue V>
constexpr V smooth_max_pool_by_channel(const V& x,
                                       const V& beta,
                                       SmoothMaxPoolOptions options,
                                       int named_rank) {
  options.beta = 1;
  const auto g = smooth_max_pool_geometry(x.shape(), options, named_rank);
  require_shape("smooth_max_pool", "beta", beta, Shape{g.pool.channels});
  if constexpr (std::floating_point<ScalarOf<V>> && ValueTraits<V>::has_elements) {
    if (has_elements(beta)) {
      const auto& numbers = bottom(beta);
      for (Index i = 0; i < numbers.size(); ++i) {
        options.beta = static_cast<double>(numbers[i]);  // checked as a sharpness of its own
        (void)smooth_max_pool_geometry(x.shape(), options, named_rank);
      }
    }
  }
  Shape factors{g.pool.channels};
  if (g.pool.layout == Layout::channels_first) {
    for (int axis = 0; axis < g.pool.rank(); ++axis) {
      factors.push_back(1);
    }
  }
  const V factor = reshape(beta, factors);
  const V y = apply(SmoothMaxPoolPrimitive{{}, PoolDirection::forward, g},
                    {mul(x, factor), scalar_constant<V>(ScalarOf<V>(1))});
  return div(y, factor);
}

}  // namespace detail

inline namespace generic {

template <AnyValue V>
constexpr V smooth_max_pool_values(const V& x,
                                   const V& beta,
                                   SmoothMaxPoolOptions options,
                                   int named_rank) {
  if (beta.shape().rank() == 1) {
    return detail::smooth_max_pool_by_channel(x, beta, options, named_rank);
  }
  require_shape("smooth_max_pool", "beta", beta, Shape{});
  // A graph knows no value but those of constants; programs check what they are given.
  options.beta = 1;
  if constexpr (std::floating_point<ScalarOf<V>> && ValueTraits<V>::has_elements) {
    if (has_elements(beta)) {
      options.beta = static_cast<double>(bottom(beta)[0]);
    }
  } else if constexpr (requires { beta.constant(); }) {
    if (beta.is_constant()) {
      options.beta = static_cast<double>(beta.constant()[0]);
    }
  }
  const auto g = smooth_max_pool_geometry(x.shape(), options, named_rank);
  return apply(SmoothMaxPoolPrimitive{{}, PoolDirection::forward, g}, {x, beta});
}

template <AnyValue V>
constexpr V smooth_max_pool(const V& x, const SmoothMaxPoolOptions& options, int named_rank = 0) {
  const auto g = smooth_max_pool_geometry(x.shape(), options, named_rank);
  return apply(SmoothMaxPoolPrimitive{{}, PoolDirection::forward, g},
               {x, scalar_constant<V>(from_double<ScalarOf<V>>(options.beta))});
}

}  // namespace generic

}  // namespace fenestra

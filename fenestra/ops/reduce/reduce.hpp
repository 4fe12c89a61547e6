// Reductions over axes, on any value type: sum, mean, variance, extremes and where they are. Made
// of `sum_to` and of the winners of `MaxToPrimitive`.
#pragma once

#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/elementwise/sum_to.hpp>
#include <fenestra/ops/reduce/call.hpp>
#include <fenestra/ops/reduce/select.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/spec/options.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

namespace fenestra {

/// `shape` with 1 on the reduced axes, and without them.
struct ReducedShape {
  Shape kept;
  Shape removed;
  Index count = 1;  ///< elements that meet in one result
};

constexpr ReducedShape reduced_shape(std::string_view op,
                                     const Shape& shape,
                                     const AxisList& axes) {
  require_elements(op, "x", Argument::x, shape);
  std::array<bool, kMaxRank> reduced{};
  reduced.fill(axes.empty());
  for (const int axis : axes) {
    const int at = axis < 0 ? axis + shape.rank() : axis;
    if (at < 0 || at >= shape.rank() || reduced[static_cast<std::size_t>(at)]) {
      throw Error(std::string(op),
                  {.code = ErrorCode::rank_mismatch, .argument = Argument::x, .got = axis},
                  std::string(op) + ": axis " + std::to_string(axis) +
                      " of x = " + to_string(shape) +
                      " does not exist or is named twice\n  fix: different axes from " +
                      std::to_string(-shape.rank()) + " to " + std::to_string(shape.rank() - 1));
    }
    reduced[static_cast<std::size_t>(at)] = true;
  }
  ReducedShape result;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool gone = reduced[static_cast<std::size_t>(axis)];
    result.kept.push_back(gone ? 1 : shape[axis]);
    if (gone) {
      result.count *= shape[axis];
    } else {
      result.removed.push_back(shape[axis]);
    }
  }
  return result;
}

inline namespace generic {

template <AnyValue V>
constexpr V sum(const V& x, const ReduceOptions& options = {}) {
  const ReducedShape to = reduced_shape("sum", x.shape(), options.axes);
  const V kept = sum_to(x, to.kept);
  return options.keep ? kept : reshape(kept, to.removed);
}

template <AnyValue V>
constexpr V mean(const V& x, const ReduceOptions& options = {}) {
  const ReducedShape to = reduced_shape("mean", x.shape(), options.axes);
  return divide_by_count(sum(x, options), to.count);
}

}  // namespace generic

namespace detail {

constexpr void require_some(std::string_view op, const Shape& x, const ReducedShape& to) {
  if (to.count == 0 && to.kept.elements().value_or(0) > 0) {
    throw Error(std::string(op),
                {.code = ErrorCode::invalid_extent, .argument = Argument::x},
                std::string(op) + ": x = " + to_string(x) +
                    " has nothing on the axes to reduce, and no element is the greatest of none\n"
                    "  fix: at least one element on each of them");
  }
}

}  // namespace detail

inline namespace generic {

/// The means are subtracted first: E(x^2) - E(x)^2 cancels.
template <AnyValue V>
constexpr V var_over(const V& x, const VarOptions& options = {}) {
  const ReducedShape to = reduced_shape("var_over", x.shape(), options.axes);
  if (options.correction < 0 || to.count <= options.correction) {
    throw Error(
        "var_over",
        {.code = options.correction < 0 ? ErrorCode::invalid_option : ErrorCode::invalid_extent,
         .argument = Argument::x,
         .got = to.count,
         .needed = 1 + std::min(options.correction, std::numeric_limits<Index>::max() - 1)},
        "var_over: " + std::to_string(to.count) + " elements of x = " + to_string(x.shape()) +
            " meet in each result, the correction is " + std::to_string(options.correction) +
            "\n  fix: a correction from 0 on, and more elements than that");
  }
  const V difference = sub(x, mean(x, {.axes = options.axes, .keep = true}));
  return divide_by_count(
      sum(mul(difference, difference), {.axes = options.axes, .keep = options.keep}),
      to.count - options.correction);
}

template <AnyValue V>
constexpr V std_over(const V& x, const VarOptions& options = {}) {
  return sqrt(var_over(x, options));
}

template <AnyValue V>
constexpr V max_over(const V& x, const ReduceOptions& options = {}) {
  const ReducedShape to = reduced_shape("max_over", x.shape(), options.axes);
  detail::require_some("max_over", x.shape(), to);
  const V kept = x.shape() == to.kept ? x : apply(MaxToPrimitive{{}, x.shape(), to.kept}, x);
  return options.keep ? kept : reshape(kept, to.removed);
}

template <AnyValue V>
constexpr V min_over(const V& x, const ReduceOptions& options = {}) {
  return neg(max_over(neg(x), options));
}

}  // namespace generic

namespace detail {

template <AnyValue V>
IndicesOf<V> arg_extreme(std::string_view op, const V& x, const ArgOptions& options) {
  AxisList axes;
  if (options.axis.given) {
    const bool possible = options.axis.value >= -kMaxRank && options.axis.value < kMaxRank;
    axes.push_back(possible ? static_cast<int>(options.axis.value) : kMaxRank);
  }
  const ReducedShape to = reduced_shape(op, x.shape(), axes);
  require_some(op, x.shape(), to);
  const auto winners = apply_all(MaxToPrimitive{{}, x.shape(), to.kept},
                                 std::span<const V>(&x, 1),
                                 std::span<const IndicesOf<V>>(),
                                 true)
                           .workspace;
  CellPositions positions{1, x.shape().elements().value_or(0), options.keep ? to.kept : to.removed};
  if (options.axis.given) {
    const int axis = axes[0] < 0 ? axes[0] + x.shape().rank() : axes[0];
    positions.extent = x.shape()[axis];
    for (int behind = axis + 1; behind < x.shape().rank(); ++behind) {
      positions.inner *= x.shape()[behind];
    }
  }
  return cell_positions(winners, positions);
}

}  // namespace detail

inline namespace generic {

template <AnyValue V>
IndicesOf<V> argmax(const V& x, const ArgOptions& options = {}) {
  return detail::arg_extreme("argmax", x, options);
}
template <AnyValue V>
IndicesOf<V> argmin(const V& x, const ArgOptions& options = {}) {
  return detail::arg_extreme("argmin", neg(x), options);
}

}  // namespace generic

}  // namespace fenestra

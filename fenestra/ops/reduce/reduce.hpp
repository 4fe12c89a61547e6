// Reductions over axes, on any value type: sum, mean, max_over, min_over. Made of `sum_to` and of
// the winners of `MaxToPrimitive`.
#pragma once

#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/reduce/primitives.hpp>
#include <fenestra/ops/reduce/select.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/spec/options.hpp>

#include <array>
#include <string>

namespace fenestra {

/// Which axes a reduction runs over; all of them where the list is empty. Negative axes count from
/// the last.
struct ReduceOptions {
  AxisList axes = {};
  bool keep = false;  ///< reduced axes stay, with extent 1

  friend constexpr bool operator==(const ReduceOptions&, const ReduceOptions&) = default;
};

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

/// The greatest element over the axes; the first one wins ties, NaN wins over numbers.
template <AnyValue V>
constexpr V max_over(const V& x, const ReduceOptions& options = {}) {
  const ReducedShape to = reduced_shape("max_over", x.shape(), options.axes);
  if (to.count == 0 && to.kept.elements().value_or(0) > 0) {
    throw Error("max_over",
                {.code = ErrorCode::invalid_extent, .argument = Argument::x},
                "max_over: x = " + to_string(x.shape()) +
                    " has nothing on the axes to reduce, and no element is the greatest of none\n"
                    "  fix: at least one element on each of them");
  }
  const V kept = x.shape() == to.kept ? x : apply(MaxToPrimitive{x.shape(), to.kept}, x);
  return options.keep ? kept : reshape(kept, to.removed);
}

/// The least element over the axes; ties and NaN as in `max_over`.
template <AnyValue V>
constexpr V min_over(const V& x, const ReduceOptions& options = {}) {
  return neg(max_over(neg(x), options));
}

}  // namespace fenestra

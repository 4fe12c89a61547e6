// Reductions over axes, for those who call them: sum, mean, variance, extremes and where they are.
// Derivatives and other scalars: reduce.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/spec/options.hpp>

namespace fenestra {

/// The fields of options that name the axes that go.
template <class O, class Axes, class Visit>
constexpr void reduced_axes_fields(Visit&& field, Axes O::*axes) {
  field("axes",
        axes,
        {.help = "the axes that go: 0,2",
         .otherwise = "all of them",
         .argument = "axis",
         .alias = "dim"});
  field("keep", &O::keep, {.help = help::kKeep, .argument = "keepdims", .alias = "keepdim"});
}

/// Which axes a reduction runs over; all of them where the list is empty. Negative axes count from
/// the last.
struct ReduceOptions {
  AxisList axes = {};
  bool keep = false;  ///< reduced axes stay, with extent 1

  friend constexpr bool operator==(const ReduceOptions&, const ReduceOptions&) = default;

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    reduced_axes_fields<ReduceOptions>(field, &ReduceOptions::axes);
  }
};

/// The same for a variance: the sum of squares is divided by the number of elements less the
/// correction, 0 for that of the elements themselves, 1 for an unbiased estimate.
struct VarOptions {
  AxisList axes = {};
  bool keep = false;
  Index correction = 0;

  friend constexpr bool operator==(const VarOptions&, const VarOptions&) = default;

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    reduced_axes_fields<VarOptions>(field, &VarOptions::axes);
    field("correction", &VarOptions::correction, {.place = Place::by_keyword});
  }
};

/// Where an extreme is: along one axis, or flat over all of x where none is given.
struct ArgOptions {
  OptionalIndex axis = {};
  bool keep = false;

  friend constexpr bool operator==(const ArgOptions&, const ArgOptions&) = default;

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    reduced_axes_fields<ArgOptions>(field, &ArgOptions::axis);
  }
};

template <CompiledValue V>
FENESTRA_API V sum(const V& x, const ReduceOptions& options = {});
template <CompiledValue V>
FENESTRA_API V mean(const V& x, const ReduceOptions& options = {});

/// The mean square of x less its mean.
template <CompiledValue V>
FENESTRA_API V var_over(const V& x, const VarOptions& options = {});
/// The square root of `var_over`; where that is 0 the derivative is infinite.
template <CompiledValue V>
FENESTRA_API V std_over(const V& x, const VarOptions& options = {});

/// The greatest element over the axes; the first one wins ties, NaN wins over numbers.
template <CompiledValue V>
FENESTRA_API V max_over(const V& x, const ReduceOptions& options = {});
/// The least element over the axes; ties and NaN as in `max_over`.
template <CompiledValue V>
FENESTRA_API V min_over(const V& x, const ReduceOptions& options = {});

/// Where the greatest element is; ties and NaN as in `max_over`. Integers, which have no
/// derivative.
template <CompiledValue V>
FENESTRA_API IndicesOf<V> argmax(const V& x, const ArgOptions& options = {});
template <CompiledValue V>
FENESTRA_API IndicesOf<V> argmin(const V& x, const ArgOptions& options = {});

}  // namespace fenestra

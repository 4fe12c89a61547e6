// A region of a tensor: begin, count and step on every axis, and the copy from or to it.
//
// A slice reads a region, its adjoint writes one, concatenation writes one per part. Nothing here
// differentiates.
#pragma once

#include <fenestra/base/checked.hpp>
#include <fenestra/base/error.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/ops/require.hpp>
#include <fenestra/ops/slice/options.hpp>
#include <fenestra/tensor/shape.hpp>

#include <span>
#include <string>
#include <string_view>

namespace fenestra {

/// One begin, count and step per axis, all cells inside the tensor it was resolved for.
struct Region {
  Shape begin;
  Shape count;
  Shape step;

  friend constexpr bool operator==(const Region&, const Region&) = default;
};

/// "begin (0, 1) step (1, 2)", what the shapes do not say.
inline std::string to_string(const Region& region) {
  return "begin " + to_string(region.begin) + " step " + to_string(region.step);
}

/// `axis` counted from the first; throws `rank_mismatch` where there is no such axis.
constexpr int checked_axis(std::string_view op, const Shape& shape, int axis) {
  const int at = axis < 0 ? axis + shape.rank() : axis;
  if (at >= 0 && at < shape.rank()) {
    return at;
  }
  throw Error(std::string(op),
              {.code = ErrorCode::rank_mismatch,
               .argument = Argument::x,
               .got = axis,
               .needed = shape.rank()},
              std::string(op) + ": x = " + to_string(shape) + " has no axis " +
                  std::to_string(axis) + "\n  fix: " +
                  (shape.rank() == 0 ? std::string("a tensor with at least one axis")
                                     : "an axis from " + std::to_string(-shape.rank()) + " to " +
                                           std::to_string(shape.rank() - 1)));
}

/// The whole of `shape`.
constexpr Region whole_region(const Shape& shape) {
  Region region;
  region.count = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    region.begin.push_back(0);
    region.step.push_back(1);
  }
  return region;
}

/// The region of `shape` that `ranges` cut out; axes not named stay whole.
constexpr Region resolve_region(std::string_view op,
                                const Shape& shape,
                                std::span<const AxisRange> ranges) {
  require_elements(op, "x", Argument::x, shape);
  Region region = whole_region(shape);
  unsigned seen = 0;
  for (const AxisRange& range : ranges) {
    const int axis = checked_axis(op, shape, range.axis);
    const Index extent = shape[axis];
    const auto place = [&] {
      return std::string(op) + ": x = " + to_string(shape) + ", axis " + std::to_string(axis);
    };
    if ((seen >> axis & 1u) != 0) {
      throw Error(std::string(op),
                  {.code = ErrorCode::rank_mismatch,
                   .argument = Argument::x,
                   .axis = axis,
                   .got = 2,
                   .needed = 1},
                  place() + ": two ranges\n  fix: one range per axis");
    }
    seen |= 1u << axis;
    if (range.step == 0) {
      throw Error(std::string(op),
                  {.code = ErrorCode::invalid_stride,
                   .argument = Argument::stride,
                   .axis = axis,
                   .got = 0,
                   .needed = 1},
                  place() + ": step = 0\n  fix: a step other than 0");
    }
    const Checked last = Checked(range.begin) + (Checked(range.count) - 1) * range.step;
    const bool inside = range.count == 0
                            ? range.begin >= 0 && range.begin <= extent
                            : range.count > 0 && range.begin >= 0 && range.begin < extent &&
                                  last.ok() && last.value() >= 0 && last.value() < extent;
    if (!inside) {
      // The most cells that fit from this begin on; where the begin itself is outside, the begin is
      // what to change.
      const bool begins_inside = range.begin >= 0 && range.begin < extent;
      const Index most = !begins_inside ? 0
                                        : (range.step > 0 ? (extent - 1 - range.begin) / range.step
                                                          : -(range.begin / range.step)) +
                                              1;
      throw Error(
          std::string(op),
          {.code = ErrorCode::invalid_index,
           .argument = Argument::x,
           .axis = axis,
           .got = begins_inside ? range.count : range.begin,
           .needed = begins_inside ? most : extent},
          place() + ": begin " + std::to_string(range.begin) + ", count " +
              std::to_string(range.count) + ", step " + std::to_string(range.step) +
              " leaves the extent " + std::to_string(extent) + "\n  fix: " +
              (begins_inside ? "a count from 0 to " + std::to_string(most)
                             : "a begin from 0 to " + std::to_string(extent > 0 ? extent - 1 : 0)));
    }
    region.begin[axis] = range.begin;
    region.count[axis] = range.count;
    region.step[axis] = range.step;
  }
  return region;
}

/// The memory a region occupies in a dense tensor: first element and one stride per axis.
struct StridedRegion {
  Index offset = 0;
  Shape strides;
};

inline StridedRegion strided(const Shape& shape, const Region& region) {
  StridedRegion result;
  result.strides = shape;
  Index stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    result.offset += region.begin[axis] * stride;
    // The step from one cell to no other may be as large as it likes.
    result.strides[axis] = region.count[axis] > 1 ? region.step[axis] * stride : stride;
    stride *= shape[axis];
  }
  return result;
}

// Compiled for float and double in kernels/region.cpp.
template <KernelScalar T>
void copy_region_kernel(
    const T* from, const Shape& from_strides, T* to, const Shape& to_strides, const Shape& extents);

/// to[i] = from[i] for every position i in `extents`, each side with strides of its own.
template <class T>
void copy_region(const T* from,
                 const Shape& from_strides,
                 T* to,
                 const Shape& to_strides,
                 const Shape& extents) {
  if constexpr (KernelScalar<T>) {
    copy_region_kernel(from, from_strides, to, to_strides, extents);
  } else {
    const Index n = extents.elements().value_or(0);
    for (Index i = 0; i < n; ++i) {
      Index rest = i;
      Index source = 0;
      Index target = 0;
      for (int axis = extents.rank() - 1; axis >= 0; --axis) {
        source += rest % extents[axis] * from_strides[axis];
        target += rest % extents[axis] * to_strides[axis];
        rest /= extents[axis];
      }
      to[target] = from[source];
    }
  }
}

}  // namespace fenestra

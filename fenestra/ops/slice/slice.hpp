// Slice and its adjoint on any value type: a linear pair, adjoint to each other.
//
//   slice(x, ranges)         the cells of a region of x
//   slice_adjoint(u, shape, ranges)  zeros of `shape` with u in that region
//
// Different cells of a region are different cells of the tensor, so both are copies and neither
// rounds.
#pragma once

#include <fenestra/base/checked.hpp>
#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/ops/slice/call.hpp>
#include <fenestra/ops/slice/region.hpp>
#include <fenestra/tensor/box.hpp>
#include <fenestra/tensor/split.hpp>

#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fenestra {

/// A slice that leaves axis 0 whole takes samples one by one.
inline std::optional<Split> split_slice(const Shape& shape, const Region& region) {
  return split_all(1, shape.rank() > 0 && region.begin[0] == 0 && region.count[0] == shape[0]);
}
inline Region with_samples(Region region, Index count) {
  region.count[0] = count;
  return region;
}

struct SliceAdjointPrimitive;

struct SlicePrimitive : PrimitiveBase<SlicePrimitive> {
  static constexpr std::string_view name = "slice";
  Shape shape;  ///< of the whole
  Region region;

  constexpr Shape result_shape(const Shape&) const { return region.count; }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    const StridedRegion from = strided(shape, region);
    if (region.count.elements().value_or(0) > 0) {
      copy_region(in[0].data() + from.offset,
                  from.strides,
                  out,
                  strided(region.count, whole_region(region.count)).strides,
                  region.count);
    }
  }
  std::optional<Split> split(std::span<const Shape>) const { return split_slice(shape, region); }
  SlicePrimitive piece(Index count) const {
    return {{}, with_samples(shape, count), with_samples(region, count)};
  }
  std::optional<TileOf<SlicePrimitive>> tile(std::span<const Shape>, const Box& box) const {
    TileOf<SlicePrimitive> tile{box, {box}, *this};
    for (int axis = 0; axis < box.rank(); ++axis) {
      const Index step = region.step[axis];
      const Index first = region.begin[axis] + box.begin[axis] * step;
      const Index last = first + (box.count[axis] - 1) * step;
      tile.in[0].set(axis, {std::min(first, last), std::max(first, last) + 1});
      tile.part.region.begin[axis] = step < 0 ? first - last : 0;
      tile.part.region.count[axis] = box.count[axis];
    }
    tile.part.shape = tile.in[0].shape();
    return tile;
  }
  std::string attributes() const { return to_string(region); }
  template <class V>
  V vjp(int, const Saved<V>&, const V& y_bar) const;
  template <class V>
  std::optional<V> jvp(const Saved<V>&, std::span<const std::optional<V>> dots) const {
    return apply(*this, {*dots[0]});
  }
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const SlicePrimitive&, const SlicePrimitive&) = default;
};

struct SliceAdjointPrimitive : PrimitiveBase<SliceAdjointPrimitive> {
  static constexpr std::string_view name = "slice_adjoint";
  Shape shape;  ///< of the whole
  Region region;

  constexpr Shape result_shape(const Shape&) const { return shape; }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    std::fill_n(out, shape.elements().value_or(0), T(0));
    const StridedRegion to = strided(shape, region);
    if (in[0].size() > 0) {
      copy_region(in[0].data(),
                  strided(region.count, whole_region(region.count)).strides,
                  out + to.offset,
                  to.strides,
                  region.count);
    }
  }
  std::optional<Split> split(std::span<const Shape>) const { return split_slice(shape, region); }
  SliceAdjointPrimitive piece(Index count) const {
    return {{}, with_samples(shape, count), with_samples(region, count)};
  }
  std::string attributes() const { return to_string(region); }
  template <class V>
  V vjp(int, const Saved<V>&, const V& y_bar) const {
    return apply(SlicePrimitive{{}, shape, region}, y_bar);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>&, std::span<const std::optional<V>> dots) const {
    return apply(*this, {*dots[0]});
  }
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const SliceAdjointPrimitive&, const SliceAdjointPrimitive&) = default;
};

template <class V>
V SlicePrimitive::vjp(int, const Saved<V>&, const V& y_bar) const {
  return apply(SliceAdjointPrimitive{{}, shape, region}, y_bar);
}

inline namespace generic {

template <AnyValue V>
constexpr V slice(const V& x, std::span<const AxisRange> ranges) {
  const Region region = resolve_region("slice", x.shape(), ranges);
  if (region == whole_region(x.shape())) {
    return x;
  }
  return apply(SlicePrimitive{{}, x.shape(), region}, x);
}

template <AnyValue V>
constexpr V slice_adjoint(const V& u, const Shape& shape, std::span<const AxisRange> ranges) {
  const Region region = resolve_region("slice_adjoint", shape, ranges);
  if (u.shape() != region.count) {
    throw Error(
        "slice_adjoint",
        {.code = ErrorCode::shape_mismatch, .got = u.shape().rank(), .needed = region.count.rank()},
        "slice_adjoint: u = " + to_string(u.shape()) + ", the region of " + to_string(shape) +
            " has the shape " + to_string(region.count) + "\n  fix: u of shape " +
            to_string(region.count));
  }
  if (u.shape() == shape && region == whole_region(shape)) {
    return u;
  }
  return apply(SliceAdjointPrimitive{{}, shape, region}, u);
}

template <AnyValue V>
std::vector<V> split(const V& x, const SplitParts& parts, int axis = 0) {
  const int at = checked_axis("split", x.shape(), axis);
  const Index extent = x.shape()[at];
  std::vector<Index> sizes = parts.sizes;
  if (sizes.empty() && parts.count > 0 && extent % parts.count == 0) {
    sizes.assign(static_cast<std::size_t>(parts.count), extent / parts.count);
  }
  Checked total = 0;
  bool fits = !sizes.empty();
  for (const Index size : sizes) {
    fits = fits && size >= 0;
    total = total + size;
  }
  if (!fits || !total.ok() || total.value() != extent) {
    std::string given = std::to_string(parts.count) + " equal parts";
    if (!parts.sizes.empty()) {
      given = "parts of";
      for (const Index size : parts.sizes) {
        given += " " + std::to_string(size);
      }
    }
    throw Error("split",
                {.code = ErrorCode::invalid_extent,
                 .argument = Argument::x,
                 .got = total.ok() ? total.value() : 0,
                 .needed = extent},
                "split: x = " + to_string(x.shape()) + ", axis " + std::to_string(at) + " of " +
                    std::to_string(extent) + " elements into " + given +
                    "\n  fix: a number of parts that divides " + std::to_string(extent) +
                    ", or a list of sizes with that sum");
  }
  std::vector<V> result;
  Index begin = 0;
  for (const Index size : sizes) {
    result.push_back(slice(x, at, begin, size));
    begin += size;
  }
  return result;
}

}  // namespace generic

}  // namespace fenestra

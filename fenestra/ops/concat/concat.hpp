// Concat on any value type: tensors one after another along an axis. Linear; the adjoint of each
// part is a slice.
#pragma once

#include <fenestra/engine/primitive_base.hpp>
#include <fenestra/ops/concat/call.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/ops/slice/slice.hpp>
#include <fenestra/tensor/split.hpp>

#include <initializer_list>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace fenestra {

struct ConcatPrimitive : PrimitiveBase<ConcatPrimitive> {
  static constexpr std::string_view name = "concat";
  int axis = 0;
  Shape y;                     ///< of the result
  std::vector<Index> extents;  ///< of each part on the axis

  constexpr Shape result_shape(const Shape&) const { return y; }
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection>,
           T* out,
           const SelectionBuffer&) const {
    Index begin = 0;
    for (const Tensor<T>& part : in) {
      if (part.size() > 0) {
        const StridedRegion to = strided(y, region(begin, part.shape()[axis]));
        copy_region(part.data(),
                    strided(part.shape(), whole_region(part.shape())).strides,
                    out + to.offset,
                    to.strides,
                    part.shape());
      }
      begin += part.shape()[axis];
    }
  }
  std::optional<Split> split(std::span<const Shape> in) const {
    return split_all(in.size(), axis != 0);
  }
  ConcatPrimitive piece(Index count) const { return {{}, axis, with_samples(y, count), extents}; }
  std::optional<TileOf<ConcatPrimitive>> tile(std::span<const Shape> in, const Box& box) const {
    if (box[axis] != IndexRange{0, y[axis]}) {
      return std::nullopt;
    }
    TileOf<ConcatPrimitive> tile{box, {}, {{}, axis, box.shape(), extents}};
    for (const Shape& part : in) {
      tile.in.push_back(box);
      tile.in.back().set(axis, {0, part[axis]});
    }
    return tile;
  }
  std::string attributes() const { return "axis=" + std::to_string(axis); }
  template <class V>
  V vjp(int i, const Saved<V>&, const V& y_bar) const {
    Index begin = 0;
    for (int part = 0; part < i; ++part) {
      begin += extents[static_cast<std::size_t>(part)];
    }
    return slice(y_bar, axis, begin, extents[static_cast<std::size_t>(i)]);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    std::vector<V> parts;
    for (std::size_t i = 0; i < dots.size(); ++i) {
      parts.push_back(dots[i] ? *dots[i] : zeros_like(*saved.in[i]));
    }
    return apply_all(*this, std::span<const V>(parts), {}, false).y;
  }
  static constexpr bool needs(int, int) { return false; }
  friend bool operator==(const ConcatPrimitive&, const ConcatPrimitive&) = default;

 private:
  Region region(Index begin, Index count) const {
    Region result = whole_region(y);
    result.begin[axis] = begin;
    result.count[axis] = count;
    return result;
  }
};

/// What concatenating parts of these shapes comes to; throws where they do not fit together.
constexpr ConcatPrimitive resolve_concat(std::span<const Shape> parts, int axis) {
  if (parts.empty()) {
    throw Error("concat",
                {.code = ErrorCode::invalid_option, .argument = Argument::x, .got = 0, .needed = 1},
                "concat: no parts\n  fix: at least one");
  }
  ConcatPrimitive result;
  result.axis = checked_axis("concat", parts[0], axis);
  result.y = parts[0];
  Checked total = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Shape expected = parts[0];
    if (parts[i].rank() == expected.rank()) {
      expected[result.axis] = parts[i][result.axis];
    }
    if (parts[i] != expected) {
      throw Error("concat",
                  {.code = ErrorCode::shape_mismatch,
                   .argument = Argument::x,
                   .got = parts[i].rank(),
                   .needed = expected.rank()},
                  "concat: part 0 = " + to_string(parts[0]) + ", part " + std::to_string(i) +
                      " = " + to_string(parts[i]) +
                      "\n  fix: equal extents on every axis but axis " +
                      std::to_string(result.axis));
    }
    result.extents.push_back(parts[i][result.axis]);
    total = total + parts[i][result.axis];
  }
  result.y[result.axis] = total.value();
  if (!total.ok() || !result.y.elements()) {
    throw Error("concat",
                {.code = ErrorCode::overflow, .argument = Argument::x},
                "concat: " + std::to_string(parts.size()) + " parts of " + to_string(parts[0]) +
                    " and the like together pass the largest size\n  fix: fewer or smaller parts");
  }
  return result;
}

inline namespace generic {

template <AnyValue V>
constexpr V concat(std::span<const V> parts, int axis) {
  std::vector<Shape> shapes;
  for (const V& part : parts) {
    shapes.push_back(part.shape());
  }
  const ConcatPrimitive primitive = resolve_concat(shapes, axis);
  if (parts.size() == 1) {
    return parts[0];
  }
  return apply_all(primitive, parts, {}, false).y;
}

template <AnyValue V>
constexpr V stack(std::span<const V> parts, int axis) {
  if (parts.empty()) {
    return concat(parts, axis);
  }
  std::vector<V> raised;
  for (const V& part : parts) {
    if (part.shape() != parts[0].shape()) {
      throw Error("stack",
                  {.code = ErrorCode::shape_mismatch, .argument = Argument::x},
                  "stack: part 0 = " + to_string(parts[0].shape()) + ", part " +
                      std::to_string(raised.size()) + " = " + to_string(part.shape()) +
                      "\n  fix: equal shapes");
    }
    raised.push_back(unsqueeze(part, axis));
  }
  const int rank = parts[0].shape().rank() + 1;
  return concat(std::span<const V>(raised), axis < 0 ? axis + rank : axis);
}

}  // namespace generic

}  // namespace fenestra

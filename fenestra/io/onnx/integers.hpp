// Functions on integers that are known, and the ways of moving elements that are the same for
// values and for integers. Not installed.
#pragma once

#include <fenestra/io/onnx/call.hpp>
#include <fenestra/ops/concat/concat.hpp>
#include <fenestra/ops/elementwise/broadcast.hpp>
#include <fenestra/ops/reduce/reduce.hpp>
#include <fenestra/ops/reduce/select.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/ops/slice/slice.hpp>
#include <fenestra/ops/transpose/transpose.hpp>
#include <fenestra/tensor/transform.hpp>

#include <span>
#include <string>
#include <vector>

namespace fenestra::onnx {

inline Shape shape_of(std::span<const Index> extents) {
  Shape shape;
  for (const Index extent : extents) {
    shape.push_back(extent);
  }
  return shape;
}
inline Tensor<Index> vector_of(std::span<const Index> numbers) {
  return Tensor<Index>(Shape{static_cast<Index>(numbers.size())}, numbers);
}

/// `axis` of `rank` axes, counted from 0.
inline int resolve_axis(Index axis, int rank) {
  const Index at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank) {
    throw Error(ErrorCode::rank_mismatch,
                "axis " + std::to_string(axis) + " of " + std::to_string(rank) +
                    " axes\n  fix: an axis from " + std::to_string(-rank) + " to " +
                    std::to_string(rank - 1));
  }
  return static_cast<int>(at);
}
inline std::vector<int> resolve_axes(std::span<const Index> axes, int rank) {
  std::vector<int> resolved;
  for (const Index axis : axes) {
    resolved.push_back(resolve_axis(axis, rank));
  }
  return resolved;
}
inline AxisList axis_list(std::span<const int> axes) { return AxisList(axes); }

/// Before memory is asked for what operands meet in; those that do not meet are refused by what
/// they are given to.
template <class T>
void require_broadcast_budget(const Call<T>& c, const Shape& a, const Shape& b) {
  if (!check_broadcast(a, b)) {
    c.require_budget(broadcast_shape("broadcast", a, b));
  }
}

/// What arithmetic in a type of less than 64 bits leaves of a number.
inline Index wrapped(ElementType type, Index n) {
  switch (type) {
    case ElementType::uint8: return static_cast<std::uint8_t>(n);
    case ElementType::int8: return static_cast<std::int8_t>(n);
    case ElementType::uint16: return static_cast<std::uint16_t>(n);
    case ElementType::int16: return static_cast<std::int16_t>(n);
    case ElementType::uint32: return static_cast<std::uint32_t>(n);
    case ElementType::int32: return static_cast<std::int32_t>(n);
    case ElementType::boolean: return n != 0 ? 1 : 0;
    default: return n;
  }
}

/// f(a, b) with broadcasting.
template <class F>
Tensor<Index> combine(const Tensor<Index>& a, const Tensor<Index>& b, F f) {
  const Shape shape = broadcast_shape("combine", a.shape(), b.shape());
  Tensor<Index> result = Tensor<Index>::uninitialised(shape);
  if (result.size() == 0) {
    return result;
  }
  const BroadcastLoop<2> loop(shape, {a.shape(), b.shape()});
  Index* out = result.mutable_data();
  for (Index run = 0; run < loop.outer(); ++run) {
    for (Index i = 0; i < loop.inner(); ++i) {
      *out++ = f(a[loop.offset(0, run) + i * loop.inner_step(0)],
                 b[loop.offset(1, run) + i * loop.inner_step(1)]);
    }
  }
  return result;
}

// --- Moving elements -----------------------------------------------------------------------------

template <class T>
Value<T> reshaped(const Value<T>& x, const Shape& shape) {
  return reshape(x, shape);
}
inline Tensor<Index> reshaped(const Tensor<Index>& x, const Shape& shape) {
  return x.reshaped(resolved_reshape(x.shape(), shape));
}

template <class T>
Value<T> cut(const Value<T>& x, std::span<const AxisRange> ranges) {
  return slice(x, ranges);
}
inline Tensor<Index> cut(const Tensor<Index>& x, std::span<const AxisRange> ranges) {
  const Region region = resolve_region("slice", x.shape(), ranges);
  const StridedRegion from = strided(x.shape(), region);
  if (region.count.elements() == 0) {
    return Tensor<Index>(region.count);
  }
  return copy_strided(
      x.data() + from.offset,
      region.count,
      std::span<const Index>(from.strides.begin(), static_cast<std::size_t>(x.rank())));
}

template <class T>
Value<T> transposed(const Value<T>& x, std::span<const int> order) {
  return transpose(x, order);
}
inline Tensor<Index> transposed(const Tensor<Index>& x, std::span<const int> order) {
  return permuted(x, order);
}

template <class T>
Value<T> expanded(const Value<T>& x, const Shape& shape) {
  return broadcast_to(x, shape);
}
inline Tensor<Index> expanded(const Tensor<Index>& x, const Shape& shape) {
  return combine(x, Tensor<Index>(shape), [](Index a, Index) { return a; });
}

template <class T>
Value<T> concatenated(const std::vector<Value<T>>& parts, int axis) {
  return concat(parts, axis);
}
inline Tensor<Index> concatenated(const std::vector<Tensor<Index>>& parts, int axis) {
  std::vector<Shape> shapes;
  for (const Tensor<Index>& part : parts) {
    shapes.push_back(part.shape());
  }
  Shape shape = shapes[0];
  Index outer = 1;
  for (int i = 0; i < axis; ++i) {
    outer *= shape[i];
  }
  shape[axis] = 0;
  for (const Shape& part : shapes) {
    shape[axis] += part.rank() == shape.rank() ? part[axis] : 0;
  }
  for (const Shape& part : shapes) {
    Shape same = shape;
    same[axis] = part.rank() == shape.rank() ? part[axis] : 0;
    if (part != same) {
      throw Error(ErrorCode::shape_mismatch,
                  "concat: part " + to_string(part) + " beside " + to_string(shapes[0]) +
                      "\n  fix: equal extents on all axes but " + std::to_string(axis));
    }
  }
  Tensor<Index> result = Tensor<Index>::uninitialised(shape);
  Index* out = result.mutable_data();
  for (Index o = 0; o < outer; ++o) {
    for (const Tensor<Index>& part : parts) {
      const Index block = part.size() / (outer == 0 ? 1 : outer);
      out = std::copy_n(part.data() + o * block, block, out);
    }
  }
  return result;
}

/// Elements by flat cells.
template <class T>
Value<T> picked(const Value<T>& x, const Tensor<Index>& cells) {
  return take(x, Indices(cells), cells.shape());
}
inline Tensor<Index> picked(const Tensor<Index>& x, const Tensor<Index>& cells) {
  return cells.map([&](Index cell) { return x[cell]; });
}

/// f on the value or on the integers, whichever a datum holds, with the type it had.
template <class T, class F>
Datum<T> moved(const Datum<T>& x, F f) {
  if (const Tensor<Index>* numbers = x.as_numbers()) {
    return Datum<T>(f(*numbers), x.type());
  }
  return Datum<T>(f(x.value()), x.type());
}

}  // namespace fenestra::onnx

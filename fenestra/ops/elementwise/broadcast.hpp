// Broadcasting: which shape two tensors are broadcast to, and the loop over it.
//
// Axes are aligned at the last one; an extent of 1 (or a missing axis) is repeated. The loop is the
// only place where repeated axes are walked: elementwise functions, sums and expansions all use it.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/tensor/shape.hpp>

#include <array>
#include <string>
#include <string_view>

namespace fenestra {

/// The extents that `a` and `b` bring to one axis of the shape they are broadcast to.
struct BroadcastAxis {
  Index a = 1;
  Index b = 1;

  constexpr bool fits() const { return a == b || a == 1 || b == 1; }
};

/// `back` counts from the last axis, which is 1.
constexpr BroadcastAxis broadcast_axis(const Shape& a, const Shape& b, int back) {
  return {back <= a.rank() ? a[a.rank() - back] : 1, back <= b.rank() ? b[b.rank() - back] : 1};
}

/// The axis, counted from the last, in which `a` and `b` cannot be broadcast; 0 where they do.
constexpr int broadcast_conflict(const Shape& a, const Shape& b) {
  const int rank = a.rank() > b.rank() ? a.rank() : b.rank();
  for (int back = rank; back > 0; --back) {
    if (!broadcast_axis(a, b, back).fits()) {
      return back;
    }
  }
  return 0;
}

constexpr Fault check_broadcast(const Shape& a, const Shape& b) {
  const int conflict = broadcast_conflict(a, b);
  if (conflict == 0) {
    return {};
  }
  const BroadcastAxis axis = broadcast_axis(a, b, conflict);
  return {.code = ErrorCode::shape_mismatch, .got = axis.b, .needed = axis.a};
}

/// The broadcast shape of `a` and `b`; throws `shape_mismatch` with both shapes and the axis, and
/// `overflow` where the result is too large.
constexpr Shape broadcast_shape(std::string_view op, const Shape& a, const Shape& b) {
  if (const Fault fault = check_broadcast(a, b)) {
    throw Error(std::string(op),
                fault,
                std::string(op) + ": a = " + to_string(a) + ", b = " + to_string(b) + "\n  axis " +
                    std::to_string(-broadcast_conflict(a, b)) + ": " +
                    std::to_string(fault.needed) + " against " + std::to_string(fault.got) +
                    ", neither is 1\n  fix: equal extents, or 1 where one is repeated");
  }
  Shape result;
  for (int back = a.rank() > b.rank() ? a.rank() : b.rank(); back > 0; --back) {
    const BroadcastAxis axis = broadcast_axis(a, b, back);
    result.push_back(axis.a == 1 ? axis.b : axis.a);
  }
  if (const Fault fault = check_elements(Argument::none, result)) {
    throw Error(std::string(op),
                fault,
                std::string(op) + ": a = " + to_string(a) + ", b = " + to_string(b) + " meet in " +
                    to_string(result) +
                    ", which no tensor has\n  fix: extents from 0 on, and at most 2^53 elements");
  }
  return result;
}

/// True where `from` can be repeated to `to`.
constexpr bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) {
    return false;
  }
  for (int axis = 1; axis <= from.rank(); ++axis) {
    const Index extent = from[from.rank() - axis];
    if (extent != 1 && extent != to[to.rank() - axis]) {
      return false;
    }
  }
  return true;
}

/// Strides of up to three operands over a common shape, with axes merged as far as every operand
/// allows. Operands are given by their shapes; repeated axes have stride 0.
template <std::size_t n>
class BroadcastLoop {
 public:
  BroadcastLoop(const Shape& shape, const std::array<Shape, n>& operands) {
    std::array<Shape, n> strides;
    for (std::size_t k = 0; k < n; ++k) {
      strides[k] = strides_over(operands[k], shape);
    }
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1) {
        continue;
      }
      if (extents_.rank() > 0 && mergeable(strides, axis, shape[axis])) {
        extents_[extents_.rank() - 1] *= shape[axis];
        for (std::size_t k = 0; k < n; ++k) {
          strides_[k][extents_.rank() - 1] = strides[k][axis];
        }
      } else {
        extents_.push_back(shape[axis]);
        for (std::size_t k = 0; k < n; ++k) {
          strides_[k].push_back(strides[k][axis]);
        }
      }
    }
    if (extents_.rank() == 0) {
      extents_.push_back(1);
      for (std::size_t k = 0; k < n; ++k) {
        strides_[k].push_back(0);
      }
    }
  }

  /// Elements of the innermost run, and the step of each operand along it (0 or 1 for dense
  /// operands).
  Index inner() const { return extents_[extents_.rank() - 1]; }
  Index inner_step(std::size_t operand) const { return strides_[operand][extents_.rank() - 1]; }
  /// Number of runs.
  Index outer() const {
    Index count = 1;
    for (int axis = 0; axis + 1 < extents_.rank(); ++axis) {
      count *= extents_[axis];
    }
    return count;
  }
  /// Offset of run `run` in an operand.
  Index offset(std::size_t operand, Index run) const {
    Index offset = 0;
    for (int axis = extents_.rank() - 2; axis >= 0; --axis) {
      offset += run % extents_[axis] * strides_[operand][axis];
      run /= extents_[axis];
    }
    return offset;
  }

 private:
  static Shape strides_over(const Shape& operand, const Shape& shape) {
    Shape strides;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      strides.push_back(0);
    }
    Index stride = 1;
    for (int back = 1; back <= operand.rank(); ++back) {
      const Index extent = operand[operand.rank() - back];
      strides[shape.rank() - back] = extent == 1 ? 0 : stride;
      stride *= extent;
    }
    return strides;
  }
  bool mergeable(const std::array<Shape, n>& strides, int axis, Index extent) const {
    for (std::size_t k = 0; k < n; ++k) {
      if (strides_[k][extents_.rank() - 1] != strides[k][axis] * extent) {
        return false;
      }
    }
    return true;
  }

  Shape extents_;
  std::array<Shape, n> strides_;
};

}  // namespace fenestra

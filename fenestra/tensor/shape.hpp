// The extents of a tensor, at run time and as a template argument alike.
//
// `Shape` is a structural type of fixed capacity: `Var<float, Shape{3, 32, 32}>` and a shape read
// from a file are the same thing, and the same constexpr functions compute on both. It may hold
// invalid extents (they come from callers); `elements` says whether they can be allocated.
#pragma once

#include <fenestra/base/checked.hpp>
#include <fenestra/base/error.hpp>

#include <initializer_list>
#include <limits>
#include <optional>
#include <string>

namespace fenestra {

/// Spatial axes of one operator. 8 is the contract's floor; a Jacobian of two such tensors has to
/// fit below.
inline constexpr int kMaxSpatialRank = 8;
/// Axes of any tensor: the Jacobian of a batched rank-6 tensor by another, with room to spare.
inline constexpr int kMaxRank = 2 * kMaxSpatialRank;
/// Elements a tensor may have: the bytes of the widest scalar in use (nested duals) must not
/// overflow either.
inline constexpr Index kMaxElements = std::numeric_limits<Index>::max() / 1024;

struct Shape {
  Index extents[kMaxRank] =
      {};  ///< public only because a structural type needs it; read with [] and rank()
  int count = 0;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<Index> list) {
    for (const Index extent : list) {
      push_back(extent);
    }
  }

  constexpr int rank() const { return count; }
  constexpr Index operator[](int axis) const { return extents[axis]; }
  constexpr Index& operator[](int axis) { return extents[axis]; }
  constexpr const Index* begin() const { return extents; }
  constexpr const Index* end() const { return extents + count; }

  constexpr void push_back(Index extent) {
    if (count == kMaxRank) {
      throw Error(ErrorCode::rank_mismatch, "a tensor has at most 16 axes");
    }
    extents[count++] = extent;
  }

  /// Number of elements, or nothing when an extent is negative or the product passes
  /// `kMaxElements`.
  constexpr std::optional<Index> elements() const {
    Checked n = 1;
    bool empty = false;
    for (const Index extent : *this) {
      if (extent < 0) {
        return std::nullopt;
      }
      if (extent == 0) {
        empty = true;
      }
      // An empty tensor still refuses extents whose product overflows: a later slice or sum would
      // meet them.
      n = n * (extent == 0 ? 1 : extent);
    }
    if (!n.ok() || n.value() > kMaxElements) {
      return std::nullopt;
    }
    return empty ? 0 : n.value();
  }

  friend constexpr bool operator==(const Shape&, const Shape&) = default;
};

/// The fault of a shape that no tensor has: `invalid_extent` where an extent is negative,
/// `overflow` where there are too many elements. After it every product of extents fits.
constexpr Fault check_elements(Argument argument, const Shape& shape) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] < 0) {
      return {.code = ErrorCode::invalid_extent,
              .argument = argument,
              .axis = axis,
              .got = shape[axis],
              .needed = 0};
    }
  }
  return shape.elements() ? Fault{} : Fault{.code = ErrorCode::overflow, .argument = argument};
}

/// `shape_mismatch` unless the shapes are equal, with the first extents that differ, or the ranks.
constexpr Fault check_shape(Argument argument, const Shape& got, const Shape& needed) {
  if (got == needed) {
    return {};
  }
  Fault fault{.code = ErrorCode::shape_mismatch,
              .argument = argument,
              .got = got.rank(),
              .needed = needed.rank()};
  for (int axis = 0; got.rank() == needed.rank() && axis < got.rank(); ++axis) {
    if (got[axis] != needed[axis]) {
      fault.got = got[axis];
      fault.needed = needed[axis];
      break;
    }
  }
  return fault;
}

/// "(8, 3, 32, 32)", the form used in messages.
inline std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) {
      text += ", ";
    }
    text += std::to_string(shape[axis]);
  }
  return text + (shape.rank() == 1 ? ",)" : ")");
}

}  // namespace fenestra

// Parts of an axis and of a tensor: a range of cells, and a box of one range per axis.
//
// What a tile of a result is, and what it needs of each input.
#pragma once

#include <fenestra/tensor/shape.hpp>

#include <string>
#include <vector>

namespace fenestra {

/// Cells begin .. end - 1 of an axis; none where end <= begin.
struct IndexRange {
  Index begin = 0;
  Index end = 0;

  constexpr Index count() const { return end > begin ? end - begin : 0; }
  constexpr bool empty() const { return end <= begin; }
  constexpr bool contains(const IndexRange& other) const {
    return other.empty() || (begin <= other.begin && other.end <= end);
  }
  friend constexpr bool operator==(const IndexRange&, const IndexRange&) = default;
};

/// The smallest range that has both.
constexpr IndexRange hull(const IndexRange& a, const IndexRange& b) {
  if (a.empty() || b.empty()) {
    return a.empty() ? b : a;
  }
  return {a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
}

/// One range for each axis of a tensor.
struct Box {
  Shape begin;
  Shape count;

  constexpr Box() = default;
  /// The whole of `shape`.
  constexpr explicit Box(const Shape& shape) : count(shape) {
    for (int axis = 0; axis < shape.rank(); ++axis) {
      begin.push_back(0);
    }
  }

  constexpr int rank() const { return count.rank(); }
  /// What a tensor of its cells has as shape.
  constexpr const Shape& shape() const { return count; }
  constexpr IndexRange operator[](int axis) const {
    return {begin[axis], begin[axis] + count[axis]};
  }
  constexpr void set(int axis, const IndexRange& range) {
    begin[axis] = range.begin;
    count[axis] = range.count();
  }
  /// True where nothing of a tensor of this shape is left out.
  constexpr bool is_whole(const Shape& of) const { return *this == Box(of); }

  friend constexpr bool operator==(const Box&, const Box&) = default;
};

/// The smallest box that has both; they have one rank.
constexpr Box hull(const Box& a, const Box& b) {
  Box result = a;
  for (int axis = 0; axis < a.rank(); ++axis) {
    result.set(axis, hull(a[axis], b[axis]));
  }
  return result;
}

/// How the axes of a result lie to those of the first input, in a tile of an operation.
struct TileAxes {
  Shape from;          ///< axis a of the result is axis from[a] of the input; empty: the same
  unsigned mixed = 0;  ///< bit a: every cell reads the whole of axis a of the input
};

/// A part of the result of an operator P: at least what was asked for, what is read of each input,
/// and the operator on this part alone.
template <class P>
struct TileOf {
  Box result;
  std::vector<Box> in;
  P part;
  TileAxes axes = {};
};

/// What an operand that broadcasts to `result` gives to the part `box` of it.
constexpr Box broadcast_box(const Shape& operand, const Shape& result, const Box& box) {
  Box part(operand);
  const int missing = result.rank() - operand.rank();
  for (int axis = 0; axis < operand.rank(); ++axis) {
    if (operand[axis] == result[axis + missing]) {
      part.set(axis, box[axis + missing]);
    }
  }
  return part;
}

/// "[0:1, 0:3, 128:260]", as NumPy slices it.
inline std::string to_string(const Box& box) {
  std::string text = "[";
  for (int axis = 0; axis < box.rank(); ++axis) {
    text += (axis > 0 ? ", " : "") + std::to_string(box[axis].begin) + ":" +
            std::to_string(box[axis].end);
  }
  return text + "]";
}

}  // namespace fenestra

// Split: how an operation treats the samples that lie along axis 0 of its result.
//
// Where each sample of the result depends on the same sample of some inputs and on the whole of the
// others, a program may compute a few samples at a time through a whole chain of operations.
#pragma once

#include <fenestra/tensor/shape.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace fenestra {

struct Split {
  std::vector<bool> in;  ///< inputs that are cut with the result; the others are read whole
  Index least = 1;       ///< samples below which a piece is slower per sample than the whole
};

/// The shape of `count` samples of `shape`.
constexpr Shape with_samples(Shape shape, Index count) {
  shape[0] = count;
  return shape;
}

/// Elements of one sample.
constexpr Index sample_elements(const Shape& shape) {
  Index n = 1;
  for (int axis = 1; axis < shape.rank(); ++axis) {
    n *= shape[axis];
  }
  return n;
}

/// Of an operation whose inputs broadcast to its result: what has an axis for the samples is cut.
inline std::optional<Split> split_broadcast(std::span<const Shape> in, const Shape& result) {
  if (result.rank() == 0) {
    return std::nullopt;
  }
  Split split;
  for (const Shape& shape : in) {
    split.in.push_back(shape.rank() == result.rank() && shape[0] == result[0]);
  }
  return split;
}

/// Of an operation whose inputs have one axis of samples, all of them, where there is one.
inline std::optional<Split> split_all(std::size_t inputs, bool batched = true) {
  if (!batched) {
    return std::nullopt;
  }
  return Split{std::vector<bool>(inputs, true)};
}

}  // namespace fenestra

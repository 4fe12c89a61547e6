// Random shapes for operators on tensors of any form: small, now and then empty.
#pragma once

#include <fenestra/spec/random.hpp>
#include <fenestra/tensor/shape.hpp>

namespace fenestra {

inline Shape random_shape(Random& random, int least_rank, int largest_rank, Index least = 0) {
  Shape shape;
  const auto rank = static_cast<int>(random.between(least_rank, largest_rank));
  for (int axis = 0; axis < rank; ++axis) {
    shape.push_back(least == 0 && random.chance(20) ? 0 : random.between(1, rank <= 2 ? 4 : 3));
  }
  return shape;
}

/// A shape that repeats to `shape`: leading axes may be missing, others may be 1.
inline Shape random_broadcastable(Random& random, const Shape& shape) {
  Shape result;
  for (int axis = static_cast<int>(random.between(0, shape.rank())); axis < shape.rank(); ++axis) {
    result.push_back(random.chance(3) ? 1 : shape[axis]);
  }
  return result;
}

}  // namespace fenestra

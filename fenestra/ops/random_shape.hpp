// Random shapes for operators on tensors of any form: small and now and then empty, or as large as
// those of networks.
#pragma once

#include <fenestra/spec/random.hpp>
#include <fenestra/tensor/shape.hpp>

namespace fenestra {

inline Shape random_shape(
    Random& random, int least_rank, int largest_rank, Index least = 0, Reach reach = Reach::exact) {
  static constexpr Index kLargest[] = {0, 4000, 300, 130, 65};
  Shape shape;
  const auto rank = static_cast<int>(random.between(least_rank, largest_rank));
  for (int axis = 0; axis < rank; ++axis) {
    if (reach == Reach::networks) {
      shape.push_back(random_count(random, kLargest[rank < 4 ? rank : 4]));
      continue;
    }
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

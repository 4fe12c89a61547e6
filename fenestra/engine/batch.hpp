// Rules for batches, the form of a value under vmap: one more axis in front that the function it is
// given to does not see.
//
// An operator on batches folds the hidden axis into an axis it already has: the batch of an
// activation, the groups of a convolution, the leading axes of a product. The rule of an operator
// is its function `batched`, in `batch.hpp` of its folder; one that has none runs item by
// item, with the operators slice, reshape and concat, which whoever compiles rules brings.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/engine/apply.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/tensor/transform.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fenestra {

/// One application of a primitive to batches, at least one input or data of which is stacked.
template <AnyValue V>
struct BatchCall {
  std::span<const detail::Batch<V>> in;
  std::span<const BatchIndices<IndicesOf<V>>> data;
  Index count = 0;
  bool keep = false;
  Level level = 0;  ///< on which they are batches

  bool is_stacked(std::size_t i) const { return in[i].is_stacked(); }
  /// Input i with the hidden axis, repeated where it is the same for all.
  V stacked(std::size_t i) const {
    return is_stacked(i) ? in[i].value()
                         : broadcast_to(in[i].value(), with_front(count, in[i].shape()));
  }
  /// Input i with the hidden axis in front of `rank` axes, so that it broadcasts against others of
  /// that rank.
  V aligned(std::size_t i, int rank) const {
    if (!is_stacked(i)) {
      return in[i].value();
    }
    Shape shape{count};
    for (int axis = in[i].shape().rank(); axis < rank; ++axis) {
      shape.push_back(1);
    }
    for (const Index extent : in[i].shape()) {
      shape.push_back(extent);
    }
    return reshape(in[i].value(), shape);
  }
};

namespace detail {

/// Item `i` of stacked data, which is cut along its first axis, whether that was folded into the
/// batch or not.
inline Indices item_of(const BatchIndices<Indices>& data, Index i) {
  if (data.count == 0) {
    return data.indices;
  }
  if (data.indices.level() != 0) {
    throw Error(ErrorCode::unsupported,
                "vmap: integer data with two hidden axes, or of a program, has no rule\n  fix: one "
                "vmap, with the axes folded into one, outside compile");
  }
  const auto cut = [&](const auto& stacked) {
    const Index rows = stacked.shape()[0] / data.count;
    return Selection(sliced(stacked, 0, i * rows, rows));
  };
  const Selection& all = data.indices.plain();
  return all.is_compact() ? cut(all.taps()) : cut(all.indices());
}

inline bool leaves_nothing(const Indices& workspace) {
  if (workspace.traced() != nullptr) {
    return false;  // an empty one is plain
  }
  const BatchIndices<Indices> items = workspace.items(workspace.level());
  return items.count == 0 ? workspace.plain().is_none() : leaves_nothing(items.indices);
}

/// How many items the inputs have; none where all are the same for every item.
template <AnyValue V>
std::optional<Index> item_count(std::string_view name,
                                std::span<const Batch<V>> in,
                                std::span<const BatchIndices<IndicesOf<V>>> data) {
  std::optional<Index> count;
  const auto note = [&](Index items) {
    if (count && *count != items) {
      throw Error(ErrorCode::shape_mismatch,
                  "vmap: " + std::string(name) + " meets batches of " + std::to_string(*count) +
                      " and " + std::to_string(items) + " items\n  fix: equal first extents");
    }
    count = items;
  };
  for (const Batch<V>& input : in) {
    if (input.is_stacked()) {
      note(input.count());
    }
  }
  for (const auto& indices : data) {
    if (indices.count > 0) {
      note(indices.count);
    }
  }
  return count;
}

}  // namespace detail

}  // namespace fenestra

// Batch<V>: a value with one more axis in front that the function it is given to does not see.
//
// The value type behind vmap and per-sample gradients. An operator on batches folds the hidden axis
// into an axis it already has: the batch of an activation, the groups of a convolution, the leading
// axes of a product. The rule of an operator is the function `apply_batched(primitive, call)` in
// its folder; one that has none runs item by item.
#pragma once

#include <fenestra/ops/apply.hpp>
#include <fenestra/ops/concat/concat.hpp>
#include <fenestra/ops/elementwise/elementwise.hpp>
#include <fenestra/ops/reduce/primitives.hpp>
#include <fenestra/ops/reshape/reshape.hpp>
#include <fenestra/ops/slice/slice.hpp>
#include <fenestra/ops/value.hpp>
#include <fenestra/tensor/transform.hpp>

#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fenestra {

/// `extent` in front of `shape`.
constexpr Shape with_front(Index extent, const Shape& shape) {
  Shape result{extent};
  for (const Index e : shape) {
    result.push_back(e);
  }
  return result;
}

/// Integer data with or without the hidden axis. Winners of pools are folded as their pool's output
/// is.
template <class I>
struct BatchIndices {
  I indices;
  Index count = 0;  ///< of items; 0: the same for all

  BatchIndices() = default;
  BatchIndices(I shared) : indices(std::move(shared)) {}
  BatchIndices(I stacked, Index items) : indices(std::move(stacked)), count(items) {}
};

template <class V>
class Batch {
 public:
  using Value = V;

  /// The same value for every item.
  Batch(V shared) : value_(std::move(shared)), shape_(value_.shape()) {}
  template <class U>
    requires(!std::same_as<U, V> && !std::same_as<U, Batch> && std::convertible_to<const U&, V>)
  Batch(const U& shared) : Batch(V(shared)) {}
  /// One value per item, along the first axis.
  static Batch stacked(V values) {
    Batch result(std::move(values));
    result.count_ = result.shape_[0];
    Shape item;
    for (int axis = 1; axis < result.shape_.rank(); ++axis) {
      item.push_back(result.shape_[axis]);
    }
    result.shape_ = item;
    result.is_stacked_ = true;
    return result;
  }

  const V& value() const { return value_; }
  /// Of one item.
  const Shape& shape() const { return shape_; }
  bool is_stacked() const { return is_stacked_; }
  Index count() const { return count_; }

 private:
  V value_;
  Shape shape_;
  bool is_stacked_ = false;
  Index count_ = 0;
};

template <class V>
struct ValueTraits<Batch<V>> {
  using Scalar = typename ValueTraits<V>::Scalar;
  using Indices = BatchIndices<typename ValueTraits<V>::Indices>;
  static constexpr int depth = ValueTraits<V>::depth + 1;
  static constexpr bool has_elements = ValueTraits<V>::has_elements;
  static decltype(auto) bottom(const Batch<V>& value) {
    return ValueTraits<V>::bottom(value.value());
  }
};

template <class V>
Batch<V> zeros_like(const Batch<V>& value) {
  return Batch<V>(V(Tensor<ScalarOf<V>>(value.shape())));
}
template <class V>
Batch<V> ones_like(const Batch<V>& value) {
  return Batch<V>(V(Tensor<ScalarOf<V>>(value.shape(), ScalarOf<V>(1))));
}
template <class V>
void accumulate(Batch<V>& sum, const Batch<V>& term) {
  sum = add(sum, term);
}

/// One application of a primitive to batches, at least one input or data of which is stacked.
template <Value V>
struct BatchCall {
  std::span<const Batch<V>> in;
  std::span<const BatchIndices<IndicesOf<V>>> data;
  Index count = 0;
  bool keep = false;

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

inline Selection item_of(const BatchIndices<Selection>& data, Index i) {
  if (data.count == 0) {
    return data.indices;
  }
  const auto cut = [&](const auto& stacked) {
    // Stacked along the first axis, whether it was folded into the batch or not.
    const Index rows = stacked.shape()[0] / data.count;
    return sliced(stacked, 0, i * rows, rows);
  };
  if (data.indices.is_compact()) {
    return Selection(cut(data.indices.taps()));
  }
  return Selection(cut(data.indices.indices()));
}

inline bool leaves_nothing(const Selection& workspace) { return workspace.is_none(); }
template <class I>
bool leaves_nothing(const BatchIndices<I>& workspace) {
  return leaves_nothing(workspace.indices);
}

/// Without a rule: every item for itself. What the items leave for their derivatives cannot be
/// stacked without knowing what it means.
template <class P, Value V>
Applied<V> apply_item_by_item(const P& primitive, const BatchCall<V>& call) {
  std::vector<V> results;
  for (Index i = 0; i < call.count; ++i) {
    std::vector<V> in;
    for (const Batch<V>& input : call.in) {
      in.push_back(input.is_stacked() ? reshape(slice(input.value(), 0, i, 1), input.shape())
                                      : input.value());
    }
    std::vector<IndicesOf<V>> data;
    for (const auto& indices : call.data) {
      data.push_back(item_of(indices, i));
    }
    auto [y, workspace] = apply_all(
        primitive, std::span<const V>(in), std::span<const IndicesOf<V>>(data), call.keep);
    if (!leaves_nothing(workspace)) {
      throw Error(
          ErrorCode::unknown_operator,
          "vmap: " + std::string(name_of(primitive)) +
              " leaves winners and has no rule for batches\n  fix: call it on one item at a time");
    }
    results.push_back(reshape(y, with_front(1, y.shape())));
  }
  return {concat(results, 0), {}};
}

}  // namespace detail

template <class P, class V>
Applied<Batch<V>> apply_all(const P& primitive,
                            std::span<const Batch<V>> in,
                            std::span<const BatchIndices<IndicesOf<V>>> data,
                            bool keep) {
  std::optional<Index> count;
  const auto note = [&](Index items) {
    if (count && *count != items) {
      throw Error(ErrorCode::shape_mismatch,
                  "vmap: " + std::string(name_of(primitive)) + " meets batches of " +
                      std::to_string(*count) + " and " + std::to_string(items) +
                      " items\n  fix: equal first extents");
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
  if (!count) {
    std::vector<V> values;
    for (const Batch<V>& input : in) {
      values.push_back(input.value());
    }
    std::vector<IndicesOf<V>> plain;
    for (const auto& indices : data) {
      plain.push_back(indices.indices);
    }
    Applied<V> result = apply_all(
        primitive, std::span<const V>(values), std::span<const IndicesOf<V>>(plain), keep);
    return {Batch<V>(std::move(result.y)), {std::move(result.workspace)}};
  }
  const BatchCall<V> call{in, data, *count, keep};
  Applied<V> result = [&] {
    if constexpr (requires { apply_batched(primitive, call); }) {
      return apply_batched(primitive, call);
    } else {
      return detail::apply_item_by_item(primitive, call);
    }
  }();
  return {Batch<V>::stacked(std::move(result.y)), {std::move(result.workspace), *count}};
}

}  // namespace fenestra

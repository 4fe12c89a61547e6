// Sorting, for those who call it; derivatives and other scalars: sort.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>

namespace fenestra {

/// Elements in order, and their places along the axis.
template <AnyValue V>
struct Sorted {
  V values;
  IndicesOf<V> indices;
};

struct SortOptions {
  int axis = -1;
  bool descending = false;

  friend constexpr bool operator==(const SortOptions&, const SortOptions&) = default;
};
struct TopkOptions {
  int axis = -1;
  bool largest = true;

  friend constexpr bool operator==(const TopkOptions&, const TopkOptions&) = default;
};

/// x in order along an axis; ascending unless the options say else.
template <CompiledValue V>
FENESTRA_API V sort(const V& x, const SortOptions& options = {});
template <CompiledValue V>
FENESTRA_API Sorted<V> sort_with_indices(const V& x, const SortOptions& options = {});
/// The `count` largest (or least) elements along an axis, the first one first, and their places.
template <CompiledValue V>
FENESTRA_API Sorted<V> topk(const V& x, Index count, const TopkOptions& options = {});

}  // namespace fenestra

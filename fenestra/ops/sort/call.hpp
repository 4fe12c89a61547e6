// Sorting, for those who call it; derivatives and other scalars: sort.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/spec/options.hpp>

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

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    field("axis", &SortOptions::axis, {.help = help::kAxis, .always_printed = true});
    field("descending",
          &SortOptions::descending,
          {.help = "whether the largest comes first", .place = Place::by_keyword});
  }
};
struct TopkOptions {
  int axis = -1;
  bool largest = true;

  friend constexpr bool operator==(const TopkOptions&, const TopkOptions&) = default;

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    field("axis", &TopkOptions::axis, {.help = help::kAxis});
    field("largest", &TopkOptions::largest, {.place = Place::by_keyword});
  }
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

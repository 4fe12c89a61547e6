// What is cut out of a tensor: ranges of axes, and the parts of one.
#pragma once

#include <fenestra/tensor/shape.hpp>

#include <concepts>
#include <initializer_list>
#include <utility>
#include <vector>

namespace fenestra {

/// `count` cells of one axis: begin, begin + step, ... A negative step runs backwards; a negative
/// axis counts from the last.
struct AxisRange {
  int axis = 0;
  Index begin = 0;
  Index count = 0;
  Index step = 1;

  friend constexpr bool operator==(const AxisRange&, const AxisRange&) = default;
};

/// How an axis is cut: into parts of these sizes, or into `count` equal ones where there are none.
struct SplitParts {
  std::vector<Index> sizes;
  Index count = 0;

  SplitParts(std::vector<Index> of_sizes) : sizes(std::move(of_sizes)) {}
  SplitParts(std::initializer_list<Index> of_sizes) : sizes(of_sizes) {}
  SplitParts(std::integral auto equal_parts) : count(static_cast<Index>(equal_parts)) {}
};

}  // namespace fenestra

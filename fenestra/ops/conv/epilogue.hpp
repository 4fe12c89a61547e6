// What a convolution of a compiled program does to its result beside summing.
#pragma once

#include <fenestra/ops/elementwise/names.hpp>

#include <optional>

namespace fenestra {

/// activation(y + residual): of every element of a result, rounded in between as the operators one
/// by one would be.
struct ConvEpilogue {
  enum class Sum { none, result_first, residual_first };
  Sum sum = Sum::none;  ///< with a tensor of the result's shape, the last input
  std::optional<UnaryCall> activation = {};

  bool has_sum() const { return sum != Sum::none; }
  bool is_empty() const { return !has_sum() && !activation; }
  friend bool operator==(const ConvEpilogue&, const ConvEpilogue&) = default;
};

}  // namespace fenestra

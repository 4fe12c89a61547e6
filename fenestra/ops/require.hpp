// Checks of tensors against a geometry that already exists: gradients receive tensors and the
// forward's geometry.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/tensor/shape.hpp>

#include <string>
#include <string_view>

namespace fenestra {

/// Throws `invalid_extent` or `overflow` unless a tensor can have the shape.
constexpr void require_elements(std::string_view op,
                                std::string_view name,
                                Argument argument,
                                const Shape& shape) {
  const Fault fault = check_elements(argument, shape);
  if (!fault) {
    return;
  }
  const bool negative = fault.code == ErrorCode::invalid_extent;
  throw Error(std::string(op),
              fault,
              std::string(op) + ": " + std::string(name) + " = " + to_string(shape) +
                  (negative ? " has a negative extent\n  fix: extents >= 0"
                            : " has more than 2^53 elements\n  fix: smaller extents"));
}

/// Throws `shape_mismatch` unless `tensor` has the shape the geometry gives it.
template <class V>
constexpr void require_shape(std::string_view op,
                             std::string_view name,
                             const V& tensor,
                             const Shape& needed) {
  const Fault fault = check_shape(Argument::none, tensor.shape(), needed);
  if (!fault) {
    return;
  }
  throw Error(std::string(op),
              fault,
              std::string(op) + ": " + std::string(name) + " = " + to_string(tensor.shape()) +
                  ", the geometry needs " + to_string(needed) + "\n  fix: pass " +
                  std::string(name) + " of shape " + to_string(needed));
}

}  // namespace fenestra

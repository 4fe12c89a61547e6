// Selection: integer data that says where values came from or go to. It carries no gradient.
//
// Flat indices are the general form (labels, unpooling indices, winners for any scalar); kernels
// leave the winners of small windows as one byte per window. Whoever made a selection decides its
// form, and only the operators that use it look inside.
#pragma once

#include <fenestra/tensor/tensor.hpp>

#include <cstdint>
#include <utility>
#include <variant>

namespace fenestra {

class Selection {
 public:
  /// Nothing selected: operators that leave no winners return this.
  Selection() = default;
  Selection(Tensor<Index> indices) : form_(std::move(indices)) {}
  Selection(Tensor<std::uint8_t> taps) : form_(std::move(taps)) {}

  bool is_none() const { return std::holds_alternative<std::monostate>(form_); }
  bool is_compact() const { return std::holds_alternative<Tensor<std::uint8_t>>(form_); }
  const Tensor<Index>& indices() const { return std::get<Tensor<Index>>(form_); }
  const Tensor<std::uint8_t>& taps() const { return std::get<Tensor<std::uint8_t>>(form_); }

 private:
  std::variant<std::monostate, Tensor<Index>, Tensor<std::uint8_t>> form_;
};

}  // namespace fenestra

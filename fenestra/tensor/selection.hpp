// Selection: integer data that says where values came from or go to. It carries no gradient.
//
// Flat indices are the general form (labels, unpooling indices, winners for any scalar); kernels
// leave the winners of small windows as one byte per window. Whoever made a selection decides its
// form, and only the operators that use it look inside.
#pragma once

#include <fenestra/tensor/tensor.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

namespace fenestra {

/// The forms a selection can have.
enum class SelectionForm { none, indices, taps };

/// Form and shape of a selection that does not exist yet.
struct SelectionType {
  SelectionForm form = SelectionForm::none;
  Shape shape;

  friend constexpr bool operator==(const SelectionType&, const SelectionType&) = default;
};

class Selection {
 public:
  /// Nothing selected: operators that leave no winners return this.
  Selection() = default;
  Selection(Tensor<Index> indices) : form_(std::make_shared<const Form>(std::move(indices))) {}
  Selection(Tensor<std::uint8_t> taps) : form_(std::make_shared<const Form>(std::move(taps))) {}

  bool is_none() const { return form_ == nullptr; }
  bool is_compact() const {
    return form_ != nullptr && std::holds_alternative<Tensor<std::uint8_t>>(*form_);
  }
  /// Only of a selection that has this form.
  const Tensor<Index>& indices() const { return std::get<Tensor<Index>>(*form_); }
  const Tensor<std::uint8_t>& taps() const { return std::get<Tensor<std::uint8_t>>(*form_); }
  SelectionType type() const {
    if (is_compact()) {
      return {SelectionForm::taps, taps().shape()};
    }
    if (form_ != nullptr) {
      return {SelectionForm::indices, indices().shape()};
    }
    return {};
  }

 private:
  using Form = std::variant<Tensor<Index>, Tensor<std::uint8_t>>;

  // Most operators select nothing, and every call moves a selection around: a pointer is cheap.
  std::shared_ptr<const Form> form_;
};

/// Memory for a selection, of the form that is not null; none where nobody asked for one.
struct SelectionBuffer {
  Index* indices = nullptr;
  std::uint8_t* taps = nullptr;
};

}  // namespace fenestra

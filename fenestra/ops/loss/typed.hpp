// Losses on typed graph variables: `cross_entropy<LossOptions{...}>(x, labels)`, the labels typed
// data.
#pragma once

#include <fenestra/engine/typed.hpp>
#include <fenestra/ops/loss/loss.hpp>

namespace fenestra {

namespace graph {

/// The labels of an abstract value become cells of the same shape.
constexpr AbstractData label_cells(const Shape& x, const AbstractData& labels) {
  fenestra::detail::require_labels(x, labels.type());
  return labels;
}

}  // namespace graph

template <LossOptions options = LossOptions{}, graph::Operand... In>
auto cross_entropy(const In&... in) {
  return graph::typed<"cross_entropy", "x", "labels">(
      [](const auto&... v) { return cross_entropy(v..., options); },
      [](const Shape& x, const Shape& labels) {
        return detail::check_labels(x, {SelectionForm::indices, labels});
      },
      in...);
}
template <LossOptions options = LossOptions{}, graph::Operand... In>
auto mse_loss(const In&... in) {
  return graph::typed<"mse_loss", "x", "target">(
      [](const auto&... v) { return mse_loss(v..., options); },
      [](const Shape& x, const Shape& target) { return check_shape(Argument::x, x, target); },
      in...);
}
template <LossOptions options = LossOptions{}, graph::Operand... In>
auto bce_with_logits(const In&... in) {
  return graph::typed<"bce_with_logits", "x", "target">(
      [](const auto&... v) { return bce_with_logits(v..., options); },
      [](const Shape& x, const Shape& target) { return check_shape(Argument::x, x, target); },
      in...);
}

}  // namespace fenestra

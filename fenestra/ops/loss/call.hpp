// Losses, for those who call them; derivatives and other scalars: loss.hpp. A loss refuses unequal
// shapes: broadcasting here hides mistakes.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/spec/options.hpp>

#include <array>
#include <string_view>

namespace fenestra {

enum class Reduction { none, sum, mean };
template <>
inline constexpr std::array<std::string_view, 3> enum_names<Reduction> = {"none", "sum", "mean"};

struct LossOptions {
  Reduction reduction = Reduction::mean;

  friend constexpr bool operator==(const LossOptions&, const LossOptions&) = default;

  template <class Visit>
  static constexpr void fields(Visit&& field) {
    field("reduction",
          &LossOptions::reduction,
          {.help = "what becomes of the losses of the samples", .always_printed = true});
  }
};

/// -log softmax(x)[label] for logits (N, C, ...) and labels (N, ...), or (C,) and one label. The
/// mean is over all labels.
template <CompiledValue V>
FENESTRA_API V cross_entropy(const V& x,
                             const IndicesOf<V>& labels,
                             const LossOptions& options = {});

template <CompiledValue V>
FENESTRA_API V mse_loss_values(const V& x, const V& target, const LossOptions& options);
template <CompiledValue V>
FENESTRA_API V bce_with_logits_values(const V& x, const V& target, const LossOptions& options);

/// (x - target)^2
template <AnyValue X, AnyValue Y>
constexpr CommonValue<X, Y> mse_loss(const X& x, const Y& target, const LossOptions& options = {}) {
  return mse_loss_values<CommonValue<X, Y>>(x, target, options);
}
/// -target * log(sigmoid(x)) - (1 - target) * log(1 - sigmoid(x))
template <AnyValue X, AnyValue Y>
constexpr CommonValue<X, Y> bce_with_logits(const X& x,
                                            const Y& target,
                                            const LossOptions& options = {}) {
  return bce_with_logits_values<CommonValue<X, Y>>(x, target, options);
}

}  // namespace fenestra

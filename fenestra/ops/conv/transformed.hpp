// What a candidate that transforms its data computes, in any field, for both convolutions'
// descriptors: the law of the kernels reads the candidate's rounding bound off it. Not a way to
// compute: slower than the definition.
#pragma once

#include <fenestra/ops/conv/conv.hpp>
#include <fenestra/ops/conv/spec.hpp>
#include <fenestra/ops/conv/winograd.hpp>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace fenestra::detail {

template <Field T>
class TransformedConv {
 public:
  TransformedConv(std::string_view kernel, const ConvGeometry& g)
      : kernel_(kernel), g_(without_bias(g)), choices_(conv_kernels(g_)) {}

  bool transforms() const { return kernel_.ends_with("_winograd"); }

  /// By transforms where the candidate accepts the direction, by the definition elsewhere, where
  /// some other candidate runs.
  Tensor<T> run(ConvDirection direction,
                const Tensor<T>& lhs,
                const Tensor<T>& rhs,
                const Tensor<T>* b = nullptr) const {
    if (accepts(direction)) {
      return spec::Winograd<T>(g_).run(direction, lhs, rhs, b);
    }
    switch (direction) {
      case ConvDirection::forward: return spec::conv<T>(lhs, rhs, b, g_);
      case ConvDirection::input_grad: {
        Tensor<T> x_bar = spec::conv_input_grad(lhs, rhs, g_);
        if (b != nullptr) {
          spec::add_channel(x_bar, *b, g_.x_map());
        }
        return x_bar;
      }
      case ConvDirection::weight_grad: return spec::conv_weight_grad(lhs, rhs, g_);
    }
    return {};
  }

  /// Value, tangent and cotangents of y = run(direction, x, w[, b]); nothing where the candidate
  /// sums what the definition sums. `direction` is not the weight gradient.
  std::optional<std::vector<Tensor<T>>> all(ConvDirection direction,
                                            const std::vector<Tensor<T>>& in,
                                            const std::vector<Tensor<T>>& dots,
                                            const Tensor<T>& y_bar) const {
    if (!transforms()) {
      return std::nullopt;
    }
    const bool is_forward = direction == ConvDirection::forward;
    const bool has_bias = in.size() > 2;
    std::vector<Tensor<T>> result{
        run(direction, in[0], in[1], has_bias ? &in[2] : nullptr),
        spec::sum_of(run(direction, dots[0], in[1]),
                     run(direction, in[0], dots[1], has_bias ? &dots[2] : nullptr)),
        run(is_forward ? ConvDirection::input_grad : ConvDirection::forward, y_bar, in[1]),
        is_forward ? run(ConvDirection::weight_grad, in[0], y_bar)
                   : run(ConvDirection::weight_grad, y_bar, in[0])};
    if (has_bias) {
      result.push_back(spec::channel_sum(y_bar, is_forward ? g_.y_map() : g_.x_map()));
    }
    return result;
  }

 private:
  bool accepts(ConvDirection direction) const {
    const std::string_view name = ConvPrimitive::direction_name(direction);
    return std::any_of(choices_.begin(), choices_.end(), [&](const KernelChoice& choice) {
      return choice.direction == name && choice.name == kernel_ && choice.refusal.empty();
    });
  }

  std::string_view kernel_;
  ConvGeometry g_;
  std::vector<KernelChoice> choices_;
};

}  // namespace fenestra::detail

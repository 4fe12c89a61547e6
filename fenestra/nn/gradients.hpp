// What happens to gradients before a step, and to weights after it: clipping and averaging. Bits do
// not depend on the number of threads.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/export.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <span>
#include <utility>
#include <vector>

namespace fenestra::nn {

/// The root of the sum of the squares of all elements, computed in double.
template <KernelScalar T>
FENESTRA_API double global_norm(std::span<const Tensor<T>> gradients);

/// Scales all gradients by limit/norm where their norm is greater than `limit` > 0; gives the norm
/// they had. Gradients whose norm is not finite stay as they are.
template <KernelScalar T>
FENESTRA_API double clip_by_norm(std::span<Tensor<T>> gradients, double limit);

/// Every element into [-limit, limit], limit > 0; NaN stays.
template <KernelScalar T>
FENESTRA_API void clip_by_value(std::span<Tensor<T>> gradients, double limit);

/// An exponential average of weights: after the first step the weights themselves, then a = d a +
/// (1 - d) w after each, with d = min(decay, (1 + n)/(10 + n)) after n steps before, so that the
/// first weights do not weigh for long.
template <KernelScalar T>
class FENESTRA_API WeightAverage {
 public:
  /// 0 <= decay < 1.
  explicit WeightAverage(double decay = 0.999);

  double decay() const { return decay_; }
  Index steps() const { return steps_; }
  /// Empty before the first `prepare` or `add`.
  const std::vector<Tensor<T>>& values() const { return values_; }
  /// Makes room for the average, so that the first `add` cannot fail either.
  void prepare(std::span<Tensor<T>* const> weights);
  /// The weights after a step; the same ones each time, in one order.
  void add(std::span<Tensor<T>* const> weights);
  /// Goes on from what `steps` and `values` said.
  void restore(Index steps, std::vector<Tensor<T>> values) {
    steps_ = steps;
    values_ = std::move(values);
  }

 private:
  double decay_;
  Index steps_ = 0;
  std::vector<Tensor<T>> values_;
};

extern template class WeightAverage<float>;
extern template class WeightAverage<double>;

}  // namespace fenestra::nn

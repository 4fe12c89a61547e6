// Clipping and averaging, compiled for float and double.
#include <fenestra/base/parallel.hpp>
#include <fenestra/nn/gradients.hpp>
#include <fenestra/nn/squares.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace fenestra::nn {

namespace {

// Elements per range, as for the optimisers.
constexpr Index kRange = 16384;

void require_limit(double limit) {
  if (!(std::isfinite(limit) && limit > 0)) {
    throw Error(ErrorCode::invalid_extent,
                "clip: limit = " + std::to_string(limit) + "\n  fix: limit > 0");
  }
}

template <class T, class F>
void for_each_range(Tensor<T>& x, const F& f) {
  T* const data = x.mutable_data();
  fenestra::parallel_for(x.size(), kRange, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      data[i] = f(data[i]);
    }
  });
}

}  // namespace

template <KernelScalar T>
double global_norm(std::span<const Tensor<T>> gradients) {
  double total = 0;
  std::vector<double> parts;
  for (const Tensor<T>& gradient : gradients) {
    const T* const x = gradient.data();
    parts.assign(static_cast<std::size_t>((gradient.size() + kRange - 1) / kRange), 0.0);
    fenestra::parallel_for(gradient.size(), kRange, [&](Index begin, Index end) {
      parts[static_cast<std::size_t>(begin / kRange)] =
          detail::sum_of_squares(x + begin, end - begin);
    });
    for (const double part : parts) {
      total += part;
    }
  }
  return std::sqrt(total);
}

template <KernelScalar T>
double clip_by_norm(std::span<Tensor<T>> gradients, double limit) {
  require_limit(limit);
  const double norm = global_norm<T>(std::span<const Tensor<T>>(gradients));
  if (std::isfinite(norm) && norm > limit) {
    const T factor = static_cast<T>(limit / norm);
    for (Tensor<T>& gradient : gradients) {
      for_each_range(gradient, [factor](T value) { return value * factor; });
    }
  }
  return norm;
}

template <KernelScalar T>
void clip_by_value(std::span<Tensor<T>> gradients, double limit) {
  require_limit(limit);
  const T largest = static_cast<T>(limit);
  for (Tensor<T>& gradient : gradients) {
    for_each_range(gradient, [largest](T value) {
      return value > largest ? largest : value < -largest ? -largest : value;
    });
  }
}

template <KernelScalar T>
WeightAverage<T>::WeightAverage(double decay) : decay_(decay) {
  if (!(decay >= 0 && decay < 1)) {
    throw Error(ErrorCode::invalid_extent,
                "weight average: decay = " + std::to_string(decay) + "\n  fix: 0 <= decay < 1");
  }
}

template <KernelScalar T>
void WeightAverage<T>::prepare(std::span<Tensor<T>* const> weights) {
  if (values_.empty()) {
    std::vector<Tensor<T>> values;
    values.reserve(weights.size());
    for (const Tensor<T>* weight : weights) {
      values.emplace_back(weight->shape());
    }
    values_ = std::move(values);
  }
  if (values_.size() != weights.size()) {
    throw Error(ErrorCode::shape_mismatch,
                "weight average: " + std::to_string(weights.size()) + " weights, it is of " +
                    std::to_string(values_.size()) +
                    "\n  fix: the same weights after every step, in one order");
  }
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].shape() != weights[i]->shape()) {
      throw Error(ErrorCode::shape_mismatch,
                  "weight average: weight " + std::to_string(i) + " = " +
                      to_string(weights[i]->shape()) + ", its average = " +
                      to_string(values_[i].shape()) + "\n  fix: the same weights after every step");
    }
    values_[i].mutable_data();  // storage of its own
  }
}

template <KernelScalar T>
void WeightAverage<T>::add(std::span<Tensor<T>* const> weights) {
  prepare(weights);
  const double count = static_cast<double>(steps_);
  const double d = steps_ == 0 ? 0 : std::min(decay_, (1 + count) / (10 + count));
  const T kept = static_cast<T>(d);
  const T rest = static_cast<T>(1 - d);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    T* const a = values_[i].mutable_data();
    const T* const w = weights[i]->data();
    fenestra::parallel_for(values_[i].size(), kRange, [&](Index begin, Index end) {
      for (Index k = begin; k < end; ++k) {
        a[k] = kept * a[k] + rest * w[k];
      }
    });
  }
  ++steps_;
}

template FENESTRA_API double global_norm(std::span<const Tensor<float>>);
template FENESTRA_API double global_norm(std::span<const Tensor<double>>);
template FENESTRA_API double clip_by_norm(std::span<Tensor<float>>, double);
template FENESTRA_API double clip_by_norm(std::span<Tensor<double>>, double);
template FENESTRA_API void clip_by_value(std::span<Tensor<float>>, double);
template FENESTRA_API void clip_by_value(std::span<Tensor<double>>, double);
template class WeightAverage<float>;
template class WeightAverage<double>;

}  // namespace fenestra::nn

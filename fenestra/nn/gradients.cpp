// Clipping and averaging, compiled for float and double.
#include <fenestra/base/parallel.hpp>
#include <fenestra/nn/gradient_spans.hpp>
#include <fenestra/nn/gradients.hpp>
#include <fenestra/nn/squares.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace fenestra::nn {

namespace {

constexpr Index kRange = detail::kGradientBlock;

void require_limit(double limit) {
  if (!(std::isfinite(limit) && limit > 0)) {
    throw Error(ErrorCode::invalid_option,
                "clip: limit = " + std::to_string(limit) + "\n  fix: limit > 0");
  }
}

template <class T, class F>
void for_each_element(std::span<T> x, const F& f) {
  fenestra::parallel_for(static_cast<Index>(x.size()), kRange, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      x[static_cast<std::size_t>(i)] = f(x[static_cast<std::size_t>(i)]);
    }
  });
}

template <class T>
std::vector<std::span<T>> writable(std::span<Tensor<T>> gradients) {
  std::vector<std::span<T>> spans;
  for (Tensor<T>& gradient : gradients) {
    spans.push_back(gradient.mutable_values());
  }
  return spans;
}

}  // namespace

namespace detail {

template <KernelScalar T>
std::vector<double> squares_of_blocks(std::span<const T> gradient) {
  const auto size = static_cast<Index>(gradient.size());
  std::vector<double> blocks(static_cast<std::size_t>((size + kRange - 1) / kRange));
  fenestra::parallel_for(size, kRange, [&](Index begin, Index end) {
    blocks[static_cast<std::size_t>(begin / kRange)] =
        sum_of_squares(gradient.data() + begin, end - begin);
  });
  return blocks;
}

template <KernelScalar T>
double norm_of(std::span<const std::span<T>> gradients) {
  double total = 0;
  for (const std::span<T>& gradient : gradients) {
    for (const double block : squares_of_blocks<T>(gradient)) {
      total += block;
    }
  }
  return std::sqrt(total);
}

template <KernelScalar T>
void limit_norm(std::span<const std::span<T>> gradients, double norm, double limit) {
  if (std::isfinite(norm) && norm > limit) {
    const T factor = static_cast<T>(limit / norm);
    for (const std::span<T>& gradient : gradients) {
      for_each_element(gradient, [factor](T value) { return value * factor; });
    }
  }
}

template <KernelScalar T>
void clamp_elements(std::span<const std::span<T>> gradients, double limit) {
  const T largest = static_cast<T>(limit);
  for (const std::span<T>& gradient : gradients) {
    for_each_element(gradient, [largest](T value) {
      return value > largest ? largest : value < -largest ? -largest : value;
    });
  }
}

template std::vector<double> squares_of_blocks(std::span<const float>);
template std::vector<double> squares_of_blocks(std::span<const double>);
template double norm_of(std::span<const std::span<float>>);
template double norm_of(std::span<const std::span<double>>);
template void limit_norm(std::span<const std::span<float>>, double, double);
template void limit_norm(std::span<const std::span<double>>, double, double);
template void clamp_elements(std::span<const std::span<float>>, double);
template void clamp_elements(std::span<const std::span<double>>, double);

}  // namespace detail

template <KernelScalar T>
double global_norm(std::span<const Tensor<T>> gradients) {
  std::vector<std::span<T>> spans;
  for (const Tensor<T>& gradient : gradients) {
    // Only read.
    spans.emplace_back(const_cast<T*>(gradient.data()), static_cast<std::size_t>(gradient.size()));
  }
  return detail::norm_of<T>(spans);
}

template <KernelScalar T>
double clip_by_norm(std::span<Tensor<T>> gradients, double limit) {
  require_limit(limit);
  const double norm = global_norm<T>(std::span<const Tensor<T>>(gradients));
  if (std::isfinite(norm) && norm > limit) {
    detail::limit_norm<T>(writable(gradients), norm, limit);
  }
  return norm;
}

template <KernelScalar T>
void clip_by_value(std::span<Tensor<T>> gradients, double limit) {
  require_limit(limit);
  detail::clamp_elements<T>(writable(gradients), limit);
}

template <KernelScalar T>
WeightAverage<T>::WeightAverage(double decay) : decay_(decay) {
  if (!(decay >= 0 && decay < 1)) {
    throw Error(ErrorCode::invalid_option,
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

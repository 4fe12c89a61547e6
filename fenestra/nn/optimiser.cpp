// Compiled updates of the optimisers for float and double. Elements are independent, so threads
// cannot be seen.
#include <fenestra/base/export.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/nn/optimiser.hpp>

#include <cmath>

namespace fenestra::nn::detail {

namespace {

// Elements per range: 64 KiB of f32, enough work to pay for waking a thread.
constexpr Index kGrain = 16384;

}  // namespace

template <KernelScalar T>
void sgd_kernel(T* w, const T* w_bar, T* velocity, Index n, const SgdOptions& options, bool first) {
  const T rate = static_cast<T>(options.rate);
  const T decay = static_cast<T>(options.weight_decay);
  const T momentum = first ? T(0) : static_cast<T>(options.momentum);
  const T look_ahead = static_cast<T>(options.momentum);
  fenestra::parallel_for(n, kGrain, [&](Index begin, Index end) {
    if (velocity == nullptr) {
      for (Index i = begin; i < end; ++i) {
        w[i] -= rate * (w_bar[i] + decay * w[i]);
      }
    } else if (options.nesterov) {
      for (Index i = begin; i < end; ++i) {
        const T g = w_bar[i] + decay * w[i];
        velocity[i] = momentum * velocity[i] + g;
        w[i] -= rate * (g + look_ahead * velocity[i]);
      }
    } else {
      for (Index i = begin; i < end; ++i) {
        velocity[i] = momentum * velocity[i] + (w_bar[i] + decay * w[i]);
        w[i] -= rate * velocity[i];
      }
    }
  });
}

template <KernelScalar T>
void adam_kernel(
    T* w, const T* w_bar, T* mean, T* square, Index n, const AdamOptions& options, Index step) {
  // Corrections in double: 1 - beta^step cancels for small steps.
  const double mean_correction = 1 - std::pow(options.beta1, static_cast<double>(step));
  const double square_correction = 1 - std::pow(options.beta2, static_cast<double>(step));
  const T size = static_cast<T>(options.rate / mean_correction);
  const T root = static_cast<T>(1 / std::sqrt(square_correction));
  const T beta1 = static_cast<T>(options.beta1);
  const T beta2 = static_cast<T>(options.beta2);
  const T rest1 = static_cast<T>(1 - options.beta1);
  const T rest2 = static_cast<T>(1 - options.beta2);
  const T epsilon = static_cast<T>(options.epsilon);
  const T added = static_cast<T>(options.decoupled ? 0 : options.weight_decay);
  const T kept = static_cast<T>(options.decoupled ? 1 - options.rate * options.weight_decay : 1);
  fenestra::parallel_for(n, kGrain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const T g = w_bar[i] + added * w[i];
      mean[i] = beta1 * mean[i] + rest1 * g;
      square[i] = beta2 * square[i] + rest2 * (g * g);
      w[i] = kept * w[i] - size * mean[i] / (std::sqrt(square[i]) * root + epsilon);
    }
  });
}

template FENESTRA_API void sgd_kernel(float*, const float*, float*, Index, const SgdOptions&, bool);
template FENESTRA_API void sgd_kernel(
    double*, const double*, double*, Index, const SgdOptions&, bool);
template FENESTRA_API void adam_kernel(
    float*, const float*, float*, float*, Index, const AdamOptions&, Index);
template FENESTRA_API void adam_kernel(
    double*, const double*, double*, double*, Index, const AdamOptions&, Index);

}  // namespace fenestra::nn::detail

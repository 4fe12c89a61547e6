// Compiled updates of the optimisers for float and double. Elements are independent, so threads
// cannot be seen.
#include <fenestra/base/export.hpp>
#include <fenestra/base/parallel.hpp>
#include <fenestra/nn/optimiser.hpp>
#include <fenestra/nn/squares.hpp>

#include <algorithm>
#include <cmath>

namespace fenestra::nn::detail {

namespace {

// Elements per range: 64 KiB of f32, enough work to pay for waking a thread.
constexpr Index kGrain = 16384;
// Elements whose direction is kept on the stack, so that every loop is a plain one.
constexpr Index kPiece = 256;

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

template <KernelScalar T>
void rmsprop_kernel(
    T* w, const T* w_bar, T* square, T* mean, T* momentum, Index n, const RmsPropOptions& options) {
  const T rate = static_cast<T>(options.rate);
  const T kept = static_cast<T>(options.smoothing);
  const T rest = static_cast<T>(1 - options.smoothing);
  const T epsilon = static_cast<T>(options.epsilon);
  const T decay = static_cast<T>(options.weight_decay);
  const T carried = static_cast<T>(options.momentum);
  fenestra::parallel_for(n, kGrain, [&](Index begin, Index end) {
    T d[kPiece];
    for (Index from = begin; from < end; from += kPiece) {
      const Index count = std::min(kPiece, end - from);
      const T* x = w + from;
      const T* g = w_bar + from;
      T* s = square + from;
      for (Index i = 0; i < count; ++i) {
        d[i] = g[i] + decay * x[i];
        s[i] = kept * s[i] + rest * (d[i] * d[i]);
      }
      if (mean != nullptr) {
        T* m = mean + from;
        for (Index i = 0; i < count; ++i) {
          m[i] = kept * m[i] + rest * d[i];
          // The variance may come out a rounding below zero.
          const T variance = s[i] - m[i] * m[i];
          d[i] /= std::sqrt(variance < T(0) ? T(0) : variance) + epsilon;
        }
      } else {
        for (Index i = 0; i < count; ++i) {
          d[i] /= std::sqrt(s[i]) + epsilon;
        }
      }
      if (momentum != nullptr) {
        T* v = momentum + from;
        for (Index i = 0; i < count; ++i) {
          v[i] = carried * v[i] + d[i];
          d[i] = v[i];
        }
      }
      T* y = w + from;
      for (Index i = 0; i < count; ++i) {
        y[i] -= rate * d[i];
      }
    }
  });
}

template <KernelScalar T>
void lion_kernel(T* w, const T* w_bar, T* mean, Index n, const LionOptions& options) {
  const T rate = static_cast<T>(options.rate);
  const T beta1 = static_cast<T>(options.beta1);
  const T beta2 = static_cast<T>(options.beta2);
  const T rest1 = static_cast<T>(1 - options.beta1);
  const T rest2 = static_cast<T>(1 - options.beta2);
  const T kept = static_cast<T>(1 - options.rate * options.weight_decay);
  fenestra::parallel_for(n, kGrain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const T g = w_bar[i];
      const T direction = beta1 * mean[i] + rest1 * g;
      const T step = direction > T(0) ? rate : direction < T(0) ? -rate : T(0) * direction;
      w[i] = kept * w[i] - step;
      mean[i] = beta2 * mean[i] + rest2 * g;
    }
  });
}

Index lamb_partials(Index n) { return 2 * ((n + kGrain - 1) / kGrain); }

template <KernelScalar T>
void lamb_kernel(T* w,
                 const T* w_bar,
                 T* mean,
                 T* square,
                 Index n,
                 const LambOptions& options,
                 Index step,
                 double* partial) {
  const double mean_correction = 1 - std::pow(options.beta1, static_cast<double>(step));
  const double square_correction = 1 - std::pow(options.beta2, static_cast<double>(step));
  const T size = static_cast<T>(1 / mean_correction);
  const T root = static_cast<T>(1 / std::sqrt(square_correction));
  const T beta1 = static_cast<T>(options.beta1);
  const T beta2 = static_cast<T>(options.beta2);
  const T rest1 = static_cast<T>(1 - options.beta1);
  const T rest2 = static_cast<T>(1 - options.beta2);
  const T epsilon = static_cast<T>(options.epsilon);
  const T decay = static_cast<T>(options.weight_decay);
  // The direction is computed twice, for its length and for the step: memory for it would cost
  // more.
  const auto direction = [=](T m, T s, T x) {
    return size * m / (std::sqrt(s) * root + epsilon) + decay * x;
  };
  fenestra::parallel_for(n, kGrain, [&](Index begin, Index end) {
    T d[kPiece];
    double w_squares = 0;
    double d_squares = 0;
    for (Index from = begin; from < end; from += kPiece) {
      const Index count = std::min(kPiece, end - from);
      const T* x = w + from;
      const T* g = w_bar + from;
      T* m = mean + from;
      T* s = square + from;
      for (Index i = 0; i < count; ++i) {
        m[i] = beta1 * m[i] + rest1 * g[i];
        s[i] = beta2 * s[i] + rest2 * (g[i] * g[i]);
        d[i] = direction(m[i], s[i], x[i]);
      }
      w_squares += sum_of_squares(x, count);
      d_squares += sum_of_squares(d, count);
    }
    partial[2 * (begin / kGrain)] = w_squares;
    partial[2 * (begin / kGrain) + 1] = d_squares;
  });
  double w_squares = 0;
  double d_squares = 0;
  for (Index i = 0; i < lamb_partials(n); i += 2) {
    w_squares += partial[i];
    d_squares += partial[i + 1];
  }
  const double trust = w_squares > 0 && d_squares > 0 ? std::sqrt(w_squares / d_squares) : 1;
  const T rate = static_cast<T>(options.rate * trust);
  fenestra::parallel_for(n, kGrain, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      w[i] -= rate * direction(mean[i], square[i], w[i]);
    }
  });
}

#define FENESTRA_OPTIMISERS_FOR(T)                                                                \
  template FENESTRA_API void sgd_kernel(T*, const T*, T*, Index, const SgdOptions&, bool);        \
  template FENESTRA_API void adam_kernel(T*, const T*, T*, T*, Index, const AdamOptions&, Index); \
  template FENESTRA_API void rmsprop_kernel(                                                      \
      T*, const T*, T*, T*, T*, Index, const RmsPropOptions&);                                    \
  template FENESTRA_API void lion_kernel(T*, const T*, T*, Index, const LionOptions&);            \
  template FENESTRA_API void lamb_kernel(                                                         \
      T*, const T*, T*, T*, Index, const LambOptions&, Index, double*);

FENESTRA_OPTIMISERS_FOR(float)
FENESTRA_OPTIMISERS_FOR(double)
#undef FENESTRA_OPTIMISERS_FOR

}  // namespace fenestra::nn::detail

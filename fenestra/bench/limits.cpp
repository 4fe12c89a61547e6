// Measuring the machine's limits with the same vectors and threads that the kernels use.
#include <fenestra/bench/limits.hpp>
#include <fenestra/kernels/simd.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/bench/limits.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <fenestra/base/parallel.hpp>
#include <fenestra/bench/sample.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

HWY_BEFORE_NAMESPACE();
namespace fenestra::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Latency 4 times two ports need 8 chains; 14 leaves room for a third port and fits 16 registers.
#define FENESTRA_CHAINS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)
constexpr int kChains = 14;

/// `steps` multiply-adds in each chain; returns the flops done and leaves a value in `sink`, so
/// that nothing is removed.
template <class T>
double multiply_add(Index steps, T* sink) {
  const hn::ScalableTag<T> tag;
  const auto factor = hn::Set(tag, static_cast<T>(0.999));
  const auto term = hn::Set(tag, static_cast<T>(1e-3));
#define FENESTRA_START(i) auto chain##i = hn::Set(tag, static_cast<T>(i));
#define FENESTRA_STEP(i) chain##i = hn::MulAdd(chain##i, factor, term);
#define FENESTRA_END(i) sum = hn::Add(sum, chain##i);
  FENESTRA_CHAINS(FENESTRA_START)
  for (Index step = 0; step < steps; ++step) {
    FENESTRA_CHAINS(FENESTRA_STEP)
  }
  auto sum = hn::Zero(tag);
  FENESTRA_CHAINS(FENESTRA_END)
#undef FENESTRA_START
#undef FENESTRA_STEP
#undef FENESTRA_END
  *sink = hn::GetLane(sum);
  return 2.0 * static_cast<double>(steps) * kChains * static_cast<double>(hn::Lanes(tag));
}
#undef FENESTRA_CHAINS

double multiply_add_f32(Index steps, float* sink) { return multiply_add<float>(steps, sink); }
double multiply_add_f64(Index steps, double* sink) { return multiply_add<double>(steps, sink); }

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::bench {

HWY_EXPORT(multiply_add_f32);
HWY_EXPORT(multiply_add_f64);

namespace {

constexpr Index kSteps = 200'000;
constexpr Effort kEffort{.seconds = 0.01, .runs = 5};

template <class F>
double best_of(F&& f) {
  std::vector<double> times;
  sample(f, kEffort, times);
  return *std::min_element(times.begin(), times.end());
}

template <class T, class F>
double measured_peak(int threads, F&& f) {
  const int before = fenestra::threads();
  set_threads(threads);
  std::vector<T> sinks(static_cast<std::size_t>(threads) * 64);
  double flops = 0;
  const double seconds = best_of([&] {
    parallel_for(threads, 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const double done = f(kSteps, &sinks[static_cast<std::size_t>(i) * 64]);
        if (i == 0) {
          flops = done;
        }
      }
    });
  });
  set_threads(before);
  return flops * threads / seconds;
}

}  // namespace

template <>
double peak_flops<float>(int threads) {
  return measured_peak<float>(threads, [](Index steps, float* sink) {
    return HWY_DYNAMIC_DISPATCH(multiply_add_f32)(steps, sink);
  });
}

template <>
double peak_flops<double>(int threads) {
  return measured_peak<double>(threads, [](Index steps, double* sink) {
    return HWY_DYNAMIC_DISPATCH(multiply_add_f64)(steps, sink);
  });
}

double copy_speed(std::size_t bytes, int threads) {
  const int before = fenestra::threads();
  set_threads(threads);
  const auto half = static_cast<Index>(bytes / 2);
  const Tensor<std::uint8_t> from(Shape{half});
  Tensor<std::uint8_t> to(Shape{half});
  std::uint8_t* out = to.mutable_data();
  const Index part = (half + threads - 1) / threads;
  const auto copy = [&] {
    parallel_for(threads, 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const Index first = i * part;
        const Index count = std::min(part, half - first);
        std::memcpy(out + first, from.data() + first, static_cast<std::size_t>(count));
      }
    });
  };
  const double speed = 2.0 * static_cast<double>(half) / best_of(copy);
  set_threads(before);
  return speed;
}

}  // namespace fenestra::bench
#endif  // HWY_ONCE

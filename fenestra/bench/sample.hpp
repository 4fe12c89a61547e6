// Timing one callable: repeated runs, a list of seconds, the median of it.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace fenestra::bench {

/// When a measurement is long enough: `seconds` in total and at least `runs` runs.
struct Effort {
  double seconds = 0.15;
  int runs = 5;
  bool warm_up = true;  ///< the first call pays for pages, caches and code, and is not counted
};

template <class F>
double seconds_of(F&& f, long repeats) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (long i = 0; i < repeats; ++i) {
    f();
  }
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  return elapsed.count() / static_cast<double>(repeats);
}

/// Seconds per call, several times. Calls shorter than the clock resolves are timed in groups.
template <class F>
void sample(F&& f, const Effort& effort, std::vector<double>& times) {
  constexpr double kShortest = 50e-6;
  if (effort.warm_up) {
    f();
  }
  const double once = seconds_of(f, 1);
  const long repeats = once < kShortest ? static_cast<long>(kShortest / (once + 1e-9)) + 1 : 1;
  double total = 0;
  int runs = 0;
  if (repeats == 1) {
    times.push_back(once);
    total = once;
    runs = 1;
  }
  for (; runs < effort.runs || total < effort.seconds; ++runs) {
    times.push_back(seconds_of(f, repeats));
    total += times.back() * static_cast<double>(repeats);
  }
}

inline double median(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace fenestra::bench

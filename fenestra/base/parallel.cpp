// The pool behind parallel_for: OpenMP's where it is compiled in (oneDNN shares it), else
// std::thread.
#include <fenestra/base/parallel.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#ifdef FENESTRA_HAVE_OPENMP
#include <omp.h>
#endif

namespace fenestra {

namespace {

int initial_threads() {
  if (const char* text = std::getenv("FENESTRA_THREADS")) {
    const int n = std::atoi(text);
    if (n >= 1) {
      return n;
    }
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::atomic<int>& thread_count() {
  static std::atomic<int> count{initial_threads()};
  return count;
}

thread_local bool inside_parallel = false;

/// Takes ranges from a shared counter until none is left.
struct RangeQueue {
  Index n;
  Index grain;
  detail::RangeBody body;
  std::atomic<Index> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr failure = nullptr;

  void drain() noexcept {
    inside_parallel = true;
    try {
      for (Index begin = next.fetch_add(grain); begin < n; begin = next.fetch_add(grain)) {
        body.call(body.object, begin, std::min(begin + grain, n));
      }
    } catch (...) {
      next = n;
      if (!failed.exchange(true)) {
        failure = std::current_exception();
      }
    }
    inside_parallel = false;
  }
};

}  // namespace

int threads() { return thread_count().load(std::memory_order_relaxed); }

void set_threads(int n) {
  if (n < 1) {
    throw Error(ErrorCode::invalid_extent,
                "set_threads: " + std::to_string(n) +
                    " threads, needed >= 1\n  fix: set_threads(1) for serial work");
  }
  thread_count().store(n, std::memory_order_relaxed);
}

namespace detail {

void parallel_for(Index n, Index grain, RangeBody body) {
  if (n <= 0) {
    return;
  }
  grain = std::max<Index>(grain, 1);
  const Index ranges = (n + grain - 1) / grain;
  const int team = static_cast<int>(std::min<Index>(threads(), ranges));
  if (team == 1 || inside_parallel) {
    for (Index begin = 0; begin < n; begin += grain) {
      body.call(body.object, begin, std::min(begin + grain, n));
    }
    return;
  }
  RangeQueue queue{n, grain, body};
#ifdef FENESTRA_HAVE_OPENMP
#pragma omp parallel num_threads(team)
  queue.drain();
#else
  std::vector<std::thread> helpers;
  helpers.reserve(static_cast<std::size_t>(team - 1));
  for (int i = 1; i < team; ++i) {
    helpers.emplace_back([&queue] { queue.drain(); });
  }
  queue.drain();
  for (std::thread& helper : helpers) {
    helper.join();
  }
#endif
  if (queue.failure) {
    std::rethrow_exception(queue.failure);
  }
}

}  // namespace detail

}  // namespace fenestra

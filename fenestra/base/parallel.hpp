// parallel_for: the only way work is spread over threads.
//
// The split of a range depends on the range alone, never on the number of threads, and bodies write
// disjoint results, so no value depends on how many threads ran. One pool serves the whole process:
// nested calls run in the calling thread, calls from several threads share the pool's. Read on:
// docs/threads.md.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/export.hpp>

#include <memory>

namespace fenestra {

/// The most threads that can be asked for.
inline constexpr int kMaxThreads = 1024;

/// Threads that parallel_for may use, the calling one included. At first: FENESTRA_THREADS, else
/// the processors that the affinity mask and the cgroups of the process leave. Throws
/// `bad_environment` while FENESTRA_THREADS is not a number from 1 to kMaxThreads and set_threads
/// was not called.
FENESTRA_API int threads();

/// 1 <= n <= kMaxThreads, else `invalid_option`.
FENESTRA_API void set_threads(int n);

namespace detail {

/// A reference to a callable taking a range; no allocation, no copy.
struct RangeBody {
  const void* object;
  void (*call)(const void* object, Index begin, Index end);
};

FENESTRA_API void parallel_for(Index n, Index grain, RangeBody body);

}  // namespace detail

/// Calls body(begin, end) on consecutive ranges of at most `grain` indices that cover [0, n). What
/// a body throws is thrown here: the first of several, after every running range has ended; ranges
/// that have not begun by then are left out.
template <class Body>
void parallel_for(Index n, Index grain, const Body& body) {
  detail::parallel_for(
      n, grain, {std::addressof(body), [](const void* object, Index begin, Index end) {
                   (*static_cast<const Body*>(object))(begin, end);
                 }});
}

}  // namespace fenestra

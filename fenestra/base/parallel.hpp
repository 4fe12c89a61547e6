// parallel_for: the only way work is spread over threads.
//
// The split of a range depends on the range alone, never on the number of threads, and bodies write
// disjoint results, so no value depends on how many threads ran. Nested calls run in the calling
// thread.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/export.hpp>

#include <memory>
#include <type_traits>

namespace fenestra {

/// Threads that parallel_for may use, the calling one included. At first: FENESTRA_THREADS, else
/// the machine's cores.
FENESTRA_API int threads() noexcept;

/// n >= 1, else `invalid_extent`.
FENESTRA_API void set_threads(int n);

namespace detail {

/// A reference to a callable taking a range; no allocation, no copy.
struct RangeBody {
  const void* object;
  void (*call)(const void* object, Index begin, Index end);
};

FENESTRA_API void parallel_for(Index n, Index grain, RangeBody body) noexcept;

}  // namespace detail

/// Calls body(begin, end) on consecutive ranges of at most `grain` indices that cover [0, n). The
/// body must not throw.
template <class Body>
void parallel_for(Index n, Index grain, const Body& body) noexcept {
  detail::parallel_for(
      n, grain, {std::addressof(body), [](const void* object, Index begin, Index end) {
                   (*static_cast<const Body*>(object))(begin, end);
                 }});
}

}  // namespace fenestra

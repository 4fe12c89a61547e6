// Memory that a kernel needs while it runs: a stack per thread, reused from call to call. Internal:
// not installed.
//
// A frame takes pieces and gives them all back as it ends. Frames are local variables, or members
// of such, so those of a thread end in reverse order, also where an exception passes; a kernel that
// runs another one, or calls it back, needs to know nothing of its frames. A piece stays where it
// is while its frame lives: when the memory at hand is used up, more is added beside it, and as the
// thread's last frame ends all of it becomes one chunk, of the most that was in use at once. From
// then on the same call allocates nothing.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/memory.hpp>

#include <cassert>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define FENESTRA_WATCHES_SCRATCH true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FENESTRA_WATCHES_SCRATCH true
#endif
#endif
#ifndef FENESTRA_WATCHES_SCRATCH
#define FENESTRA_WATCHES_SCRATCH false
#endif

namespace fenestra::kernels {

class ScratchFrame;

namespace detail {

/// Under the address sanitizer nobody may touch what no frame has taken.
inline constexpr bool kWatchesScratch = FENESTRA_WATCHES_SCRATCH;

/// The scratch of one thread: chunks, of which those older than the one at hand had no room for a
/// piece, and newer ones are empty. While no frame is open there is at most one.
struct ScratchStack {
  struct Chunk;

  std::byte* base = nullptr;  ///< of the chunk at hand
  std::byte* top = nullptr;   ///< where what is free of it begins
  std::byte* end = nullptr;
  std::size_t below = 0;                    ///< bytes in use in older chunks
  const ScratchFrame* innermost = nullptr;  ///< the last one that began
  bool has_grown = false;                   ///< since the outermost frame began
  bool released_at_end = false;             ///< of the thread
  std::size_t most_used = 0;
  Chunk* at = nullptr;  ///< the chunk at hand

  std::size_t used() const { return below + static_cast<std::size_t>(top - base); }

  std::byte* take(std::size_t bytes) {
    if (kWatchesScratch || bytes > static_cast<std::size_t>(end - top)) {
      return take_slowly(bytes);
    }
    return std::exchange(top, top + bytes);
  }
  /// Back to so many bytes in use.
  void give_back(std::size_t before) noexcept {
    if (kWatchesScratch || has_grown) {
      give_back_slowly(before);
    } else {
      top = base + before;
    }
  }

  std::byte* take_slowly(std::size_t bytes);
  void give_back_slowly(std::size_t before) noexcept;
};

extern constinit thread_local ScratchStack scratch_stack;

}  // namespace detail

/// Of the thread that made it. Pieces are taken from the innermost frame only.
class ScratchFrame {
 public:
  ScratchFrame() noexcept
      : stack_(detail::scratch_stack), around_(stack_.innermost), before_(stack_.used()) {
    stack_.innermost = this;
  }
  ~ScratchFrame() {
    stack_.innermost = around_;
    stack_.give_back(before_);
  }
  ScratchFrame(const ScratchFrame&) = delete;
  ScratchFrame& operator=(const ScratchFrame&) = delete;

  /// Room for `count` elements on a 64-byte boundary, contents undefined; an address also for none.
  /// Throws std::bad_alloc where there is no memory: what was taken before stays, and scratch may
  /// be asked for again.
  template <class T>
  T* take(Index count) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    return static_cast<T*>(take_array(static_cast<std::size_t>(count), sizeof(T)));
  }

  /// An object in scratch. Its end is not announced to it.
  template <class T, class... Arguments>
  T* make(Arguments&&... arguments) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);
    return new (take_array(1, sizeof(T))) T(std::forward<Arguments>(arguments)...);
  }

 private:
  // What a process can address: nobody need be asked for more.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 47;

  void* take_array(std::size_t count, std::size_t size) {
    assert(stack_.innermost == this && &stack_ == &detail::scratch_stack);
    if (count > kMostBytes / size) {
      throw std::bad_alloc();
    }
    const std::size_t lines = (count * size + kAlignment - 1) / kAlignment;
    return stack_.take((lines > 0 ? lines : 1) * kAlignment);
  }

  detail::ScratchStack& stack_;
  const ScratchFrame* around_;  // the frame of this thread that began before, if there is one
  std::size_t before_;          // bytes in use as it began
};

/// Overwrites what is free of this thread's scratch with bytes of ones (NaNs, negative counts):
/// what a kernel reads before it writes then shows. For tests.
void spoil_scratch();

}  // namespace fenestra::kernels

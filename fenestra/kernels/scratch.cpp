// The stack behind ScratchFrame: one per thread, released when the thread ends.
//
// A pthread key ends it: a thread_local with a destructor would be registered by a call that ends
// the program where it finds no memory.
#include <fenestra/kernels/scratch.hpp>

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#if FENESTRA_WATCHES_SCRATCH
#include <sanitizer/asan_interface.h>
#endif

namespace fenestra::kernels {

using detail::ScratchStack;

/// Its bytes follow in memory.
struct alignas(kAlignment) ScratchStack::Chunk {
  Chunk* older;
  Chunk* newer;
  std::size_t bytes;
  std::size_t below;  // in use in older chunks, where this one was come to

  std::byte* memory() { return reinterpret_cast<std::byte*>(this + 1); }
};

constinit thread_local ScratchStack detail::scratch_stack{};

namespace {

using Chunk = ScratchStack::Chunk;

// What most calls on small images need, so that their first run allocates once.
constexpr std::size_t kLeastBytes = 64 * 1024;

void forbid([[maybe_unused]] std::byte* first, [[maybe_unused]] std::size_t bytes) {
#if FENESTRA_WATCHES_SCRATCH
  __asan_poison_memory_region(first, bytes);
#endif
}
void allow([[maybe_unused]] std::byte* first, [[maybe_unused]] std::size_t bytes) {
#if FENESTRA_WATCHES_SCRATCH
  __asan_unpoison_memory_region(first, bytes);
#endif
}

/// Goes on in this chunk, which may be none, with so many bytes in use in it and below.
void continue_in(ScratchStack& stack, Chunk* chunk, std::size_t used) {
  stack.at = chunk;
  stack.below = chunk != nullptr ? chunk->below : 0;
  stack.base = chunk != nullptr ? chunk->memory() : nullptr;
  stack.top = chunk != nullptr ? stack.base + (used - stack.below) : nullptr;
  stack.end = chunk != nullptr ? stack.base + chunk->bytes : nullptr;
}

/// Null where there is no memory.
Chunk* new_chunk(std::size_t bytes, Chunk* older, std::size_t below) {
  void* memory = std::aligned_alloc(kAlignment, sizeof(Chunk) + bytes + kAlignment);
  if (memory == nullptr) {
    return nullptr;
  }
  auto* chunk = new (memory) Chunk{older, nullptr, bytes, below};
  forbid(chunk->memory(), bytes + kAlignment);
  return chunk;
}

void free_newer(Chunk* chunk) {
  if (chunk == nullptr) {
    return;
  }
  for (Chunk* next = std::exchange(chunk->newer, nullptr); next != nullptr;) {
    std::free(std::exchange(next, next->newer));
  }
}

extern "C" void fenestra_release_scratch(void* of_thread) {
  auto& stack = *static_cast<ScratchStack*>(of_thread);
  free_newer(stack.at);
  std::free(stack.at);
  stack = {};
}

/// Deleted with the library, so that no thread calls what is no longer there. Without a key, or
/// after its end, scratch lives as long as the process.
class Key {
 public:
  Key() : is_there_(pthread_key_create(&key_, fenestra_release_scratch) == 0) {}
  ~Key() {
    if (is_there_) {
      pthread_key_delete(key_);
    }
  }
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;

  void release_at_end(ScratchStack& stack) const {
    if (is_there_ && pthread_setspecific(key_, &stack) == ENOMEM) {
      throw std::bad_alloc();
    }
    stack.released_at_end = true;
  }

 private:
  pthread_key_t key_ = {};
  bool is_there_;
};

/// Made before the pool of parallel_for, which is in another source, and so there until its workers
/// have ended: else what they hold would be lost with the library.
[[gnu::init_priority(1000)]] const Key key;

/// Goes on in a chunk with room for so many bytes.
void grow(ScratchStack& stack, std::size_t bytes) {
  if (!stack.released_at_end) {
    key.release_at_end(stack);
  }
  stack.has_grown = true;
  const std::size_t used = stack.used();
  Chunk* at = stack.at;
  if (at != nullptr && at->newer != nullptr && at->newer->bytes >= bytes) {
    at->newer->below = used;
    continue_in(stack, at->newer, used);
    return;
  }
  free_newer(at);
  if (at != nullptr && stack.top == stack.base) {  // it is empty, and too small
    std::free(std::exchange(at, at->older));
    if (at != nullptr) {
      at->newer = nullptr;
    }
    continue_in(stack, at, used);
  }
  Chunk* next = new_chunk(std::max(bytes, kLeastBytes), at, used);
  if (next == nullptr) {
    throw OutOfMemory("the scratch of a kernel", bytes);
  }
  if (at != nullptr) {
    at->newer = next;
  }
  continue_in(stack, next, used);
}

/// One chunk of the most that was in use, instead of several empty ones. Where there is no memory
/// for it there is none, until somebody asks.
void join(ScratchStack& stack) noexcept {
  free_newer(stack.at);
  std::free(stack.at);
  continue_in(stack, new_chunk(stack.most_used, nullptr, 0), 0);
}

}  // namespace

std::byte* ScratchStack::take_slowly(std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(end - top)) {
    grow(*this, bytes);
  }
  allow(top, bytes);
  return std::exchange(top, top + bytes);
}

void ScratchStack::give_back_slowly(std::size_t before) noexcept {
  most_used = std::max(most_used, used());
  while (at != nullptr && at->older != nullptr && before <= below) {
    forbid(base, static_cast<std::size_t>(top - base));
    continue_in(*this, at->older, below);
  }
  if (at != nullptr) {
    forbid(base + (before - below), used() - before);
    top = base + (before - below);
  }
  if (innermost == nullptr) {
    has_grown = false;
    if (at != nullptr && at->newer != nullptr) {
      join(*this);
    }
  }
}

void spoil_scratch() {
  ScratchStack& stack = detail::scratch_stack;
  for (Chunk* chunk = stack.at; chunk != nullptr; chunk = chunk->newer) {
    std::byte* const first = chunk == stack.at ? stack.top : chunk->memory();
    const auto bytes = static_cast<std::size_t>(chunk->memory() + chunk->bytes - first);
    allow(first, bytes);
    std::memset(first, 0xff, bytes);
    forbid(first, bytes);
  }
}

}  // namespace fenestra::kernels

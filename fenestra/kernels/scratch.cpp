// The buffers behind scratch(): one array per thread, released when the thread ends.
//
// A pthread key ends them: a thread_local with a destructor would be registered by a call that ends
// the program where it finds no memory.
#include <fenestra/base/memory.hpp>
#include <fenestra/kernels/scratch.hpp>

#include <pthread.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace fenestra::kernels {

namespace {

struct Slot {
  void* memory;
  std::size_t bytes;
};

struct Slots {
  Slot slots[scratch_slots];
  bool released_at_end;
};

constinit thread_local Slots mine{};

extern "C" void fenestra_release_scratch(void* slots) {
  auto& ended = *static_cast<Slots*>(slots);
  for (Slot& slot : ended.slots) {
    std::free(slot.memory);
  }
  ended = {};
}

/// Deleted with the library, so that no thread calls what is no longer there. Without a key, or
/// after its end, buffers live as long as the process.
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

  void release_at_end(Slots& slots) const {
    if (is_there_ && pthread_setspecific(key_, &slots) == ENOMEM) {
      throw std::bad_alloc();
    }
    slots.released_at_end = true;
  }

 private:
  pthread_key_t key_ = {};
  bool is_there_;
};

/// Made before the pool of parallel_for, which is in another source, and so there until its workers
/// have ended: else what they hold would be lost with the library.
[[gnu::init_priority(1000)]] const Key key;

}  // namespace

void* scratch_bytes(int slot, std::size_t bytes) {
  Slot& s = mine.slots[slot];
  if (bytes > s.bytes || s.memory == nullptr) {
    if (!mine.released_at_end) {
      key.release_at_end(mine);
    }
    std::free(s.memory);
    s = {};
    if (bytes > static_cast<std::size_t>(PTRDIFF_MAX)) {
      throw std::bad_alloc();
    }
    const std::size_t rounded = (bytes / kAlignment + 1) * kAlignment;
    s.memory = std::aligned_alloc(kAlignment, rounded);
    if (s.memory == nullptr) {
      throw OutOfMemory("the scratch of a kernel", rounded);
    }
    s.bytes = rounded;
  }
  return s.memory;
}

void spoil_scratch() {
  for (const Slot& slot : mine.slots) {
    if (slot.memory != nullptr) {
      std::memset(slot.memory, 0xff, slot.bytes);
    }
  }
}

}  // namespace fenestra::kernels

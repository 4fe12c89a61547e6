// The buffers behind scratch(): one array per thread, released when the thread ends.
#include <fenestra/base/memory.hpp>
#include <fenestra/kernels/scratch.hpp>

#include <array>
#include <cstdlib>
#include <exception>
#include <memory>

namespace fenestra::kernels {

namespace {

struct Freed {
  void operator()(void* p) const { std::free(p); }
};

struct Slot {
  std::unique_ptr<void, Freed> memory;
  std::size_t bytes = 0;
};

thread_local std::array<Slot, scratch_slots> slots;

}  // namespace

void* scratch_bytes(int slot, std::size_t bytes) noexcept {
  Slot& s = slots[static_cast<std::size_t>(slot)];
  if (bytes > s.bytes || s.memory == nullptr) {
    const std::size_t rounded = (bytes / kAlignment + 1) * kAlignment;
    s.memory.reset();
    s.memory.reset(std::aligned_alloc(kAlignment, rounded));
    if (s.memory == nullptr) {
      std::terminate();
    }
    s.bytes = rounded;
  }
  return s.memory.get();
}

}  // namespace fenestra::kernels

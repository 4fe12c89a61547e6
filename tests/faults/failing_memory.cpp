// The seam: operators new and delete, and what the linker puts in the place of malloc.
#include <tests/faults/failing_memory.hpp>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

constinit std::atomic<std::int64_t> asked{0};
constinit std::atomic<std::int64_t> alive{0};
constinit std::atomic<std::int64_t> refusals{0};
/// Numbers of allocations from the first that fails to the last.
constinit std::atomic<std::int64_t> first_failing{kNever};
constinit std::atomic<std::int64_t> last_failing{kNever};

bool fails() {
  const std::int64_t number = ++asked;
  if (number < first_failing || number > last_failing) {
    return false;
  }
  ++refusals;
  return true;
}

template <class Allocate>
void* counted(const Allocate& allocate) {
  void* memory = fails() ? nullptr : allocate();
  alive += memory != nullptr ? 1 : 0;
  return memory;
}

}  // namespace

extern "C" {

void* __real_malloc(std::size_t bytes);
void* __real_calloc(std::size_t count, std::size_t bytes);
void* __real_realloc(void* memory, std::size_t bytes);
void* __real_aligned_alloc(std::size_t alignment, std::size_t bytes);
int __real_posix_memalign(void** memory, std::size_t alignment, std::size_t bytes);
void __real_free(void* memory);

void* __wrap_malloc(std::size_t bytes) {
  return counted([&] { return __real_malloc(bytes); });
}
void* __wrap_calloc(std::size_t count, std::size_t bytes) {
  return counted([&] { return __real_calloc(count, bytes); });
}
void* __wrap_realloc(void* memory, std::size_t bytes) {
  if (fails()) {
    return nullptr;
  }
  void* moved = __real_realloc(memory, bytes);
  alive += memory == nullptr && moved != nullptr ? 1 : 0;
  return moved;
}
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return counted([&] { return __real_aligned_alloc(alignment, bytes); });
}
int __wrap_posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  int failure = 12;  // ENOMEM
  void* found = counted([&]() -> void* {
    failure = __real_posix_memalign(memory, alignment, bytes);
    return failure == 0 ? *memory : nullptr;
  });
  return found == nullptr ? failure : 0;
}
void __wrap_free(void* memory) {
  alive -= memory != nullptr ? 1 : 0;
  __real_free(memory);
}

}  // extern "C"

void* operator new(std::size_t bytes) {
  if (void* memory = __wrap_malloc(bytes > 0 ? bytes : 1)) {
    return memory;
  }
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto to = static_cast<std::size_t>(alignment);
  if (void* memory = __wrap_aligned_alloc(to, (bytes / to + 1) * to)) {
    return memory;
  }
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return __wrap_malloc(bytes > 0 ? bytes : 1);
}
void operator delete(void* memory) noexcept { __wrap_free(memory); }
void operator delete(void* memory, std::size_t) noexcept { __wrap_free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { __wrap_free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { __wrap_free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { __wrap_free(memory); }

namespace fenestra::faults {

FailingMemory::FailingMemory(std::int64_t which, Failing failing) {
  refusals = 0;
  first_failing = asked + which;
  last_failing = failing == Failing::once ? asked + which : kNever;
}
FailingMemory::~FailingMemory() {
  first_failing = kNever;
  last_failing = kNever;
}
std::int64_t FailingMemory::refused() const { return refusals; }

std::int64_t allocations() { return asked; }
std::int64_t living() { return alive; }

}  // namespace fenestra::faults

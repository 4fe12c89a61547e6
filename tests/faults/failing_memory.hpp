// Memory that fails when told to: every allocation of the program under test goes through here, and
// is counted.
//
// The executable replaces operator new and, by the linker's --wrap, the calls of malloc and its
// kin in everything that is linked statically; what the C library allocates for itself is left
// alone. Counters are shared by all threads.
#pragma once

#include <cstdint>

namespace fenestra::faults {

enum class Failing {
  once,  ///< one allocation fails, those after it succeed: what is tried again may work
  on,    ///< it and all after it fail: nothing on the way out may need memory
};

/// From here to its end the allocation number `which`, counted from 1 in all threads, fails.
class FailingMemory {
 public:
  FailingMemory(std::int64_t which, Failing failing);
  ~FailingMemory();
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;

  /// Allocations that were refused.
  std::int64_t refused() const;
};

/// Allocations asked for since the program began, and those that have not been freed.
std::int64_t allocations();
std::int64_t living();

}  // namespace fenestra::faults

// Memory that a kernel needs while it runs: per thread, reused from call to call, never shrunk.
// Internal: not installed.
// A slot is one buffer. Asking for a slot again may move it, so a kernel asks once for all it needs
// of a slot, and two kernels on one call stack use different slots.
#pragma once

#include <cstddef>
#include <limits>
#include <new>
#include <type_traits>

namespace fenestra::kernels {

/// GEMM keeps the first slots, the functions it calls back (packing, storing) the next ones, and
/// what calls GEMM or does without it uses `caller` and up; a kernel that runs another one whole
/// uses `around`.
enum ScratchSlot : int {
  scratch_gemm_shared = 0,
  scratch_gemm_a,
  scratch_gemm_b,
  scratch_gemm_c,
  scratch_gemm_rows,
  scratch_pack,
  scratch_pack_2,
  scratch_pack_3,
  scratch_caller,
  scratch_caller_2,
  scratch_caller_3,
  scratch_around,
  scratch_around_2,
  scratch_around_3,
  scratch_slots,
};

/// At least `bytes` bytes on a 64-byte boundary, contents undefined. Throws std::bad_alloc where
/// there is no memory; the slot is empty then, and may be asked for again.
void* scratch_bytes(int slot, std::size_t bytes);

/// Overwrites every slot of this thread with bytes of ones (NaNs, negative counts): what a kernel
/// reads before it writes then shows. For tests.
void spoil_scratch();

template <class T>
T* scratch(int slot, std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
    throw std::bad_alloc();
  }
  return static_cast<T*>(scratch_bytes(slot, count * sizeof(T)));
}

}  // namespace fenestra::kernels

// The lock of a host language: what a scripting language holds while it runs, and lets go of while
// tensors are computed on, so that its other threads run.
#pragma once

#include <fenestra/base/export.hpp>

#include <atomic>

namespace fenestra {

class HostLock {
 public:
  /// Lets go in this thread, and says what `take` needs; null where the thread does not hold it.
  virtual void* release() = 0;
  virtual void take(void* state) = 0;

 protected:
  ~HostLock() = default;
};

namespace detail {

/// Set by a host when it loads the library; null where there is none.
FENESTRA_API inline std::atomic<HostLock*> host_lock = nullptr;

/// While it lives, this thread does not hold the host's lock.
class Unlocked {
 public:
  Unlocked() : lock_(host_lock.load(std::memory_order_relaxed)) {
    if (lock_ != nullptr) {
      state_ = lock_->release();
    }
  }
  ~Unlocked() {
    if (state_ != nullptr) {
      lock_->take(state_);
    }
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  HostLock* lock_;
  void* state_ = nullptr;
};

}  // namespace detail

/// From now on computations let go of `lock`, which must live as long as the library is used.
inline void set_host_lock(HostLock* lock) { detail::host_lock.store(lock); }

}  // namespace fenestra

// Reused memory for tensors: a freed buffer is kept and given to the next tensor of its size class.
//
// Fresh pages cost more than most operators that write them (the kernel zeroes each one), so
// buffers do not go back to the system until the cache is full, memory runs out, or
// `release_memory` is called. Safe from any thread. Header-only, because the specification has no
// compiled part.
#pragma once

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

namespace fenestra {

/// There is no memory for something large enough to be named. The text lies in the exception
/// itself: who has no memory cannot allocate a message.
class OutOfMemory : public std::bad_alloc {
 public:
  /// `what` is cut where it is too long.
  OutOfMemory(const char* what, std::size_t bytes) noexcept {
    std::snprintf(text_, sizeof(text_), "no memory for %.140s: %zu bytes", what, bytes);
  }
  const char* what() const noexcept override { return text_; }

 private:
  char text_[192];
};

/// Every buffer starts on a cache line, which is also the widest vector.
inline constexpr std::size_t kAlignment = 64;

namespace detail {

class BufferCache {
 public:
  static BufferCache& instance() {
    // Never destroyed: tensors in static storage may outlive any order of destruction.
    static BufferCache* cache = new BufferCache;
    return *cache;
  }

  /// Null where there is no memory, not even after everything cached was given back.
  void* allocate(std::size_t bytes) noexcept {
    if (bytes > kMostBytes) {
      return nullptr;
    }
    const int size_class = class_of(bytes);
    if (void* buffer = take_cached(size_class)) {
      return buffer;
    }
    void* buffer = take_from_system(class_bytes(size_class));
    if (buffer == nullptr) {
      clear();
      buffer = take_from_system(class_bytes(size_class));
    }
    if (buffer != nullptr) {
      const std::scoped_lock lock(mutex_);
      count(size_class);
    }
    return buffer;
  }

  void release(void* buffer, std::size_t bytes) noexcept {
    const int size_class = class_of(bytes);
    {
      const std::scoped_lock lock(mutex_);
      in_use_ -= class_bytes(size_class);
      auto& list = free_[static_cast<std::size_t>(size_class)];
      if (cached_ + class_bytes(size_class) <= kMostCached && list.size() < list.capacity()) {
        list.push_back(buffer);
        cached_ += class_bytes(size_class);
        return;
      }
    }
    std::free(buffer);
  }

  std::size_t in_use() noexcept {
    const std::scoped_lock lock(mutex_);
    return in_use_;
  }
  std::size_t peak() noexcept {
    const std::scoped_lock lock(mutex_);
    return peak_;
  }
  void reset_peak() noexcept {
    const std::scoped_lock lock(mutex_);
    peak_ = in_use_;
  }

  void clear() noexcept {
    const std::scoped_lock lock(mutex_);
    for (auto& list : free_) {
      for (void* buffer : list) {
        std::free(buffer);
      }
      list.clear();
    }
    cached_ = 0;
  }

 private:
  BufferCache() {
    for (auto& list : free_) {
      list.reserve(kMostPerClass);
    }
    // A child that is forked while another thread holds the lock would wait for it for ever.
    pthread_atfork([] { instance().mutex_.lock(); },
                   [] { instance().mutex_.unlock(); },
                   [] { instance().mutex_.unlock(); });
  }

  void* take_cached(int size_class) noexcept {
    const std::scoped_lock lock(mutex_);
    auto& list = free_[static_cast<std::size_t>(size_class)];
    if (list.empty()) {
      return nullptr;
    }
    void* buffer = list.back();
    list.pop_back();
    cached_ -= class_bytes(size_class);
    count(size_class);
    return buffer;
  }
  /// Under the lock.
  void count(int size_class) noexcept {
    in_use_ += class_bytes(size_class);
    peak_ = std::max(peak_, in_use_);
  }

  /// Large buffers ask for pages of 2 MiB, in which what walks over many rows at once need not look
  /// up every page, and which the system clears in one go. Only whole ones within the buffer: what
  /// is not touched is not taken. Where the system has none, nothing changes.
  static void* take_from_system(std::size_t bytes) noexcept {
#ifdef MADV_HUGEPAGE
    if (bytes >= kLeastHuge) {
      const std::size_t whole = bytes / kHugePage * kHugePage;
      // In whole pages: the address sanitizer ends programs that ask for anything else.
      const std::size_t asked = (bytes + kHugePage - 1) / kHugePage * kHugePage;
      if (void* buffer = std::aligned_alloc(kHugePage, asked)) {
        static_cast<void>(madvise(buffer, whole, MADV_HUGEPAGE));
        return buffer;
      }
    }
#endif
    return std::aligned_alloc(kAlignment, bytes);
  }

  // Four classes to a power of two: at most a quarter of a buffer is slack.
  static int class_of(std::size_t bytes) {
    const std::size_t least = bytes < kAlignment ? kAlignment : bytes;
    const auto power = static_cast<int>(std::bit_width(least - 1));
    const std::size_t half = std::size_t{1} << (power - 1);
    const std::size_t quarter = half / 4;
    return 4 * power + static_cast<int>((least - half + quarter - 1) / quarter) - 1;
  }
  static std::size_t class_bytes(int size_class) {
    const int power = size_class / 4;
    const std::size_t half = std::size_t{1} << (power - 1);
    const std::size_t bytes = half + half / 4 * static_cast<std::size_t>(size_class % 4 + 1);
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  /// What a process can address: nobody need be asked for more.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 47;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  static constexpr std::size_t kLeastHuge = 2 * kHugePage;
  static constexpr std::size_t kMostCached = std::size_t{1} << 30;
  static constexpr std::size_t kMostPerClass = 64;
  std::mutex mutex_;
  std::size_t cached_ = 0;
  std::size_t in_use_ = 0;
  std::size_t peak_ = 0;
  std::array<std::vector<void*>, 4 * 65> free_;
};

}  // namespace detail

/// Gives all cached buffers back to the system.
inline void release_memory() noexcept { detail::BufferCache::instance().clear(); }

/// Bytes that living tensors hold, slack of their size classes included, and the most they held
/// since the last reset.
inline std::size_t memory_in_use() noexcept { return detail::BufferCache::instance().in_use(); }
inline std::size_t peak_memory() noexcept { return detail::BufferCache::instance().peak(); }
inline void reset_peak_memory() noexcept { detail::BufferCache::instance().reset_peak(); }

}  // namespace fenestra

// A line that rewrites itself, on a terminal only; gone when the object is.
#pragma once

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <string>

namespace fenestra::cli {

class Progress {
 public:
  Progress() : shown_(isatty(STDERR_FILENO) == 1) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) {
      std::cerr << "\r\x1b[K" << std::flush;
    }
  }
  /// `text()` is asked for only where it will be seen.
  template <class Text>
  void show(const Text& text) {
    const auto now = Clock::now();
    if (!shown_ || now < next_) {
      return;
    }
    next_ = now + std::chrono::milliseconds(50);
    std::cerr << "\r\x1b[K" << text() << std::flush;
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool shown_;
  Clock::time_point next_;
};

}  // namespace fenestra::cli

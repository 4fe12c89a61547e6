// Ctrl-C and SIGTERM as a question that long work asks between two of its steps.
#pragma once

#include <atomic>
#include <csignal>

namespace fenestra::cli {

/// While one exists, the first interrupt only sets `interrupted`; the second one ends the program,
/// as if nobody had listened. One at a time.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  struct sigaction interrupt_before_ = {};
  struct sigaction terminate_before_ = {};
};

/// Whether there was an interrupt since the last watch began.
const std::atomic<bool>& interrupted();

}  // namespace fenestra::cli

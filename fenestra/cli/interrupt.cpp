// The handler, and the flag that it sets.
#include <fenestra/cli/interrupt.hpp>

namespace fenestra::cli {

namespace {

std::atomic<bool> flag = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

}  // namespace

InterruptWatch::InterruptWatch() {
  flag = false;
  struct sigaction action = {};
  action.sa_handler = [](int) { flag = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, &interrupt_before_);
  sigaction(SIGTERM, &action, &terminate_before_);
}

InterruptWatch::~InterruptWatch() {
  sigaction(SIGINT, &interrupt_before_, nullptr);
  sigaction(SIGTERM, &terminate_before_, nullptr);
}

const std::atomic<bool>& interrupted() { return flag; }

}  // namespace fenestra::cli

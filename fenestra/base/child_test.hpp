// A test's child: forked, given a while, and never waited for longer. Not installed.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <thread>

namespace fenestra {

/// The thread sanitizer does not follow threads of a child that was forked beside threads.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kChildrenMayHaveThreads = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kChildrenMayHaveThreads = false;
#else
inline constexpr bool kChildrenMayHaveThreads = true;
#endif
#else
inline constexpr bool kChildrenMayHaveThreads = true;
#endif

/// What a child came to.
enum class Outcome { held, failed, threw, died, hung };

/// Forks; the child ends with what `f` gives, without running anybody's destructors.
template <class F>
Outcome outcome_in_child(const F& f) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      _exit(f() ? 0 : 1);
    } catch (const std::exception&) {
      _exit(2);
    }
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return Outcome::hung;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!WIFEXITED(status)) {
    return Outcome::died;
  }
  const int code = WEXITSTATUS(status);
  return code == 0 ? Outcome::held : code == 1 ? Outcome::failed : Outcome::threw;
}

}  // namespace fenestra

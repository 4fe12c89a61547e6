// Kernels are candidates: a name, a condition that accepts a problem or says why not, and a
// function that runs it.
//
// An operator lists its candidates fastest first and the specification last, so nothing is
// unsupported, only slow. The choice can be forced, for tests and for people: FENESTRA_KERNEL in
// the environment, or `ForcedKernel` in a scope; FENESTRA_ISA limits the instruction set.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/base/export.hpp>

#include <span>
#include <string>
#include <string_view>

namespace fenestra::kernels {

/// `refuse` gives the reason why the candidate does not apply, or null where it does; `lacks` only
/// those reasons for which it cannot, where others are that it would be slow. `run` throws
/// std::bad_alloc where there is no memory for its scratch. Names follow
/// <op>_<dtype>_<algorithm>; the instruction set is appended where people read it. A candidate that
/// brings its weights into another form says how many elements that takes (0: none for this
/// problem), and can do it ahead of the runs; the form belongs to the instruction set in use.
template <class Problem, class Arguments>
struct Candidate {
  std::string_view name;
  const char* (*refuse)(const Problem& problem);
  void (*run)(const Problem& problem, const Arguments& arguments);
  Index (*packed_elements)(const Problem& problem) = nullptr;
  void (*pack)(const Problem& problem, const Arguments& arguments) = nullptr;
  const char* (*lacks)(const Problem& problem) = nullptr;

  bool can_run(const Problem& problem) const {
    return (lacks != nullptr ? lacks : refuse)(problem) == nullptr;
  }
};

/// Forbids instruction sets above FENESTRA_ISA, at the first call; a name that is unknown or not
/// available here throws `bad_environment` at every call. Whatever is about to run a kernel calls
/// it.
FENESTRA_API void apply_isa_limit();

/// The forced name, empty where the choice is free. Thread-local setting first, then the
/// environment.
FENESTRA_API std::string_view forced_kernel();

/// What happens where the forced candidate refuses a problem. `run` is for tiles, which take the
/// candidate of the whole: no candidate refuses a part of what it accepts but for the sake of
/// speed. `run_if_able` is for laws: what is slow must be right, too.
enum class IfRefused { fail, choose_freely, run, run_if_able };

/// Whether the forced candidate may be passed over; the environment's may not.
FENESTRA_API IfRefused if_refused() noexcept;

/// Forces a candidate by name in this thread until the scope ends; scopes end in the reverse order
/// in which they began. An operator that has no
/// candidate of that name chooses freely; one whose candidate refuses the problem throws, unless
/// told otherwise.
class FENESTRA_API ForcedKernel {
 public:
  explicit ForcedKernel(std::string_view name, IfRefused if_refused = IfRefused::fail);
  ~ForcedKernel();
  ForcedKernel(const ForcedKernel&) = delete;
  ForcedKernel& operator=(const ForcedKernel&) = delete;

 private:
  std::string name_;
  std::string_view previous_;
  IfRefused previous_if_refused_;
};

namespace detail {
[[noreturn]] FENESTRA_API void throw_refused(std::string_view name, const char* reason);
}  // namespace detail

/// Calls note(candidate, refusal) for every candidate in order; `refusal` is null where it accepts.
template <class Problem, class Arguments, class Note>
void for_each_candidate(std::span<const Candidate<Problem, Arguments>> candidates,
                        const Problem& problem,
                        Note&& note) {
  for (const auto& candidate : candidates) {
    note(candidate, candidate.refuse(problem));
  }
}

/// The first candidate that accepts, or the forced one. The last candidate must accept everything.
template <class Problem, class Arguments>
const Candidate<Problem, Arguments>& choose(
    std::span<const Candidate<Problem, Arguments>> candidates, const Problem& problem) {
  apply_isa_limit();
  if (const std::string_view forced = forced_kernel(); !forced.empty()) {
    for (const auto& candidate : candidates) {
      if (candidate.name != forced) {
        continue;
      }
      const char* reason = candidate.refuse(problem);
      const bool able = if_refused() == IfRefused::run_if_able && candidate.can_run(problem);
      if (reason == nullptr || able || if_refused() == IfRefused::run) {
        return candidate;
      }
      if (if_refused() == IfRefused::fail) {
        detail::throw_refused(candidate.name, reason);
      }
    }
  }
  for (const auto& candidate : candidates) {
    if (candidate.refuse(problem) == nullptr) {
      return candidate;
    }
  }
  return candidates.back();
}

}  // namespace fenestra::kernels

// Which instruction set the kernels run on. Chosen once: the best that the processor offers, and
// none above FENESTRA_ISA where the environment has it. Internal: not installed.
//
// Going down to a lesser set is for tests and for measuring; it holds for the whole process and
// must not overlap with running kernels.
#pragma once

#include <string_view>
#include <vector>

namespace fenestra::kernels {

/// The set in use: "baseline", "avx2" or "avx512" on x86-64. This and what follows throw
/// `bad_environment` where FENESTRA_ISA names a set that is not to be had.
std::string_view isa_name();

/// The sets that are compiled in, that this processor has and that FENESTRA_ISA allows, best first.
std::vector<std::string_view> supported_isas();

/// Uses the named set until the scope ends. A name that is not supported throws `kernel_refused`.
class ScopedIsa {
 public:
  explicit ScopedIsa(std::string_view name);
  ~ScopedIsa();
  ScopedIsa(const ScopedIsa&) = delete;
  ScopedIsa& operator=(const ScopedIsa&) = delete;
};

}  // namespace fenestra::kernels

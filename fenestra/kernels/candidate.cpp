// The forced kernel: per thread, above the environment.
#include <fenestra/kernels/candidate.hpp>

#include <cstdlib>

namespace fenestra::kernels {

namespace {

thread_local std::string forced_here;

const std::string& forced_everywhere() {
  static const std::string name = [] {
    const char* text = std::getenv("FENESTRA_KERNEL");
    return std::string(text != nullptr ? text : "");
  }();
  return name;
}

}  // namespace

std::string_view forced_kernel() noexcept {
  return forced_here.empty() ? forced_everywhere() : forced_here;
}

ForcedKernel::ForcedKernel(std::string_view name) : previous_(forced_here) { forced_here = name; }

ForcedKernel::~ForcedKernel() { forced_here = previous_; }

void detail::throw_refused(std::string_view name, const char* reason) {
  throw Error(ErrorCode::kernel_refused,
              "kernel " + std::string(name) + " is forced but does not apply: " + reason +
                  "\n  fix: force another candidate, or none");
}

}  // namespace fenestra::kernels

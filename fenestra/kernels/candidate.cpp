// The forced kernel: per thread, above the environment.
#include <fenestra/kernels/candidate.hpp>

#include <cstdlib>
#include <utility>

namespace fenestra::kernels {

namespace {

// The name lies in the scope that forces it: a thread_local with a destructor would be registered
// by a call that ends the program where it finds no memory.
constinit thread_local std::string_view forced_here;
constinit thread_local IfRefused if_refused_here = IfRefused::fail;

const std::string& forced_everywhere() {
  static const std::string name = [] {
    const char* text = std::getenv("FENESTRA_KERNEL");
    return std::string(text != nullptr ? text : "");
  }();
  return name;
}

}  // namespace

std::string_view forced_kernel() { return forced_here.empty() ? forced_everywhere() : forced_here; }

IfRefused if_refused() noexcept { return forced_here.empty() ? IfRefused::fail : if_refused_here; }

ForcedKernel::ForcedKernel(std::string_view name, IfRefused if_refused)
    : name_(name),
      previous_(std::exchange(forced_here, name_)),
      previous_if_refused_(std::exchange(if_refused_here, if_refused)) {}

ForcedKernel::~ForcedKernel() {
  forced_here = previous_;
  if_refused_here = previous_if_refused_;
}

void detail::throw_refused(std::string_view name, const char* reason) {
  throw Error(ErrorCode::kernel_refused,
              "kernel " + std::string(name) + " is forced but does not apply: " + reason +
                  "\n  fix: force another candidate, or none");
}

}  // namespace fenestra::kernels

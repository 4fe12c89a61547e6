// Names for Highway's targets, and the choice among them.
#include <fenestra/kernels/isa.hpp>
#include <fenestra/kernels/simd.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/kernels/isa.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <fenestra/base/error.hpp>

#include <cstdint>
#include <string>

HWY_BEFORE_NAMESPACE();
namespace fenestra::kernels {
namespace HWY_NAMESPACE {

std::int64_t current_target() { return HWY_TARGET; }

}  // namespace HWY_NAMESPACE
}  // namespace fenestra::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fenestra::kernels {

HWY_EXPORT(current_target);

namespace {

std::string_view target_name(std::int64_t target) {
  switch (target) {
#if HWY_ARCH_X86
    case HWY_AVX2: return "avx2";
    case HWY_AVX3: return "avx512";
#endif
#if HWY_ARCH_ARM
    case HWY_NEON: return "neon";
#endif
    default: return "baseline";
  }
}

/// Compiled in and offered by the processor. The baseline is always there, whatever is detected.
std::int64_t available_targets() {
  return (hwy::SupportedTargets() & HWY_TARGETS) | HWY_STATIC_TARGET;
}

}  // namespace

std::string_view isa_name() noexcept { return target_name(HWY_DYNAMIC_DISPATCH(current_target)()); }

std::vector<std::string_view> supported_isas() {
  std::vector<std::string_view> names;
  // Lower bits are better targets.
  for (std::int64_t rest = available_targets(); rest != 0; rest &= rest - 1) {
    names.push_back(target_name(rest & -rest));
  }
  return names;
}

ScopedIsa::ScopedIsa(std::string_view name) {
  std::string known;
  for (std::int64_t rest = available_targets(); rest != 0; rest &= rest - 1) {
    const std::int64_t target = rest & -rest;
    if (target_name(target) == name) {
      hwy::SetSupportedTargetsForTest(target);
      return;
    }
    known += (known.empty() ? "" : ", ") + std::string(target_name(target));
  }
  throw Error(ErrorCode::kernel_refused,
              "instruction set \"" + std::string(name) +
                  "\" is not available here\n  fix: one of " + known);
}

ScopedIsa::~ScopedIsa() { hwy::SetSupportedTargetsForTest(0); }

}  // namespace fenestra::kernels
#endif  // HWY_ONCE

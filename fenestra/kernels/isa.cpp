// Names for Highway's targets, and the choice among them.
#include <fenestra/kernels/isa.hpp>
#include <fenestra/kernels/simd.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fenestra/kernels/isa.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <fenestra/base/error.hpp>
#include <fenestra/kernels/candidate.hpp>

#include <cstdint>
#include <cstdlib>
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
std::int64_t detected_targets() {
  return (hwy::SupportedTargets() & HWY_TARGETS) | HWY_STATIC_TARGET;
}

/// The target of that name among `targets`, or 0 and in `known` the names there are.
std::int64_t find_target(std::int64_t targets, std::string_view name, std::string& known) {
  // Lower bits are better targets.
  for (std::int64_t rest = targets; rest != 0; rest &= rest - 1) {
    const std::int64_t target = rest & -rest;
    if (target_name(target) == name) {
      return target;
    }
    known += (known.empty() ? "" : ", ") + std::string(target_name(target));
  }
  return 0;
}

/// Forbids what is better than FENESTRA_ISA; gives what is wrong with it, or nothing.
std::string obey_environment() {
  const char* name = std::getenv("FENESTRA_ISA");
  if (name == nullptr || *name == '\0') {
    return "";
  }
  std::string known;
  const std::int64_t target = find_target(detected_targets(), name, known);
  if (target == 0) {
    return "FENESTRA_ISA: instruction set \"" + std::string(name) +
           "\" is not available here\n  fix: one of " + known + ", or leave it unset";
  }
  hwy::DisableTargets((target - 1) & HWY_TARGETS);
  return "";
}

}  // namespace

void apply_isa_limit() {
  static const std::string fault = obey_environment();
  if (!fault.empty()) {
    throw Error(ErrorCode::bad_environment, fault);
  }
}

std::string_view isa_name() {
  apply_isa_limit();
  return target_name(HWY_DYNAMIC_DISPATCH(current_target)());
}

namespace {

/// Those that FENESTRA_ISA leaves. Detected once: asking the processor is dear in a virtual
/// machine.
std::int64_t available_targets() {
  apply_isa_limit();
  static const std::int64_t targets = detected_targets();
  return targets;
}

}  // namespace

std::vector<std::string_view> supported_isas() {
  std::vector<std::string_view> names;
  for (std::int64_t rest = available_targets(); rest != 0; rest &= rest - 1) {
    names.push_back(target_name(rest & -rest));
  }
  return names;
}

ScopedIsa::ScopedIsa(std::string_view name) {
  std::string known;
  const std::int64_t target = find_target(available_targets(), name, known);
  if (target == 0) {
    throw Error(ErrorCode::kernel_refused,
                "instruction set \"" + std::string(name) +
                    "\" is not available here\n  fix: one of " + known);
  }
  hwy::SetSupportedTargetsForTest(target);
}

ScopedIsa::~ScopedIsa() { hwy::SetSupportedTargetsForTest(0); }

}  // namespace fenestra::kernels
#endif  // HWY_ONCE

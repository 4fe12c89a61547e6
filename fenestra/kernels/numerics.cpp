// The setting behind ScopedNumerics: one per thread.
#include <fenestra/kernels/numerics.hpp>

#include <utility>

namespace fenestra::kernels {

namespace {

thread_local Numerics numerics_here = Numerics::strict;

}  // namespace

Numerics numerics() noexcept { return numerics_here; }

ScopedNumerics::ScopedNumerics(Numerics numerics)
    : previous_(std::exchange(numerics_here, numerics)) {}

ScopedNumerics::~ScopedNumerics() { numerics_here = previous_; }

}  // namespace fenestra::kernels

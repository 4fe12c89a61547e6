// The scalars that have compiled kernels; every other scalar runs on the specification.
#pragma once

#include <concepts>

namespace fenestra {

template <class T>
concept KernelScalar = std::same_as<T, float> || std::same_as<T, double>;

}  // namespace fenestra

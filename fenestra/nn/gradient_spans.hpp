// Clipping of gradients wherever they lie; for those in tensors see gradients.hpp. Compiled in
// gradients.cpp. Not installed.
#pragma once

#include <fenestra/base/error.hpp>
#include <fenestra/engine/kernel_scalar.hpp>

#include <span>
#include <vector>

namespace fenestra::nn::detail {

/// Elements per range, as for the optimisers.
inline constexpr Index kGradientBlock = 16384;

/// The sums of the squares of every block of a gradient, in double.
template <KernelScalar T>
std::vector<double> squares_of_blocks(std::span<const T> gradient);

/// The root of the sum of the squares of all elements, computed in double.
template <KernelScalar T>
double norm_of(std::span<const std::span<T>> gradients);

/// Scales all of them by limit/norm where that is finite and the norm is greater.
template <KernelScalar T>
void limit_norm(std::span<const std::span<T>> gradients, double norm, double limit);

/// Every element into [-limit, limit]; NaN stays.
template <KernelScalar T>
void clamp_elements(std::span<const std::span<T>> gradients, double limit);

}  // namespace fenestra::nn::detail

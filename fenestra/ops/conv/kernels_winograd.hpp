// The convolution by transforms, F(4x4, 3x3) of Winograd: conv_f32_winograd and conv_f64_winograd.
// For 3x3 windows of stride 1 with many channels, under Numerics::fast only: a quarter of the
// multiplications, and a rounding bound of its own (winograd.hpp). Internal: not installed.
#pragma once

#include <fenestra/ops/conv/kernels.hpp>

namespace fenestra::detail {

/// Why the kernel cannot do the problem, or null: two spatial axes, 3x3, stride and dilation 1, one
/// group; both layouts, any padding, any extents.
const char* winograd_lacks(const ConvProblem& problem);

/// Refuses what the kernel lacks, what others do faster, and everything under Numerics::strict.
template <class T>
const char* refuse_conv_winograd(const ConvProblem& problem);

/// Scratch: the transformed data of a part of the batch and the transformed weights of a part of
/// the channels, of at most kDataBytes and kWeightBytes or what one row of tiles and one block of
/// channels need; per thread kProductBytes of products (one row of tiles and one block of channels
/// at least) and the cells of a few rows of tiles. The weight gradient keeps the data twice, for x
/// and for y_bar.
template <class T>
void run_conv_winograd(const ConvProblem& problem, const ConvArguments<T>& arguments) noexcept;

}  // namespace fenestra::detail

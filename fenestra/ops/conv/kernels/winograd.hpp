// The convolution by transforms, F(4x4, 3x3) of Winograd: conv_f32_winograd and conv_f64_winograd.
// For 3x3 windows of stride 1 with many channels, under Numerics::fast only: a quarter of the
// multiplications, and a rounding bound of its own (winograd.hpp). Internal: not installed.
#pragma once

#include <fenestra/ops/conv/candidates.hpp>

namespace fenestra::detail {

/// Why the kernel cannot do the problem, or null: two spatial axes, 3x3, stride and dilation 1, one
/// group; both layouts, any padding, any extents.
const char* winograd_lacks(const ConvProblem& problem);

/// Refuses what the kernel lacks, what others do faster, and everything under Numerics::strict.
const char* refuse_conv_winograd(const ConvProblem& problem);

/// Scratch: 4 MiB of transformed data (a part of the batch) and 4 MiB of transformed weights (a
/// part of the channels), or what one row of tiles and one block of channels need if that is more;
/// in the weight gradient 16 MiB of data, x and y_bar, and 12 MiB of sums. Per thread 384 KiB of
/// products or those of one row of tiles, and the cells that these stand on.
template <class T>
void run_conv_winograd(const ConvProblem& problem, const ConvArguments<T>& arguments);

/// Transformed weights, part after part: four times as many as there are weights.
template <class T>
Index packed_elements_conv_winograd(const ConvProblem& problem);
template <class T>
void pack_conv_winograd(const ConvProblem& problem, const ConvArguments<T>& arguments);

}  // namespace fenestra::detail

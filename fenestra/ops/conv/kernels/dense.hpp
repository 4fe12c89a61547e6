// The convolution with vectors along the target channels: conv_f32_dense and conv_f64_dense,
// forward and input gradient. Internal: not installed. See docs/kernels/dense.md.
#pragma once

#include <fenestra/ops/conv/candidates.hpp>

namespace fenestra::detail {

/// Why the kernel cannot do the problem, or null: forward and input gradient, any layout, rank,
/// stride, dilation, padding, groups.
const char* dense_lacks(const ConvProblem& problem);

/// Refuses what the kernel lacks, and what other candidates do faster.
template <class T>
const char* refuse_conv_dense(const ConvProblem& problem);

/// Scratch: a packed copy of the weights with whole vectors of channels, or of a block of them, and
/// per thread a strip of source rows of at most 512 KiB, or of what one tile of cells needs if that
/// is more, and with channels first the sums of some 128 cells in one block of channels, or of a
/// place of all phases.
template <class T>
void run_conv_dense(const ConvProblem& problem, const ConvArguments<T>& arguments);

/// Weights in blocks of channels, see DenseRow::weights.
template <class T>
Index packed_elements_conv_dense(const ConvProblem& problem);
template <class T>
void pack_conv_dense(const ConvProblem& problem, const ConvArguments<T>& arguments);

}  // namespace fenestra::detail

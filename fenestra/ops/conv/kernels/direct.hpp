// The convolution computed directly on plain channels-first tensors, vectors along the width:
// conv_f32_direct and conv_f64_direct. For few channels, small groups, depthwise and small
// problems, where matrix products and blocked layouts waste their work. Internal: not installed.
#pragma once

#include <fenestra/ops/conv/candidates.hpp>

namespace fenestra::detail {

/// Why the kernel cannot do the problem, or null: channels first, any rank, stride, dilation,
/// padding.
const char* direct_lacks(const ConvProblem& problem);

/// Refuses what the kernel lacks, and what other candidates do faster.
template <class T>
const char* refuse_conv_direct(const ConvProblem& problem);

/// Scratch: a packed copy of the weights, and per thread a strip of source rows of at most
/// kStripBytes, or of the rows that eight target rows need if those are more. The weight gradient
/// keeps twice that, or the rows for as many target rows as a window spans, and a vector of partial
/// sums per weight of kTileChannels channels.
template <class T>
void run_conv_direct(const ConvProblem& problem, const ConvArguments<T>& arguments);

/// Weights in tiles of channels, see ColumnPhase::weights; in both layouts the same.
template <class T>
Index packed_elements_conv_direct(const ConvProblem& problem);
template <class T>
void pack_conv_direct(const ConvProblem& problem, const ConvArguments<T>& arguments);

}  // namespace fenestra::detail

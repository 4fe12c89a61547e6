// The convolution by oneDNN: conv_f32_onednn. Compiled only with FENESTRA_HAVE_ONEDNN; oneDNN's own
// header and conventions stay in kernels_onednn.cpp. Internal: not installed.
#pragma once

#include <fenestra/ops/conv/kernels.hpp>

#include <cstddef>

namespace fenestra::detail {

/// Why oneDNN cannot do the problem, or null.
const char* onednn_lacks(const ConvProblem& problem);

/// Refuses what oneDNN lacks, and what our own kernels do faster.
const char* refuse_conv_onednn(const ConvProblem& problem);

/// Scratch per thread: a blocked copy of the operands, of at most kChunkBytes or one sample (whole
/// batches in the weight gradient), and oneDNN's own scratchpad. Falls back to conv_f32_gemm should
/// oneDNN fail to create what it was asked for.
void run_conv_onednn(const ConvProblem& problem, const ConvArguments<float>& arguments);

/// Operands whose channels lie in blocks; 0 for plain ones.
struct ConvBlocks {
  Index lhs = 0;
  Index out = 0;
  friend bool operator==(const ConvBlocks&, const ConvBlocks&) = default;
};

/// The block that oneDNN would choose for both of them, 0 where it would not use the same one.
Index onednn_block(const ConvProblem& problem);
/// The forward convolution of such operands.
void run_conv_onednn_in_blocks(const ConvProblem& problem,
                               const ConvBlocks& blocks,
                               const ConvArguments<float>& arguments);

/// Geometries kept at most: a few networks of 20 convolutions, three directions each.
inline constexpr std::size_t kOnednnPlans = 256;
/// Geometries whose primitives are kept, for tests.
std::size_t onednn_cached();

}  // namespace fenestra::detail

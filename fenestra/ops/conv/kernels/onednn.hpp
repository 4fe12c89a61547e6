// The convolution by oneDNN: conv_f32_onednn. Compiled only with FENESTRA_HAVE_ONEDNN; oneDNN's own
// header and conventions stay in onednn.cpp. Internal: not installed.
#pragma once

#include <fenestra/ops/conv/candidates.hpp>

#include <cstddef>
#include <string_view>

namespace fenestra::detail {

inline constexpr std::string_view kOnednnName = "conv_f32_onednn";

/// Why oneDNN cannot do the problem, or does it wrongly, or null.
const char* onednn_lacks(const ConvProblem& problem);

/// Refuses what oneDNN lacks, and everything unless it is forced by name: its bits depend on the
/// number of threads.
const char* refuse_conv_onednn(const ConvProblem& problem);

/// Scratch per thread: a blocked copy of the operands, of at most kChunkBytes or one sample (whole
/// batches in the weight gradient), and oneDNN's own scratchpad. Falls back to conv_f32_gemm should
/// oneDNN fail to create what it was asked for.
void run_conv_onednn(const ConvProblem& problem, const ConvArguments<float>& arguments);

/// Geometries kept at most: a few networks of 20 convolutions, three directions each.
inline constexpr std::size_t kOnednnPlans = 256;
/// Geometries whose primitives are kept, for tests.
std::size_t onednn_cached();

}  // namespace fenestra::detail

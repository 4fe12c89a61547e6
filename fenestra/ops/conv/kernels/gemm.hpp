// The convolution as a matrix product over patches that are packed on the fly: conv_f32_gemm and
// conv_f64_gemm. Serves every geometry, both layouts, all three directions. Internal: not
// installed.
#pragma once

#include <fenestra/ops/conv/candidates.hpp>

namespace fenestra::detail {

/// Refuses nothing.
const char* refuse_conv_gemm(const ConvProblem& problem);

/// Scratch per thread: that of kernels::gemm, as much again for staged source rows (at most as many
/// elements as a block of panels has), and one row of zero channels. The input gradient also keeps
/// a packed copy of one group's weights, or a tile of products (64 Ki elements, or 32 per weight of
/// an output channel); the weight gradient what gemm_blocked.hpp says.
template <class T>
void run_conv_gemm(const ConvProblem& problem, const ConvArguments<T>& arguments);

/// Weights as GEMM reads its operands, group by group and, in the input gradient, phase by phase.
template <class T>
Index packed_elements_conv_gemm(const ConvProblem& problem);
template <class T>
void pack_conv_gemm(const ConvProblem& problem, const ConvArguments<T>& arguments);

}  // namespace fenestra::detail

// The weight gradient as outer products, vectors along the output channels: conv_f32_outer and
// conv_f64_outer. Internal: not installed. See docs/kernels/outer.md.
#pragma once

#include <fenestra/ops/conv/candidates.hpp>

namespace fenestra::detail {

/// What the kernel cannot do: the other directions, and sums without terms.
const char* outer_lacks(const ConvProblem& problem);

/// Refuses what the kernel lacks, and what other candidates do faster.
template <class T>
const char* refuse_conv_outer(const ConvProblem& problem);

/// Scratch of the calling thread: parts of y_bar and, where it is copied, of x (each at most 768
/// KiB, or what one row of windows along the first axis sees), three numbers per row of them, a
/// pointer per row of taps and, where there are several parts, once a group's weight gradient. Of
/// every thread: the sums of a task, a panel of 256 places or of one row of taps. Where a weight
/// gradient of at most 48 KiB is shared out by parts, every thread has the part, and the calling
/// one 33 such gradients.
template <class T>
void run_conv_outer(const ConvProblem& problem, const ConvArguments<T>& arguments);

}  // namespace fenestra::detail

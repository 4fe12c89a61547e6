// Convolutions with one channel to a group on channels-first tensors, one plane after another,
// vectors along the width: conv_f32_planes and conv_f64_planes, all three directions. Internal: not
// installed. See docs/kernels/planes.md.
#pragma once

#include <fenestra/ops/conv/candidates.hpp>

namespace fenestra::detail {

/// What the kernel cannot do: other layouts, wider groups, more than two axes, and rows that no
/// cache holds.
template <class T>
const char* planes_lacks(const ConvProblem& problem);

/// Refuses what the kernel lacks, and what other candidates do faster.
template <class T>
const char* refuse_conv_planes(const ConvProblem& problem);

/// Scratch: per thread a sheet of source rows of at most kStripBytes, or of what one row of windows
/// sees; in an input gradient with a stride as many target cells; two numbers per tap. In a weight
/// gradient a vector per tap.
template <class T>
void run_conv_planes(const ConvProblem& problem, const ConvArguments<T>& arguments);

}  // namespace fenestra::detail

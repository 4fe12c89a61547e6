// The candidate of max pooling for planes with short rows. Internal: not installed.
#pragma once

#include <fenestra/ops/max_pool/kernels.hpp>

namespace fenestra::pooling {

template <class T>
const char* refuse_max_planes(const MaxPoolProblem& problem);

template <class T>
void run_max_planes(const MaxPoolProblem& problem, const MaxPoolArguments<T>& args);

}  // namespace fenestra::pooling

// The candidate of average pooling for planes with short rows. Internal: not installed.
#pragma once

#include <fenestra/ops/avg_pool/kernels.hpp>

namespace fenestra::pooling {

template <class T>
const char* refuse_avg_planes(const AvgPoolProblem& problem);

template <class T>
void run_avg_planes(const AvgPoolProblem& problem, const AvgPoolArguments<T>& args);

}  // namespace fenestra::pooling

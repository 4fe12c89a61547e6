// Convolutions of small pictures with vectors along the batch: a lane is a sample. Not a candidate
// but a path of the direct and the dense convolution, which it equals to the bit. Internal: not
// installed.
#pragma once

#include <fenestra/ops/conv/candidates.hpp>

namespace fenestra::detail {

/// Where the bias of a cell is added.
enum class BiasPlace { before_products, behind_products };

/// Samples that a vector has lanes for, where that is faster than vectors along rows or channels; 0
/// where it is not. Asks about one sample only.
template <class T>
Index samples_at_once(const ConvProblem& problem);

/// Computes samples from the first on and gives their number, a multiple of `samples_at_once`. The
/// other samples are left to the caller.
template <class T>
Index run_samples(const ConvProblem& problem, const ConvArguments<T>& arguments, BiasPlace bias);

/// What is left of a problem behind its first `done` samples.
template <class T>
struct RestOfSamples {
  ConvProblem problem;
  ConvArguments<T> arguments;
  RestOfSamples(const ConvProblem& whole, const ConvArguments<T>& all, Index done);
};

}  // namespace fenestra::detail

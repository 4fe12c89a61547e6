// The fast candidates of the convolution family, for float and double. Internal: not installed.
//
// One problem type covers the three contractions of the trilinear form: forward (x, w -> y), input
// gradient (y_bar, w -> x_bar, which is also the transposed convolution) and weight gradient (x,
// y_bar -> w_bar).
#pragma once

#include <fenestra/kernels/candidate.hpp>
#include <fenestra/ops/conv/epilogue.hpp>
#include <fenestra/ops/conv/geometry.hpp>

#include <span>

namespace fenestra {

struct ConvProblem {
  ConvDirection direction = ConvDirection::forward;
  ConvGeometry geometry;
};

/// What is done to a run of results as soon as their sums are complete, by the thread that has
/// computed them and still has them in its cache.
template <class T>
class ConvFinish {
 public:
  /// `residual` is of the result's shape, and not read where the epilogue has no sum.
  ConvFinish(const ConvEpilogue& epilogue, const T* residual, const T* out)
      : epilogue_(epilogue), residual_(residual), out_(out) {}

  /// Elements [first, first + count) of the result, each exactly once.
  void run(T* first, Index count) const;

 private:
  const ConvEpilogue& epilogue_;
  const T* residual_;
  const T* out_;
};

/// Dense tensors in the geometry's layout. `out` is overwritten whole; it need not be initialised.
template <class T>
struct ConvArguments {
  const T* lhs = nullptr;  ///< x, y_bar, x
  const T* rhs = nullptr;  ///< w, w, y_bar
  const T* bias =
      nullptr;       ///< per channel of `out`, may be null; always null for the weight gradient
  T* out = nullptr;  ///< y, x_bar, w_bar; in `ConvCandidate::pack` the packed form of `rhs`
  const T* packed = nullptr;              ///< the packed form of `rhs`, or null
  const ConvFinish<T>* finish = nullptr;  ///< of the forward direction only, or null
};

/// Multiply-adds of one sample, in any direction. What candidates refuse by, never that of the
/// batch: a sample has the same bits in whatever batch it sits. 0 without samples, where products
/// of the other sizes may not fit.
constexpr Index sample_work(const ConvGeometry& g) {
  return g.batch == 0 ? 0 : g.multiply_adds() / g.batch;
}

template <class T>
using ConvCandidate = kernels::Candidate<ConvProblem, ConvArguments<T>>;

/// Fastest first, the specification last. T is float or double.
template <class T>
std::span<const ConvCandidate<T>> conv_candidates();

}  // namespace fenestra

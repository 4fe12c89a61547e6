// The elementwise functions on runs of numbers, a vector at a time. Internal: not installed.
// runs.cpp cuts tensors into such runs; loops.cpp has them for every instruction set. A number
// has the same result wherever it stands in a run.
#pragma once

#include <fenestra/ops/elementwise/spec.hpp>

namespace fenestra::detail {

/// An operand of a run: the next number is `step` further, 0 (all are one) or 1.
template <class T>
struct RunOperand {
  const T* data;
  Index step;
};

/// `out` may be the memory of an operand.
template <class T>
struct ElementwiseLoops {
  void (*unary)(const UnaryCall& call, const T* x, T* out, Index n);
  void (*gate)(const GateCall& call, const T* u, const T* x, T* out, Index n);
  void (*binary)(BinaryFunction f, RunOperand<T> a, RunOperand<T> b, T* out, Index n);
};

/// For the instruction set in use.
template <class T>
const ElementwiseLoops<T>& elementwise_loops();
template <>
const ElementwiseLoops<float>& elementwise_loops();
template <>
const ElementwiseLoops<double>& elementwise_loops();

}  // namespace fenestra::detail

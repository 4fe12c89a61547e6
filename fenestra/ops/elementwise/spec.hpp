// Elementwise evaluation on tensors: the plain loop for any scalar, compiled loops for float and
// double.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/ops/elementwise/broadcast.hpp>
#include <fenestra/ops/elementwise/functions.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <limits>

namespace fenestra {

/// u where `low < x < high` (closed: <=), u * outside elsewhere (exactly 0 for outside = 0, even if
/// u is infinite); NaN counts as inside. The derivative of relu, clip and their like, and linear in
/// u.
struct GateCall {
  double low = 0;
  double high = 0;
  double outside = 0;
  bool closed = false;
  friend constexpr bool operator==(const GateCall&, const GateCall&) = default;
};

namespace spec {

/// The bounds of a call in T. An infinite one stands for "no bound", which an exact scalar cannot
/// hold.
template <OrderedScalar T>
struct GateBounds {
  explicit GateBounds(const GateCall& call)
      : has_low(call.low > -std::numeric_limits<double>::infinity()),
        has_high(call.high < std::numeric_limits<double>::infinity()),
        low(has_low ? from_double<T>(call.low) : T(0)),
        high(has_high ? from_double<T>(call.high) : T(0)),
        outside(from_double<T>(call.outside)) {}
  bool has_low;
  bool has_high;
  T low;
  T high;
  T outside;
};

template <OrderedScalar T>
T gate(const GateCall& call, const GateBounds<T>& bounds, const T& u, const T& x) {
  const auto& [has_low, has_high, low, high, outside] = bounds;
  const bool below = has_low && (call.closed ? x < low : !(low < x) && !is_nan(x));
  const bool above = has_high && (call.closed ? high < x : !(x < high) && !is_nan(x));
  if (!below && !above) {
    return u;
  }
  return call.outside == 0 ? T(0) : T(outside * u);
}

}  // namespace spec

// Compiled for float and double in kernels/runs.cpp; `out` has n elements, or the broadcast shape.
template <KernelScalar T>
FENESTRA_API void unary_kernel(const UnaryCall& call, const T* x, T* out, Index n);
template <KernelScalar T>
FENESTRA_API void gate_kernel(const GateCall& call, const T* u, const T* x, T* out, Index n);
template <KernelScalar T>
FENESTRA_API void binary_kernel(
    BinaryFunction f, const T* a, const T* b, T* out, const BroadcastLoop<2>& loop);

// `out` may be the memory of any operand that has the result's shape: every element is read before
// it is written.

template <class T>
void evaluate_unary(const UnaryCall& call, const Tensor<T>& x, T* out) {
  if constexpr (KernelScalar<T>) {
    unary_kernel(call, x.data(), out, x.size());
  } else {
    for (Index i = 0; i < x.size(); ++i) {
      out[i] = spec::unary(call, x[i]);
    }
  }
}

template <class T>
void evaluate_gate(const GateCall& call, const Tensor<T>& u, const Tensor<T>& x, T* out) {
  if constexpr (KernelScalar<T>) {
    gate_kernel(call, u.data(), x.data(), out, x.size());
  } else {
    const spec::GateBounds<T> bounds(call);
    for (Index i = 0; i < x.size(); ++i) {
      out[i] = spec::gate(call, bounds, u[i], x[i]);
    }
  }
}

template <class T>
void evaluate_binary(
    BinaryFunction f, const Tensor<T>& a, const Tensor<T>& b, const Shape& shape, T* out) {
  if (shape.elements().value_or(0) == 0) {
    return;
  }
  const BroadcastLoop<2> loop(shape, {a.shape(), b.shape()});
  if constexpr (KernelScalar<T>) {
    binary_kernel(f, a.data(), b.data(), out, loop);
  } else {
    const Index n = loop.inner();
    for (Index run = 0; run < loop.outer(); ++run) {
      const T* from_a = a.data() + loop.offset(0, run);
      const T* from_b = b.data() + loop.offset(1, run);
      for (Index i = 0; i < n; ++i) {
        out[run * n + i] =
            spec::binary(f, from_a[i * loop.inner_step(0)], from_b[i * loop.inner_step(1)]);
      }
    }
  }
}

}  // namespace fenestra

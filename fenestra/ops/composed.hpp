// Derivatives of a primitive that is also written as a composition of others.
//
// A fused primitive computes in few passes what `compose<V>` says in many. Where its own derivative
// is not worth a fused rule (second order, forward mode), differentiating the composition on a tape
// or on jets over the same value type gives it, and stays differentiable itself.
#pragma once

#include <fenestra/ops/apply.hpp>

#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace fenestra {

namespace detail {

/// The local tape must record although the caller's sweep may run in a `NoGrad` scope.
class Recording {
 public:
  Recording() : depth_(std::exchange(no_grad_depth, 0)) {}
  ~Recording() { no_grad_depth = depth_; }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  int depth_;
};

}  // namespace detail

/// The cotangent of input `i` of P::compose<V>(in, data), empty where the result does not depend on
/// it. All inputs must have been saved.
template <class P, Value V>
std::optional<V> composed_vjp(const P& primitive, int i, const Saved<V>& saved, const V& y_bar) {
  const detail::Recording recording;
  BasicTape<V> tape;
  std::vector<Var<V>> in;
  for (int j = 0; j < static_cast<int>(saved.in.size()); ++j) {
    in.push_back(j == i ? tape.parameter(saved[j]) : Var<V>(saved[j]));
  }
  const Var<V> y = primitive.template compose<Var<V>>(in, saved.data);
  if (!y.requires_grad()) {
    return std::nullopt;
  }
  return tape.backward(Seed<V>{y, y_bar})[in[static_cast<std::size_t>(i)]];
}

/// The tangent of P::compose<V>(in, data).
template <class P, Value V>
std::optional<V> composed_jvp(const P& primitive,
                              const Saved<V>& saved,
                              std::span<const std::optional<V>> dots) {
  std::vector<Jet<V>> in;
  for (std::size_t j = 0; j < dots.size(); ++j) {
    in.emplace_back(saved[static_cast<int>(j)], dots[j]);
  }
  return primitive.template compose<Jet<V>>(in, saved.data).tangent();
}

}  // namespace fenestra

// Derivatives of a primitive that is also written as a composition of others.
//
// A fused primitive computes in few passes what `compose<V>` says in many. Where its own derivative
// is not worth a fused rule (second order, forward mode), differentiating the composition on a
// level of its own gives it, and stays differentiable itself.
#pragma once

#include <fenestra/engine/apply.hpp>
#include <fenestra/engine/tape.hpp>

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
template <class P, class T>
std::optional<Value<T>> composed_vjp(const P& primitive,
                                     int i,
                                     const Saved<Value<T>>& saved,
                                     const Value<T>& y_bar) {
  const detail::Recording recording;
  Tape<T> tape;
  std::vector<Value<T>> in;
  for (int j = 0; j < static_cast<int>(saved.in.size()); ++j) {
    in.push_back(j == i ? tape.parameter(saved[j]) : saved[j]);
  }
  const Value<T> y = primitive.template compose<Value<T>>(in, saved.data);
  if (!tape.owns(y)) {
    return std::nullopt;
  }
  return tape.backward(Seed<T>{y, y_bar})[in[static_cast<std::size_t>(i)]];
}

/// The tangent of P::compose<V>(in, data).
template <class P, class T>
std::optional<Value<T>> composed_jvp(const P& primitive,
                                     const Saved<Value<T>>& saved,
                                     std::span<const std::optional<Value<T>>> dots) {
  const Level level = new_level();
  std::vector<Value<T>> in;
  for (std::size_t j = 0; j < dots.size(); ++j) {
    in.emplace_back(level, detail::Jet<Value<T>>(saved[static_cast<int>(j)], dots[j]));
  }
  return primitive.template compose<Value<T>>(in, saved.data)
      .template on<detail::Jet<Value<T>>>(level)
      .tangent();
}

}  // namespace fenestra

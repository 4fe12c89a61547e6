// Primitives that are also written as a composition of others, and their derivatives.
//
// A fused primitive computes in few passes what `compose<V>` says in many. Where its own derivative
// is not worth a fused rule (second order, forward mode), differentiating the composition on a
// level of its own gives it, and stays differentiable itself.
#pragma once

#include <fenestra/engine/apply.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/primitive_base.hpp>
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

/// Base of a primitive that says compose<V>(in, data), and run_kernel<T>(in, data, out) for float
/// and double; derivatives that it does not state are those of the composition.
template <class P>
struct ComposedPrimitive : PrimitiveBase<P> {
  template <class T>
  void run(std::span<const Tensor<T>> in,
           std::span<const Selection> data,
           T* out,
           const SelectionBuffer&) const {
    if (self().result_shape(in[0].shape()).elements().value_or(0) == 0) {
      return;
    }
    if constexpr (KernelScalar<T>) {
      self().template run_kernel<T>(in, data, out);
    } else {
      store(self().template compose<Tensor<T>>({in.begin(), in.end()}, {data.begin(), data.end()}),
            out);
    }
  }
  template <class V>
  std::optional<V> vjp(int i, const Saved<V>& saved, const V& y_bar) const {
    return composed_vjp(self(), i, saved, y_bar);
  }
  template <class V>
  std::optional<V> jvp(const Saved<V>& saved, std::span<const std::optional<V>> dots) const {
    return composed_jvp(self(), saved, dots);
  }
  static constexpr bool needs(int, int what) { return what != kOutput; }
  friend constexpr bool operator==(const ComposedPrimitive&, const ComposedPrimitive&) = default;

 private:
  constexpr const P& self() const { return static_cast<const P&>(*this); }
};

}  // namespace fenestra

// A descriptor's value and derivatives taken from the engine: from one call on any value type.
//
// Operators whose rules are composed of others (the glue of a network) have no loops of their own
// to specify a derivative; their descriptor derives from this and the laws test the rules
// themselves, in exact scalars. Operators with a specification of their own use it to compare the
// two.
#pragma once

#include <fenestra/engine/apply.hpp>
#include <fenestra/engine/tape.hpp>
#include <fenestra/ops/operator.hpp>

#include <optional>
#include <vector>

namespace fenestra {

/// The derivatives of `Op::call<V>(g, values, data)` by tape and by jets.
template <class Op>
struct Engine {
  template <class T, class Geometry>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    return Op::template call<Tensor<T>>(g, in.values, in.data);
  }
  template <class T, class Geometry>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    Tape<T> tape;
    std::vector<Value<T>> values;
    for (const Tensor<T>& value : in.values) {
      values.push_back(tape.parameter(value));
    }
    const Value<T> y = Op::template call<Value<T>>(g, values, in.data);
    std::vector<Tensor<T>> bars;
    if (!y.requires_grad()) {  // an operator may return a constant, e.g. of an empty tensor
      for (const Tensor<T>& value : in.values) {
        bars.push_back(zeros_like(value));
      }
      return bars;
    }
    const auto grads = tape.backward(Seed<T>{y, y_bar});
    for (const auto& value : values) {
      bars.push_back(grads[value]);
    }
    return bars;
  }
  template <class T, class Geometry>
  static Tensor<T> jvp(const Geometry& g, const Inputs<T>& in, const std::vector<Tensor<T>>& dots) {
    using Jet = typename Value<T>::Jet;
    const Level level = new_level();
    std::vector<Value<T>> values;
    for (std::size_t i = 0; i < in.values.size(); ++i) {
      values.emplace_back(level, Jet(in.values[i], Value<T>(dots[i])));
    }
    return Op::template call<Value<T>>(g, values, in.data)
        .template on<Jet>(level)
        .tangent_or_zeros();
  }
};

/// Base of descriptors that have no other definition of their derivatives.
template <class Op>
struct EngineOperator {
  template <class T, class Geometry>
  static Tensor<T> forward(const Geometry& g, const Inputs<T>& in) {
    return Engine<Op>::template forward<T>(g, in);
  }
  template <class T, class Geometry>
  static std::vector<Tensor<T>> vjp(const Geometry& g,
                                    const Inputs<T>& in,
                                    const Tensor<T>& y_bar) {
    return Engine<Op>::template vjp<T>(g, in, y_bar);
  }
  template <class T, class Geometry>
  static Tensor<T> jvp(const Geometry& g, const Inputs<T>& in, const std::vector<Tensor<T>>& dots) {
    return Engine<Op>::template jvp<T>(g, in, dots);
  }
};

}  // namespace fenestra

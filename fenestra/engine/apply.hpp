// apply: runs a primitive on values of any type; and the contract of a primitive.
//
// A primitive is a small comparable struct (geometry, options) with
// - name: what tapes, plans and messages call it
// - result_shape(x): the shape of the result, x being that of the first input
// - run<T>(in, data, out): values on tensors, into memory it is given and overwrites whole
// - or, where derivatives need to know what the forward pass chose, workspace<T>(): form and shape
//   of what it leaves, and run<T>(in, data, out, buffer), the buffer empty where nobody asked
// - or, where the result is the first input under another shape, aliases_input = true and no run
// - vjp<V>(i, saved, y_bar): cotangent of input i, written with operators on V; may be a
//   std::optional<V>, empty for zero. Where the cotangents share work,
//   vjp_all<V>(saved, y_bar, needed, bars) fills them together instead
// - jvp<V>(saved, dots): tangent of the result, written with operators on V; an empty dot is zero
// - needs(i, what): whether the cotangent of input i reads input `what` (or kOutput)
//
// V is Value<T>. Since vjp and jvp are made of operators on the same type, every order and mixture
// of derivatives follows. Here is only what callers need; how a primitive runs is in rules.hpp.
#pragma once

#include <fenestra/base/export.hpp>
#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/engine/value.hpp>
#include <fenestra/engine/value_traits.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace fenestra {

/// Stands for the result in `needs`.
inline constexpr int kOutput = -1;

/// What a derivative rule may look at. Inputs and output are present where `needs` asked for them.
template <AnyValue V>
struct Saved {
  std::vector<std::optional<V>> in;
  std::optional<V> y;
  IndicesOf<V> workspace;          ///< left by the forward pass
  std::vector<IndicesOf<V>> data;  ///< integer inputs

  const V& operator[](int i) const { return *in[static_cast<std::size_t>(i)]; }
};

template <AnyValue V>
struct Applied {
  V y;
  IndicesOf<V> workspace;
};

/// y = scale * x + shift, a number of each per channel.
template <AnyValue V>
struct ChannelMap {
  V scale;
  V shift;
};

/// A primitive's name, by its attributes where it says so.
template <class P>
std::string_view name_of(const P& primitive) {
  if constexpr (requires { primitive.display_name(); }) {
    return primitive.display_name();
  } else {
    return P::name;
  }
}

/// True where the result is the first input's elements under another shape.
template <class P>
constexpr bool aliases_input() {
  if constexpr (requires { P::aliases_input; }) {
    return P::aliases_input;
  } else {
    return false;
  }
}

/// True where the forward pass can leave a workspace.
template <class P, class T>
constexpr bool leaves_workspace() {
  return requires(const P& p) { p.template workspace<T>(); };
}

/// Moves what a specification computed to where it belongs.
template <class T>
void store(Tensor<T> result, T* out) {
  const Index n = result.size();
  std::move(result.mutable_data(), result.mutable_data() + n, out);
}

// How a primitive runs: on tensors, on values, and as a node of a graph. `keep` asks for the
// workspace. Compiled in the library for float and double, for each primitive by
// FENESTRA_COMPILE_RULES (compile_rules.hpp); for other scalars <fenestra/rules.hpp> brings it.

template <class P, KernelScalar T>
FENESTRA_API Applied<Tensor<T>> apply_all(const P& primitive,
                                          std::span<const Tensor<T>> in,
                                          std::span<const Selection> data,
                                          bool keep);
template <class P, KernelScalar T>
FENESTRA_API Applied<Value<T>> apply_all(const P& primitive,
                                         std::span<const Value<T>> in,
                                         std::span<const Indices> data,
                                         bool keep);
template <class P, KernelScalar T>
FENESTRA_API Applied<graph::Value<T>> apply_all(const P& primitive,
                                                std::span<const graph::Value<T>> in,
                                                std::span<const graph::Data> data,
                                                bool keep);
template <class P, class T>
  requires(!KernelScalar<T>)
Applied<Tensor<T>> apply_all(const P& primitive,
                             std::span<const Tensor<T>> in,
                             std::span<const Selection> data,
                             bool keep);
template <class P, class T>
  requires(!KernelScalar<T>)
Applied<Value<T>> apply_all(const P& primitive,
                            std::span<const Value<T>> in,
                            std::span<const Indices> data,
                            bool keep);

/// The result of a primitive on values of one type.
template <class P, AnyValue V>
constexpr V apply(const P& primitive,
                  std::initializer_list<V> in,
                  std::initializer_list<IndicesOf<V>> data = {}) {
  return apply_all(primitive,
                   std::span<const V>(in.begin(), in.size()),
                   std::span<const IndicesOf<V>>(data.begin(), data.size()),
                   false)
      .y;
}

/// The same for one input, which is not copied.
template <class P, AnyValue V>
constexpr V apply(const P& primitive, const V& x) {
  return apply_all(primitive, std::span<const V>(&x, 1), std::span<const IndicesOf<V>>(), false).y;
}

/// The sum of the terms that are there; derivative rules collect their parts in it.
template <AnyValue V>
class OptionalSum {
 public:
  void add_term(V term) {
    if (sum_) {
      accumulate(*sum_, term);
    } else {
      sum_ = std::move(term);
    }
  }
  std::optional<V> take() { return std::move(sum_); }

 private:
  std::optional<V> sum_;
};

}  // namespace fenestra

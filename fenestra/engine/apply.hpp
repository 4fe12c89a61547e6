// apply: runs a primitive on values of any type. What a primitive is says PrimitiveBase
// (primitive_base.hpp). Here is only what callers need; how a primitive runs is in rules.hpp.
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

// What operators ask of the types they work on, and how such types mix.
//
// There are few: plain tensors, Value<T> (value.hpp), which is everything that can be computed
// with, and handles of a graph. An operator is written once, for all of them. A tensor among values
// is a constant.
#pragma once

#include <fenestra/engine/kernel_scalar.hpp>
#include <fenestra/tensor/selection.hpp>
#include <fenestra/tensor/tensor.hpp>

#include <concepts>
#include <type_traits>

namespace fenestra {

/// What a value type tells about itself.
template <class V>
struct ValueTraits;

template <class T>
struct ValueTraits<Tensor<T>> {
  using Scalar = T;                           ///< of the tensors at the bottom
  using Indices = Selection;                  ///< integer data that goes with values of this type
  static constexpr int depth = 0;             ///< of two types the deeper one takes in the other
  static constexpr bool has_elements = true;  ///< that can be looked at now
  static constexpr bool is_compiled = KernelScalar<T>;  ///< its operators are in the library
  static const Tensor<T>& bottom(const Tensor<T>& value) { return value; }
};

template <class V>
concept AnyValue = requires(const V& v) {
  typename ValueTraits<V>::Scalar;
  { v.shape() } -> std::convertible_to<Shape>;
};

/// A value whose operators are compiled in the library: callers see declarations
/// (`<operator>/call.hpp`) and no more. For other values the same functions are templates, in
/// <fenestra/rules.hpp>.
template <class V>
concept CompiledValue = AnyValue<V> && ValueTraits<V>::is_compiled;

template <AnyValue V>
using IndicesOf = typename ValueTraits<V>::Indices;

template <AnyValue V>
using ScalarOf = typename ValueTraits<V>::Scalar;

namespace detail {

template <class A, class... Rest>
struct CommonValueOf {
  using type = A;
};
template <class A, class B, class... Rest>
struct CommonValueOf<A, B, Rest...> {
  using deeper = std::conditional_t<(ValueTraits<A>::depth >= ValueTraits<B>::depth), A, B>;
  static_assert(
      std::convertible_to<const A&, deeper> && std::convertible_to<const B&, deeper>,
      "fenestra: the arguments have different scalars, or mix values with handles of a graph");
  using type = typename CommonValueOf<deeper, Rest...>::type;
};

}  // namespace detail

/// The value type of an operator's result: the deepest of its arguments' types.
template <AnyValue... Vs>
using CommonValue = typename detail::CommonValueOf<Vs...>::type;

/// Whether `bottom` can be asked now; types that know it only at run time bring their own.
template <AnyValue V>
bool has_elements(const V&) {
  return ValueTraits<V>::has_elements;
}

/// The tensor at the bottom of all levels, for looking at.
template <AnyValue V>
  requires(ValueTraits<V>::has_elements)
const Tensor<ScalarOf<V>>& bottom(const V& value) {
  return ValueTraits<V>::bottom(value);
}

// What a tape asks of a value, for tensors. Other value types bring their own.

template <class T>
Tensor<T> zeros_like(const Tensor<T>& value) {
  return Tensor<T>(value.shape());
}

template <class T>
Tensor<T> ones_like(const Tensor<T>& value) {
  return Tensor<T>(value.shape(), T(1));
}

/// sum += term
template <class T>
void accumulate(Tensor<T>& sum, const Tensor<T>& term) {
  T* out = sum.mutable_data();
  const T* in = term.data();
  const Index n = sum.size();
  for (Index i = 0; i < n; ++i) {
    out[i] = out[i] + in[i];
  }
}

}  // namespace fenestra

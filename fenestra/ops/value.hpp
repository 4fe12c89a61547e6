// Value types and how they mix: tensors, tape variables over values, jets over values.
//
// An operator is written once, for any value type. Where arguments are of different levels (a
// tensor of weights and a variable of inputs), the outer ones are constants of the innermost level;
// `CommonValue` finds that level.
#pragma once

#include <fenestra/tape/jet.hpp>
#include <fenestra/tape/tape.hpp>
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
  using Scalar = T;           ///< of the tensors at the bottom
  using Indices = Selection;  ///< integer data that goes with values of this type
  static constexpr int depth = 0;
  static constexpr bool has_elements = true;  ///< that can be looked at now
  static const Tensor<T>& bottom(const Tensor<T>& value) { return value; }
};

template <class V>
struct ValueTraits<Var<V>> {
  using Scalar = typename ValueTraits<V>::Scalar;
  using Indices = typename ValueTraits<V>::Indices;
  static constexpr int depth = ValueTraits<V>::depth + 1;
  static constexpr bool has_elements = ValueTraits<V>::has_elements;
  static decltype(auto) bottom(const Var<V>& value) {
    return ValueTraits<V>::bottom(value.value());
  }
};

template <class V>
struct ValueTraits<Jet<V>> {
  using Scalar = typename ValueTraits<V>::Scalar;
  using Indices = typename ValueTraits<V>::Indices;
  static constexpr int depth = ValueTraits<V>::depth + 1;
  static constexpr bool has_elements = ValueTraits<V>::has_elements;
  static decltype(auto) bottom(const Jet<V>& value) {
    return ValueTraits<V>::bottom(value.primal());
  }
};

template <class V>
concept Value = requires(const V& v) {
  typename ValueTraits<V>::Scalar;
  { v.shape() } -> std::convertible_to<Shape>;
};

template <Value V>
using IndicesOf = typename ValueTraits<V>::Indices;

template <Value V>
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
      "fenestra: the arguments are variables of unrelated levels, or of different scalars");
  using type = typename CommonValueOf<deeper, Rest...>::type;
};

}  // namespace detail

/// The value type of an operator's result: the deepest of its arguments' types.
template <Value... Vs>
using CommonValue = typename detail::CommonValueOf<Vs...>::type;

/// Whether `bottom` can be asked now; types that know it only at run time bring their own.
template <Value V>
bool has_elements(const V&) {
  return ValueTraits<V>::has_elements;
}

/// The tensor at the bottom of all levels, for looking at.
template <Value V>
  requires(ValueTraits<V>::has_elements)
const Tensor<ScalarOf<V>>& bottom(const V& value) {
  return ValueTraits<V>::bottom(value);
}

}  // namespace fenestra

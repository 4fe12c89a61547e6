// Jet<V>: a value and its tangent, the forward-mode counterpart of a tape variable.
//
// A value type like any other, so jets of jets are second derivatives and a tape over jets is
// forward over reverse. An absent tangent is zero, and costs nothing.
#pragma once

#include <fenestra/tape/tape.hpp>
#include <fenestra/tensor/shape.hpp>

#include <concepts>
#include <optional>
#include <utility>

namespace fenestra {

template <class V>
class Jet {
 public:
  using Value = V;

  /// A constant: tangent zero.
  Jet(V primal) : primal_(std::move(primal)) {}
  template <class U>
    requires(!std::same_as<U, V> && !std::same_as<U, Jet> && std::convertible_to<const U&, V>)
  Jet(const U& primal) : primal_(primal) {}
  Jet(V primal, std::optional<V> tangent)
      : primal_(std::move(primal)), tangent_(std::move(tangent)) {}

  const V& primal() const { return primal_; }
  /// Empty where it is zero.
  const std::optional<V>& tangent() const { return tangent_; }
  V tangent_or_zeros() const { return tangent_ ? *tangent_ : zeros_like(primal_); }
  const Shape& shape() const { return primal_.shape(); }

 private:
  V primal_;
  std::optional<V> tangent_;
};

template <class V>
Jet<V> zeros_like(const Jet<V>& value) {
  return Jet<V>(zeros_like(value.primal()));
}

template <class V>
Jet<V> ones_like(const Jet<V>& value) {
  return Jet<V>(ones_like(value.primal()));
}

template <class V>
void accumulate(Jet<V>& sum, const Jet<V>& term) {
  sum = add(sum, term);
}

}  // namespace fenestra

// Exact: a double that runs on the specification, never on a kernel.
//
// Where data are small integers every sum of products is one too, and a double holds it: what the
// loops of a specification compute with this scalar is the exact result, in the time of plain
// loops. A quotient rounds to the nearest double; rounded once more, to float, it is the nearest
// float of a quotient of two integers below 2^24, since 53 >= 2 * 24 + 1.
#pragma once

#include <fenestra/spec/scalar.hpp>

#include <concepts>

namespace fenestra::check {

struct Exact {
  double value = 0;

  constexpr Exact() = default;
  template <std::same_as<int> I>
  constexpr Exact(I n) : value(n) {}
  constexpr explicit Exact(double x) : value(x) {}

  friend constexpr Exact operator+(Exact a, Exact b) { return Exact(a.value + b.value); }
  friend constexpr Exact operator-(Exact a, Exact b) { return Exact(a.value - b.value); }
  friend constexpr Exact operator*(Exact a, Exact b) { return Exact(a.value * b.value); }
  friend constexpr Exact operator/(Exact a, Exact b) { return Exact(a.value / b.value); }
  friend constexpr Exact operator-(Exact a) { return Exact(-a.value); }
  friend constexpr bool operator==(Exact a, Exact b) { return a.value == b.value; }
  friend constexpr bool operator<(Exact a, Exact b) { return a.value < b.value; }
  friend constexpr bool operator>(Exact a, Exact b) { return a.value > b.value; }
  friend constexpr bool operator<=(Exact a, Exact b) { return a.value <= b.value; }
  friend constexpr bool operator>=(Exact a, Exact b) { return a.value >= b.value; }
};

}  // namespace fenestra::check

template <>
struct fenestra::ScalarTraits<fenestra::check::Exact>
    : fenestra::DefaultScalarTraits<fenestra::check::Exact> {
  using Exact = fenestra::check::Exact;
  static constexpr Exact from_index(Index n) { return Exact(static_cast<double>(n)); }
};

// Overflow-checked arithmetic on sizes, usable in constant expressions.
//
// `Checked` is a size that remembers whether any step on the way to it overflowed: formulas stay
// readable and the question is asked once, at the end.
#pragma once

#include <fenestra/base/error.hpp>

#include <limits>

namespace fenestra {

/// A size together with "has not overflowed". Every operation on an overflowed value is overflowed.
class Checked {
 public:
  constexpr Checked(Index value)
      : value_(value) {}  // implicit: formulas mix plain and checked sizes

  constexpr bool ok() const { return ok_; }
  /// The value; 0 when some step overflowed.
  constexpr Index value() const { return ok_ ? value_ : 0; }

  friend constexpr Checked operator+(Checked a, Checked b) {
    Checked r(0);
    r.ok_ = !__builtin_add_overflow(a.value_, b.value_, &r.value_) && a.ok_ && b.ok_;
    return r;
  }
  friend constexpr Checked operator-(Checked a, Checked b) {
    Checked r(0);
    r.ok_ = !__builtin_sub_overflow(a.value_, b.value_, &r.value_) && a.ok_ && b.ok_;
    return r;
  }
  friend constexpr Checked operator*(Checked a, Checked b) {
    Checked r(0);
    r.ok_ = !__builtin_mul_overflow(a.value_, b.value_, &r.value_) && a.ok_ && b.ok_;
    return r;
  }

 private:
  Index value_;
  bool ok_ = true;
};

/// Floor of a / b for b > 0; C++ division truncates towards zero, extents need the floor.
constexpr Index floor_div(Index a, Index b) {
  const Index q = a / b;
  return a % b < 0 ? q - 1 : q;
}

/// Ceiling of a / b for b > 0.
constexpr Index ceil_div(Index a, Index b) {
  const Index q = a / b;
  return a % b > 0 ? q + 1 : q;
}

}  // namespace fenestra

// Rounded: a scalar that carries a bound on its own rounding error, whatever the order of the sums.
//
// Two programs that compute the same expression in the same type differ by the order of their
// additions, by fused multiply-adds and by their mathematical functions. An interval encloses one
// order; what is needed here is a bound on all of them. For a sum of products it is the classical
// one, |error| <= gamma(n) * (sum of the absolute values of the terms), n the roundings on the
// longest way of a term; `magnitude` is that sum and `roundings()` is n. A function f turns an
// error e of its argument into |f'| e and adds its own, so the magnitude of f(x) is the larger of
// |f(x)| and |f'(x)| * magnitude(x). First order in the unit roundoff.
#pragma once

#include <fenestra/spec/exponential_moment.hpp>
#include <fenestra/spec/scalar.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <numbers>

namespace fenestra::check {

class Rounded {
 public:
  /// Roundings that one call of a mathematical function stands for, in units of the unit roundoff.
  /// One ulp is two of them; the libraries at hand (glibc, Sleef, our vector functions) state at
  /// most 4 ulp, and 8 for erfc.
  static constexpr std::int64_t kFunction = 8;
  static constexpr std::int64_t kErfc = 16;

  Rounded() = default;
  template <std::same_as<int> I>
  Rounded(I n) : Rounded(static_cast<double>(n), 0) {}
  /// A constant; `roundings` is 0 where float holds it.
  Rounded(double value, std::int64_t roundings)
      : value_(value), magnitude_(std::fabs(value)), depth_(roundings) {}

  double value() const { return value_; }
  double magnitude() const { return magnitude_; }
  /// At most this many roundings lie on the way of any term into the value.
  std::int64_t roundings() const { return depth_ + additions_; }
  /// What results too small for a normal number can add to the error, in units of the smallest
  /// positive one.
  double underflow() const { return underflow_; }

  friend Rounded operator+(const Rounded& a, const Rounded& b) {
    Rounded sum;
    sum.value_ = a.value_ + b.value_;
    sum.magnitude_ = a.magnitude_ + b.magnitude_;
    // In another order a term may pass through every addition of the sum, so these are counted
    // together, and what happened below them once.
    sum.depth_ = std::max(a.depth_, b.depth_);
    sum.additions_ = a.additions_ + b.additions_ + 1;
    sum.underflow_ = a.underflow_ + b.underflow_;
    return sum;
  }
  friend Rounded operator-(const Rounded& a) {
    Rounded result = a;
    result.value_ = -a.value_;
    return result;
  }
  friend Rounded operator-(const Rounded& a, const Rounded& b) { return a + (-b); }
  friend Rounded operator*(const Rounded& a, const Rounded& b) {
    Rounded result =
        make(a.value_ * b.value_, a.magnitude_ * b.magnitude_, a.roundings() + b.roundings() + 1);
    result.underflow_ = std::fabs(a.value_) * b.underflow_ + std::fabs(b.value_) * a.underflow_ + 1;
    return result;
  }
  friend Rounded operator/(const Rounded& a, const Rounded& b) {
    // In this order neither square nor product leaves the range of double before the quotient does.
    Rounded result = make(a.value_ / b.value_,
                          a.magnitude_ / std::fabs(b.value_) * (b.magnitude_ / std::fabs(b.value_)),
                          a.roundings() + b.roundings() + 1);
    result.underflow_ =
        (a.underflow_ + std::fabs(result.value_) * b.underflow_) / std::fabs(b.value_) + 1;
    return result;
  }
  friend bool operator==(const Rounded& a, const Rounded& b) { return a.value_ == b.value_; }
  friend bool operator<(const Rounded& a, const Rounded& b) { return a.value_ < b.value_; }
  friend bool operator>(const Rounded& a, const Rounded& b) { return b < a; }
  friend bool operator<=(const Rounded& a, const Rounded& b) { return a.value_ <= b.value_; }
  friend bool operator>=(const Rounded& a, const Rounded& b) { return b <= a; }

  friend Rounded exp(const Rounded& x) {
    const double y = std::exp(x.value_);
    return function(y, y, x, kFunction);
  }
  friend Rounded log(const Rounded& x) {
    return function(std::log(x.value_), 1 / x.value_, x, kFunction);
  }
  friend Rounded expm1(const Rounded& x) {
    return function(std::expm1(x.value_), std::exp(x.value_), x, kFunction);
  }
  friend Rounded log1p(const Rounded& x) {
    return function(std::log1p(x.value_), 1 / (1 + x.value_), x, kFunction);
  }
  /// A polynomial, or one difference of exponentials after another; its derivative is below it.
  friend Rounded exponential_moment(const Rounded& x, int k) {
    const double y = fenestra::exponential_moment(x.value_, k);
    return function(y, y, x, 4 * kFunction);
  }
  friend Rounded sqrt(const Rounded& x) {
    const double y = std::sqrt(x.value_);
    return function(y, 0.5 / y, x, 1);
  }
  friend Rounded sin(const Rounded& x) {
    return function(std::sin(x.value_), std::cos(x.value_), x, kFunction);
  }
  friend Rounded cos(const Rounded& x) {
    return function(std::cos(x.value_), std::sin(x.value_), x, kFunction);
  }
  // Exact, for an argument that is not as close to a jump as its own error.
  friend Rounded floor(const Rounded& x) { return Rounded(std::floor(x.value_), 0); }
  friend Rounded rint(const Rounded& x) { return Rounded(std::rint(x.value_), 0); }
  friend Rounded erfc(const Rounded& x) {
    const double slope = 2 * std::numbers::inv_sqrtpi * std::exp(-x.value_ * x.value_);
    return function(std::erfc(x.value_), slope, x, kErfc);
  }
  friend Rounded pow(const Rounded& x, const Rounded& p) {
    const double y = std::pow(x.value_, p.value_);
    double magnitude = std::fabs(y);
    if (x.roundings() > 0) {
      magnitude += std::fabs(p.value_ * std::pow(x.value_, p.value_ - 1)) * x.magnitude_;
    }
    if (p.roundings() > 0) {
      magnitude += std::fabs(y * std::log(x.value_)) * p.magnitude_;
    }
    return make(y, magnitude, x.roundings() + p.roundings() + kFunction);
  }

 private:
  static Rounded make(double value, double magnitude, std::int64_t roundings) {
    Rounded result;
    result.value_ = value;
    result.magnitude_ = magnitude;
    result.depth_ = roundings;
    return result;
  }
  static Rounded function(double y, double slope, const Rounded& x, std::int64_t own) {
    const double carried = x.roundings() > 0 ? std::fabs(slope) * x.magnitude_ : 0;
    Rounded result = make(y, std::max(std::fabs(y), carried), x.roundings() + own);
    result.underflow_ = std::fabs(slope) * x.underflow_ + 1;
    return result;
  }

  double value_ = 0;
  double magnitude_ = 0;
  std::int64_t depth_ = 0;      ///< roundings below the outermost sum
  std::int64_t additions_ = 0;  ///< of the outermost sum
  double underflow_ = 0;
};

}  // namespace fenestra::check

template <>
struct fenestra::ScalarTraits<fenestra::check::Rounded>
    : fenestra::DefaultScalarTraits<fenestra::check::Rounded> {
  using Rounded = fenestra::check::Rounded;
  static Rounded from_index(Index n) { return from_double(static_cast<double>(n)); }
  static Rounded from_double(double x) {
    return Rounded(x, static_cast<double>(static_cast<float>(x)) == x ? 0 : 1);
  }
  static Rounded abs(const Rounded& x) { return x.value() < 0 ? -x : x; }
};

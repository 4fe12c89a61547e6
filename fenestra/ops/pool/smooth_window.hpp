// One window of smooth max pooling, for the specification and for what kernels leave to it.
//
//   y = (1/beta) * log( sum over the window of exp(beta*x) )   [- log(n)/beta, normalised]
//
// stabilised by the window's extreme m, its max for beta > 0 and its min for beta < 0. With
// d = x - m, z = beta*d <= 0, S = sum exp(z) and E = mean(exp(z) - 1) = S/n - 1:
//
//   y = m + log(S)/beta,   normalised:  m + log(1 + E)/beta
//
// in which nothing overflows unless y does, and nothing cancels: E is a sum of terms of one sign,
// so a small beta gives the mean and not the maximum. Where E <= -1/2, log(S) - log(n) takes the
// place of log(1 + E), whose argument would have cancelled.
//
// Weights p = softmax(beta*x) over the window; VJP to x: p*y_bar, JVP: sum p*x_dot. The derivatives
// by beta are functions of their own, since (sum p*x - y)/beta cancels for small beta; see `slope`
// and `curve`. A window without a cell is 0 and carries no gradient.
#pragma once

#include <fenestra/spec/exponential_moment.hpp>
#include <fenestra/spec/scalar.hpp>
#include <fenestra/tensor/shape.hpp>

#include <vector>

namespace fenestra::spec {

/// True for an infinity of any scalar that has one.
template <class T>
bool is_infinite(const T& x) {
  return !is_nan(x) && is_nan(x - x);
}

/// One window: its cells that take part and what the formulas above say of them.
template <Transcendental T>
class SmoothWindow {
 public:
  struct Cell {
    Index offset;  ///< into x; -1 for a padded zero
    T d;           ///< x - m
    T weight;      ///< p
    bool silent;   ///< infinitely far from the extreme: no weight, no derivative
  };

  SmoothWindow(const T& beta, bool normalised) : beta_(beta), normalised_(normalised) {}

  const std::vector<Cell>& cells() const { return cells_; }
  void add(Index offset, const T& x) { cells_.push_back({offset, x, T(0), false}); }
  /// After the last cell.
  void finish() {
    if (cells_.empty()) {
      return;
    }
    const bool minimum = beta_ < T(0);
    // Any constant may be subtracted from all cells: derivatives do not pass through the extreme.
    extreme_ = representative(cells_[0].d);
    for (const Cell& cell : cells_) {
      const T candidate = representative(cell.d);
      extreme_ =
          minimum ? T(-scalar_max(T(-extreme_), T(-candidate))) : scalar_max(extreme_, candidate);
    }
    if (is_infinite(extreme_)) {
      finish_infinite(minimum);
      return;
    }
    const T n = from_index<T>(static_cast<Index>(cells_.size()));
    sum_ = T(0);
    T less_one(0);
    for (Cell& cell : cells_) {
      cell.d = cell.d - extreme_;
      const T z = beta_ * cell.d;
      cell.silent = is_infinite(z);
      cell.weight = cell.silent ? T(0) : scalar_exp(z);
      sum_ = sum_ + cell.weight;
      less_one = less_one + (cell.silent ? T(-1) : scalar_expm1(z));
    }
    for (Cell& cell : cells_) {
      cell.weight = cell.weight / sum_;
    }
    less_one = less_one / n;
    smooth_ = normalised_ && T(-1) < representative(less_one) + representative(less_one);
    const T log_sum = smooth_       ? scalar_log1p(less_one)
                      : normalised_ ? T(scalar_log(sum_) - scalar_log(n))
                                    : scalar_log(sum_);
    above_ = log_sum / beta_;
    value_ = extreme_ + above_;
  }

  const T& value() const { return value_; }

  /// dy/dbeta = (sum p*d - (y - m))/beta: both terms have one sign, unless normalised. Then it is
  /// the divergence of p from equal weights over beta^2, and with g = x - y and w = beta*g, where
  /// sum exp(w) = n, the mean of (w e^w - e^w + 1)/beta^2: terms that are not negative.
  T slope() const {
    if (cells_.empty() || infinite_) {
      return without_gradient();
    }
    if (!smooth_) {
      return (mean() - above_) / beta_;
    }
    T sum(0);
    for (const Cell& cell : cells_) {
      if (cell.silent) {
        sum = sum + T(1) / beta_ / beta_;
      } else {
        const T g = cell.d - above_;
        sum = sum + g * g * exponential_moment(T(beta_ * g), 1);
      }
    }
    return sum / from_index<T>(static_cast<Index>(cells_.size()));
  }

  /// d^2y/dbeta^2 = (variance of x under p - 2 slope)/beta, both of one sign unless normalised.
  /// Then the mean of (e^w (w^2 - 2w + 2) - 2)/beta^3, less beta*slope^2.
  T curve() const {
    if (cells_.empty() || infinite_) {
      return without_gradient();
    }
    const T first = slope();
    T sum(0);
    if (!smooth_) {
      const T centre = mean();
      for (const Cell& cell : cells_) {
        if (!cell.silent) {
          sum = sum + cell.weight * ((cell.d - centre) * (cell.d - centre));
        }
      }
      return (sum - (first + first)) / beta_;
    }
    for (const Cell& cell : cells_) {
      if (cell.silent) {
        sum = sum - T(2) / beta_ / beta_ / beta_;
      } else {
        const T g = cell.d - above_;
        sum = sum + g * g * g * exponential_moment(T(beta_ * g), 2);
      }
    }
    return sum / from_index<T>(static_cast<Index>(cells_.size())) - beta_ * (first * first);
  }

 private:
  // All cells at the far end: value without gradient. One at the near end: logsumexp leaves its
  // weight undefined, and the quotient leaves a dual's tangent so too.
  void finish_infinite(bool minimum) {
    infinite_ = true;
    far_ = (extreme_ < T(0)) != minimum;
    value_ = far_ ? extreme_ : extreme_ / scalar_abs(beta_);
    for (Cell& cell : cells_) {
      cell.weight = !far_ && cell.d == extreme_ ? extreme_ - extreme_ : T(0);
    }
  }
  T without_gradient() const { return infinite_ && !far_ ? T(extreme_ - extreme_) : T(0); }
  /// sum p*d
  T mean() const {
    T sum(0);
    for (const Cell& cell : cells_) {
      if (!cell.silent) {
        sum = sum + cell.weight * cell.d;
      }
    }
    return sum;
  }

  T beta_;
  bool normalised_;
  bool smooth_ = false;    ///< normalised, and E > -1/2
  bool infinite_ = false;  ///< the extreme is
  bool far_ = false;
  T extreme_ = T(0);
  T sum_ = T(1);
  T above_ = T(0);  ///< y - m
  T value_ = T(0);
  std::vector<Cell> cells_;
};

}  // namespace fenestra::spec
